/**
 * `npm run bench:hand-over`: how fast a member copies a partition from another one, and how long questions to that one
 * take meanwhile, beside how long they take else; without a limit and with the usual one. `-- --small` takes seconds and
 * runs in the test suite; `--megabytes N --rounds N --questions 200`.
 */

import { randomBytes, randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { monotonicUs } from '../src/system-clock.js';
import { openZones, type Zones } from '../test/cluster/zones.js';
import { eventually } from '../test/eventually.js';
import { kafkaUnavailable } from '../test/kafka/broker/broker.js';
import { giveWay } from './cores.js';
import { getText } from './http-get.js';
import { Latencies } from './percentiles.js';

/** As it is stored, which packs hexadecimal digits to half: large, so that a gigabyte is there soon. */
const LARGE_ENTRY_BYTES = 64_000;
const ASKED = 'askedproject';
const ASKED_ENTRIES = 2_000;
/** Records that are sent at a time. */
const BATCH = 8;
/** As it is when nothing is said. */
const HANDOVER_MB_PER_SECOND = 50;
const DEADLINE_MS = 600_000;
const QUESTIONS = [
  `logs.all?project=${ASKED}&project_tier=ENTERPRISE`,
  `usage.api-counts?project=${ASKED}&interval=daily`,
  `logs.event-counts?project=${ASKED}&project_tier=ENTERPRISE&interval=daily`,
];

export interface HandOverSizes {
  readonly megabytes: number;
  readonly rounds: number;
  /** A second. */
  readonly questions: number;
  readonly quietSeconds: number;
  /** Whether the taker has only what others leave of the cores: in earnest it has a machine of its own. */
  readonly takerGivesWay: boolean;
}

export const LARGE: HandOverSizes = {
  megabytes: 1_000,
  rounds: 3,
  questions: 200,
  quietSeconds: 10,
  takerGivesWay: true,
};
export const SMALL: HandOverSizes = {
  megabytes: 4,
  rounds: 1,
  questions: 50,
  quietSeconds: 1,
  takerGivesWay: false,
};

export interface HandOverFigures {
  /** What others may copy in a second; 0: no limit. */
  readonly limitMb: number;
  readonly copiedMb: number;
  readonly seconds: number;
  readonly quietP99Ms: number;
  readonly copyingP99Ms: number;
}

/** What its log says of a copy. */
interface CopiedLine {
  readonly time: number | string;
  readonly seconds: number;
  readonly byteCount: number;
}

interface Asked {
  readonly atMs: number;
  readonly tookUs: number;
}

export async function runHandOverBench(
  sizes: HandOverSizes,
  tell: (line: string) => void,
): Promise<HandOverFigures[]> {
  const zones = await openZones({
    zones: ['one', 'other'],
    membersAZone: 1,
    partitionCount: 1,
    settings: {},
  });
  const figures: HandOverFigures[] = [];
  try {
    await fill(zones, sizes.megabytes);
    for (let round = 0; round < sizes.rounds; round++)
      for (const limitMb of [0, HANDOVER_MB_PER_SECOND]) {
        figures.push(await copyOnce(zones, limitMb, sizes));
        tell(JSON.stringify(figures.at(-1)));
      }
  } finally {
    await zones.close();
  }
  return figures;
}

/** The member that gives has stored all of it by then, and the topic has nothing more of it. */
async function fill({ rig, topic, members, places }: Zones, megabytes: number): Promise<void> {
  const nowUs = Date.now() * 1000;
  const entry = (project: string, fields: object, metadata: object) =>
    JSON.stringify({ id: randomUUID(), timestamp: nowUs, project, ...fields, metadata });
  const request = { request: { url: `https://${ASKED}.example/rest/v1/todos` } };
  const small = Array.from({ length: ASKED_ENTRIES }, () => entry(ASKED, {}, request));
  await rig.produce(topic, 0, small);
  const largeCount = Math.ceil((megabytes * 1e6) / LARGE_ENTRY_BYTES);
  for (let sent = 0; sent < largeCount; ) {
    const values: string[] = [];
    for (; values.length < BATCH && sent < largeCount; sent++)
      values.push(entry('another', { event_message: randomBytes(LARGE_ENTRY_BYTES).toString('hex') }, {}));
    await rig.produce(topic, 0, values);
  }
  const [giver] = places;
  await members.start(giver);
  const count = ASKED_ENTRIES + largeCount;
  const partition = `${topic}/0`;
  await eventually(
    async () => (await members.positions(giver.name)).get(partition) === count,
    () => members.of(giver.name).output().slice(-2_000),
    DEADLINE_MS,
  );
  await members.of(giver.name).kill('SIGTERM');
  await rig.deleteBefore(topic, 0, count);
}

async function copyOnce(
  { members, places }: Zones,
  limitMb: number,
  sizes: HandOverSizes,
): Promise<HandOverFigures> {
  const [giver, taker] = places;
  await members.start(giver, { LOGRING_HANDOVER_MB_PER_SECOND: String(limitMb) });
  await members.untilReady(giver.name);
  const ended = new AbortController();
  const asked: Asked[] = [];
  const asking = askUntil(members.of(giver.name).url, sizes.questions, asked, ended.signal);
  try {
    // What it runs is compiled by then.
    await delay(1_000 * sizes.quietSeconds);
    const quietFromMs = Date.now();
    await delay(1_000 * sizes.quietSeconds);
    const quietUntilMs = Date.now();
    const { processId, output } = await members.start(taker);
    if (sizes.takerGivesWay) giveWay([processId], true);
    let copied: CopiedLine | null = null;
    await eventually(
      () => {
        copied = copiedLine(output());
        return copied !== null;
      },
      () => output().slice(-2_000),
      DEADLINE_MS,
    );
    ended.abort();
    await asking;
    const { seconds, byteCount, time } = copied!;
    const endMs = new Date(time).getTime();
    const p99Ms = (from: number, to: number) =>
      new Latencies(
        asked.filter(({ atMs }) => atMs >= from && atMs < to).map(({ tookUs }) => tookUs),
      ).quantileMs(0.99);
    return {
      limitMb,
      copiedMb: byteCount / 1e6,
      seconds,
      quietP99Ms: p99Ms(quietFromMs, quietUntilMs),
      copyingP99Ms: p99Ms(endMs - 1_000 * seconds, endMs),
    };
  } finally {
    ended.abort();
    await Promise.allSettled([asking]);
    await members.of(taker.name)?.kill('SIGKILL');
    rmSync(members.directoryOf(taker.name), { recursive: true, force: true });
    await members.of(giver.name).kill('SIGTERM');
  }
}

function copiedLine(output: string): CopiedLine | null {
  const line = output.split('\n').find((one) => one.includes('a partition was copied from another member'));
  return line === undefined ? null : (JSON.parse(line) as CopiedLine);
}

/** Each at its time, whatever came of the one before. Rejects once all are answered, if one was not. */
async function askUntil(url: string, perSecond: number, asked: Asked[], signal: AbortSignal): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const underway = new Set<Promise<void>>();
  let failure: unknown = null;
  const askOne = async (question: string) => {
    const startUs = monotonicUs();
    const atMs = Date.now();
    const { status } = await getText(`${url}/api/endpoints/query/${question}`, agent);
    if (status !== 200) throw new Error(`${question} answers ${status}`);
    asked.push({ atMs, tookUs: monotonicUs() - startUs });
  };
  try {
    for (let turn = 0, dueMs = Date.now(); !signal.aborted; turn++) {
      const one = askOne(QUESTIONS[turn % QUESTIONS.length])
        .catch((error: unknown) => {
          failure ??= error;
        })
        .finally(() => underway.delete(one));
      underway.add(one);
      dueMs += 1_000 / perSecond;
      await delay(Math.max(0, dueMs - Date.now()));
    }
    await Promise.all(underway);
    if (failure !== null) throw failure;
  } finally {
    agent.destroy();
  }
}

async function main(): Promise<void> {
  if (kafkaUnavailable !== null) throw new Error(`the bench needs a Kafka broker: ${kafkaUnavailable}`);
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    options: { small: { type: 'boolean' }, megabytes: text, rounds: text, questions: text },
  });
  const usual = values.small ? SMALL : LARGE;
  const figures = await runHandOverBench(
    {
      ...usual,
      megabytes: Number(values.megabytes ?? usual.megabytes),
      rounds: Number(values.rounds ?? usual.rounds),
      questions: Number(values.questions ?? usual.questions),
    },
    (line) => process.stderr.write(`${line}\n`),
  );
  process.stdout.write('| limit, MB/s | copied, MB | MB/s | p99 ms | quiet | |\n|---|---|---|---|---|---|\n');
  for (const { limitMb, copiedMb, seconds, quietP99Ms, copyingP99Ms } of figures) {
    const cells = [
      limitMb === 0 ? 'none' : limitMb,
      copiedMb.toFixed(0),
      (copiedMb / seconds).toFixed(0),
      copyingP99Ms.toFixed(2),
      quietP99Ms.toFixed(2),
      `${(copyingP99Ms / quietP99Ms).toFixed(2)} ×`,
    ];
    process.stdout.write(`| ${cells.join(' | ')} |\n`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
