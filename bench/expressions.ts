/**
 * `npm run bench:expressions`: how long other requests take while evil expressions are evaluated over long
 * URLs. Prints a table; exits with 1 when an answer is wrong or the goal is missed. `-- --urls N --rate N
 * --seconds N --seed N` set the sizes. A small size runs in the test suite.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import {
  type ExpressionAnswer,
  type ExpressionSizes,
  isRight,
  type OthersReport,
  runExpressionBench,
} from './expression-run.js';

/** No other request may take longer, from when it was due. */
const GOAL_MS = 50;

function readSizes(): ExpressionSizes {
  const option = (value: number) => ({ type: 'string', default: String(value) }) as const;
  const { values } = parseArgs({
    options: { urls: option(10_000), rate: option(200), seconds: option(20), seed: option(1) },
  });
  return {
    urls: Number(values.urls),
    urlLength: 1_500,
    rate: Number(values.rate),
    quietSeconds: Number(values.seconds),
    seed: Number(values.seed),
  };
}

async function main(): Promise<number> {
  const sizes = readSizes();
  const directory = mkdtempSync(join(tmpdir(), 'logring-bench-'));
  try {
    const { quiet, inTurn, atOnce } = await runExpressionBench(sizes, directory);
    print(`${cpus()[0].model}, ${cpus().length} cores, Node ${process.version}, ${JSON.stringify(sizes)}`);
    print('\nothers, ms                                       count      p50      p99      max');
    const slowestMs = Math.max(
      printOthers('alone', quiet),
      printOthers('one expression', inTurn.others),
      printOthers('all expressions', atOnce.others),
    );
    print(
      '\nexpressions                                    in turn ms  at once ms  statuses  requests found',
    );
    const wrong = inTurn.answers.filter((answer, i) => !printAnswers(answer, atOnce.answers[i])).length;
    const answers = [...inTurn.answers, ...atOnce.answers];
    const refused = answers.filter(({ status }) => status === 400).length;
    const late = answers.filter(({ lateCount }) => lateCount > 0).length;
    const failures = quiet.failures + inTurn.others.failures + atOnce.others.failures;
    print(
      `\n${refused} refused, ${late} told to come again, ${wrong} wrong, ${failures} failures of others, the slowest of them ${slowestMs} ms`,
    );
    return wrong + failures === 0 && slowestMs <= GOAL_MS ? 0 : 1;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function print(line: string): void {
  process.stdout.write(`${line}\n`);
}

/**
 * Answers with the slowest, in milliseconds. What the client was held up is the machine's, and in its
 * latencies.
 */
function printOthers(phase: string, { byKind, serviceHeldUpMs, clientHeldUpMs }: OthersReport): number {
  const slowestMs: number[] = [];
  for (const [kind, latencies] of Object.entries(byKind)) {
    const [p50, p99, max] = [0.5, 0.99, 1].map((q) => latencies.quantileMs(q));
    const figures = [p50, p99, max].map((ms) => ms.toFixed(2).padStart(9)).join('');
    print(`${phase.padEnd(17)}${kind.padEnd(28)}${String(latencies.count).padStart(9)}${figures}`);
    slowestMs.push(max);
  }
  const heldUp = [serviceHeldUpMs, clientHeldUpMs].map((ms) => ms.toFixed(2));
  print(`${phase.padEnd(17)}held up at most: the service ${heldUp[0]}, the client itself ${heldUp[1]}`);
  return Math.max(...slowestMs);
}

/** False when one of them is wrong. */
function printAnswers(inTurn: ExpressionAnswer, atOnce: ExpressionAnswer): boolean {
  const figures = [inTurn, atOnce].map(({ elapsedMs }) => elapsedMs.toFixed(0).padStart(12)).join('');
  const text = inTurn.text.length > 44 ? `${inTurn.text.slice(0, 43)}…` : inTurn.text;
  print(
    `${text.padEnd(45)}${figures}${`${inTurn.status}, ${atOnce.status}`.padStart(10)}  ${inTurn.found} of ${inTurn.expected}`,
  );
  return isRight(inTurn) && isRight(atOnce);
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    process.stderr.write(`bench: ${error instanceof Error ? error.stack : String(error)}\n`);
    process.exit(1);
  },
);
