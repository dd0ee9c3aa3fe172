/**
 * Every byte-flip and every truncation of a small store, one at a time: `npm run damage`. Children do the
 * trials, so that one which crashes the process is counted and gone past.
 *
 *   npm run damage -- [--mask 0xff] [--every 3 --part 0] [--children 2] [--file shards/edge+0/1.checkpoint]
 *
 * With `--repair` each damaged store is repaired, and asked then; `--no-checkpoints`: of a store that is so young that
 * it has none. In a folder in memory (TMPDIR) it takes a third of the time.
 */

import { type ChildProcess, fork } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { SMALL, writeSmallStore, YOUNG } from './small-store.js';
import { type Damage, isOfJournal, type Outcome, Pristine } from './trials.js';

/** Of the journals' trials so many are done with the whole service. */
const THOROUGH_EVERY = 499;

const SHOWN_FAILURES = 20;
const TOLD_EVERY = 2_000;

/** Every damage to a store, in order. */
export function* everyDamage(files: ReadonlyMap<string, Buffer>, mask: number): Iterable<Damage> {
  for (const [file, { length }] of files) {
    yield { kind: 'missing', file };
    for (let at = 0; at < length; at++) yield { kind: 'flip', file, at, mask };
    for (let cut = 0; cut < length; cut++) yield { kind: 'cut', file, length: cut };
  }
}

interface Order {
  /** The store as it should be. */
  readonly source: string;
  /** Where it is copied to and damaged. */
  readonly directory: string;
  readonly mask: number;
  readonly every: number;
  readonly offset: number;
  readonly file: string | null;
  readonly isRepaired: boolean;
  /** Trials that are done. */
  readonly from: number;
}

interface Report {
  readonly index: number;
  readonly damage: Damage;
  /** null: it begins. */
  readonly outcome: Outcome | null;
}

async function runChild(order: Order): Promise<void> {
  // One that crashed has left its damage behind.
  rmSync(order.directory, { recursive: true, force: true });
  cpSync(order.source, order.directory, { recursive: true });
  const pristine = await Pristine.of(order.directory);
  let index = -1;
  for (const damage of everyDamage(pristine.files, order.mask)) {
    if (order.file !== null && damage.file !== order.file) continue;
    index += 1;
    if (index < order.from || index % order.every !== order.offset) continue;
    await report({ index, damage, outcome: null });
    const outcome = order.isRepaired
      ? await pristine.repairedOutcome(damage)
      : await pristine.outcomeOf(damage, index % THOROUGH_EVERY === 0);
    await report({ index, damage, outcome });
  }
}

function report(message: Report): Promise<void> {
  return new Promise((resolve, reject) => {
    process.send!(message, undefined, undefined, (error) => (error === null ? resolve() : reject(error)));
  });
}

class Tally {
  readonly counts = new Map<string, number>();
  failureCount = 0;
  #trialCount = 0;

  count({ damage }: Report, outcome: Outcome | 'crashed'): void {
    const kind = isOfJournal(damage.file)
      ? 'journals'
      : damage.file.startsWith('shards/')
        ? 'row files'
        : 'others';
    const name = typeof outcome === 'string' ? outcome : 'FAILED';
    const key = `${kind}, ${damage.kind}: ${name}`;
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
    this.#trialCount++;
    if (this.#trialCount % TOLD_EVERY === 0)
      process.stdout.write(`${this.#trialCount} trials, ${this.failureCount} failed; now ${damage.file}\n`);
    if (typeof outcome === 'string' && outcome !== 'crashed') return;
    this.failureCount++;
    const text = typeof outcome === 'string' ? 'the process crashed' : outcome.failure;
    if (this.failureCount <= SHOWN_FAILURES)
      process.stdout.write(`FAILED ${JSON.stringify(damage)}\n  ${text}\n`);
  }
}

/** Resolves when all its trials are done, whatever number of processes that takes. */
async function runShard(order: Order, tally: Tally): Promise<void> {
  let from = 0;
  for (;;) {
    let last: Report | null = null;
    const child: ChildProcess = fork(fileURLToPath(import.meta.url), [], {
      env: { ...process.env, DAMAGE_ORDER: JSON.stringify({ ...order, from }) },
    });
    child.on('message', (message: Report) => {
      last = message;
      if (message.outcome !== null) tally.count(message, message.outcome);
    });
    const code = await new Promise<number | null>((resolve) => child.once('exit', resolve));
    if (code === 0) return;
    const crashed = last as Report | null;
    if (crashed === null) throw new Error(`a child ended with ${code} before its first trial`);
    if (crashed.outcome === null) tally.count(crashed, 'crashed');
    from = crashed.index + 1;
  }
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean', default: false } as const;
  const { values } = parseArgs({
    options: {
      mask: text,
      every: text,
      part: text,
      children: text,
      file: text,
      repair: flag,
      'no-checkpoints': flag,
    },
  });
  const childCount = Number(values.children ?? 2);
  const every = Number(values.every ?? 1) * childCount;
  const root = mkdtempSync(join(tmpdir(), 'logring-damage-'));
  const tally = new Tally();
  const startMs = performance.now();
  try {
    await writeSmallStore(join(root, 'source'), values['no-checkpoints'] ? YOUNG : SMALL);
    const orders = Array.from({ length: childCount }, (_, offset) => ({
      source: join(root, 'source'),
      directory: join(root, String(offset)),
      mask: Number(values.mask ?? 0xff),
      every,
      offset: Number(values.part ?? 0) * childCount + offset,
      file: values.file ?? null,
      isRepaired: values.repair,
      from: 0,
    }));
    await Promise.all(orders.map((order) => runShard(order, tally)));
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
  for (const [name, count] of [...tally.counts].sort())
    process.stdout.write(`${String(count).padStart(8)}  ${name}\n`);
  process.stdout.write(`${Math.round((performance.now() - startMs) / 1000)} s\n`);
  if (tally.failureCount > 0) process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const order = process.env.DAMAGE_ORDER;
  await (order === undefined ? main() : runChild(JSON.parse(order) as Order));
  if (order !== undefined) process.disconnect();
}
