/**
 * Histories of a store alone, on the simulated disk, beside a map: commits of two shards, of segments and blocks,
 * appends to the embedded log, truncations and snapshots, one amid the other, while the disk fails, the process is
 * killed or the power is cut. They are small, so that there can be very many.
 */

import type { SegmentWriter } from '../../engine/segments.js';
import type { StoredRecord } from '../../ingest/embedded-log/durable-log.js';
import { Random } from '../../src/demo/random.js';
import { FILE_KEY } from '../../src/store/blocks/file-records.js';
import { SNAPSHOT_FOLDER, type SnapshotFile } from '../../src/store/directory/backup.js';
import { UNTOLD } from '../../src/store/disk/disk-room.js';
import { LogTable } from '../../src/store/log-table.js';
import { Store } from '../../src/store/store.js';
import { ArmedError, type DiskError, Faults, LifeEnded, type Operation } from './faults.js';
import { type BackupFile, openRestored } from './restored-backup.js';
import { Schedule } from './schedule.js';
import { DiskOfLife, SimulatedDisk } from './simulated-disk.js';
import type { Assembly } from './simulated-service.js';
import { simulatedStorage, syncTurn } from './simulated-storage.js';

const FOLDER = '/data';
const TOPIC = 'edge';
const SCOPES = ['edge/0', 'edge/1'];
const SEGMENTS = ['shard', 'rows/a', 'rows/b', 'usage/a', 'usage/b'];
const FILES = ['90d/a', '90d/b', 'usage-a'];
const CACHE_BYTES = 500;
const ARENA_BYTES = 600;
const CHECKPOINT_LEAST_BYTES = 300;
const CHECKPOINT_SHARES = { partition: 0.1, table: 0.1 };
const LOG_CHUNK_BYTES = 60;
/** Some values are compressed, most are not. */
const VALUE_BYTES = [3, 40, 40, 700];
const MOST_STEPS = 5_000;
const FAILING: readonly (readonly [Operation, readonly DiskError[]])[] = [
  ['write', ['EIO', 'ENOSPC', 'short']],
  ['sync', ['EIO', 'ENOSPC']],
  ['sync-folder', ['EIO', 'EMFILE']],
  ['open', ['EIO', 'ENOSPC', 'EMFILE']],
  ['open-read', ['EMFILE']],
  ['remove', ['EIO']],
  ['rename', ['EIO', 'ENOSPC']],
  ['truncate', ['EIO', 'ENOSPC']],
  ['link', ['EIO']],
  ['make-folder', ['EIO', 'ENOSPC']],
];

/** A shard as a map has it. */
interface Contents {
  readonly segments: ReadonlyMap<string, string>;
  readonly files: ReadonlyMap<string, readonly string[]>;
}

const EMPTY: Contents = { segments: new Map(), files: new Map() };

/** What a snapshot made, and what it may have. */
interface Copy {
  readonly copy: readonly BackupFile[];
  /** By scope, after each commit that may have been the last. */
  readonly commits: readonly (readonly Contents[])[];
  readonly known: readonly string[];
  /** So many records at least, and those from `start` on. */
  readonly least: number;
  readonly start: number;
}

class Disagreement extends Error {}

class StoreHistory {
  readonly #random: Random;
  readonly #assembly: Assembly;
  readonly #disk = new SimulatedDisk([FOLDER]);
  readonly faults = new Faults();
  /** By scope, what may be there: the last is what counts while the life goes on. */
  readonly #shards = new Map<string, Contents[]>(SCOPES.map((scope) => [scope, [EMPTY]]));
  /** Of the log: what was acknowledged, and what an append under way, or one that was refused, may have added. */
  #records: string[] = [];
  #unheard: (readonly string[])[] = [];
  #truncated = 0;
  /** By scope, after each commit of this life, and at its beginning. */
  #commits: (readonly Contents[])[] = [];
  readonly #copies: Copy[] = [];
  copyCount = 0;
  #schedule = new Schedule();
  #store!: Store;
  #log!: LogTable;
  #fatal: unknown = null;
  #problem: unknown = null;
  #isCommitting = false;
  #isAppending = false;

  constructor(seed: number, assembly: Assembly) {
    this.#random = new Random(seed);
    this.#assembly = assembly;
  }

  async play(): Promise<void> {
    await this.#beginLife();
    const stepCount = this.#random.between(5, 40);
    const crashShare = this.#random.pick([0.03, 0.1, 0.2]);
    const errorShare = this.#random.pick([0, 0, 0.1]);
    for (let step = 0; step < stepCount; step += 1) {
      if (this.#random.chance(crashShare)) this.#armCrash();
      else if (this.#random.chance(errorShare)) this.#armError();
      else this.#do();
      await this.#run(this.#random.pick([0, 1, 3, 10, 40]));
      if (this.#isOver) await this.#nextLife();
    }
    this.faults.disarm();
    await this.#settled();
    await this.#nextLife();
    await this.#settled();
  }

  get #isOver(): boolean {
    return this.#fatal !== null || this.faults.ended !== null;
  }

  #armCrash(): void {
    const kind = this.#random.pick(['process', 'power'] as const);
    this.faults.armCrashes([
      { kind, atOperation: this.#random.below(this.#random.pick([2, 10, 40])), part: this.#random.float() },
    ]);
  }

  #armError(): void {
    const [operation, errors] = this.#random.pick(FAILING);
    this.faults.armError(operation, this.#random.pick(errors), this.#random.float());
  }

  #do(): void {
    const kind = this.#random.float();
    if (kind < 0.45) this.#commit();
    else if (kind < 0.75) this.#append();
    else if (kind < 0.9) this.#truncate();
    else this.#takeSnapshot();
  }

  #commit(): void {
    if (this.#isCommitting) return;
    this.#isCommitting = true;
    const scopes = SCOPES.filter(() => this.#random.chance(0.7));
    const saves = scopes.map((scope) => this.#draw(scope));
    for (const { scope, next } of saves) this.#shards.get(scope)!.push(next);
    const committing = this.#store.commit((writerOf) => {
      for (const { scope, write } of saves) write(writerOf(scope));
    }, 1_000_000);
    this.#told(committing, () => {
      this.#isCommitting = false;
      for (const { scope } of saves) this.#shards.set(scope, [this.#shards.get(scope)!.at(-1)!]);
      this.#commits.push(this.#latest());
    });
  }

  /** What a save changes of a shard. */
  #draw(scope: string) {
    const random = this.#random;
    const now = this.#shards.get(scope)!.at(-1)!;
    const segments = new Map(now.segments);
    const files = new Map(now.files);
    const writes: ((writer: SegmentWriter) => void)[] = [];
    for (let i = random.between(1, 4); i > 0; i -= 1) {
      const name = random.pick(SEGMENTS);
      if (random.chance(0.2)) {
        segments.delete(name);
        writes.push((writer) => writer.delete(name));
        continue;
      }
      const value = this.#value();
      segments.set(name, value);
      writes.push((writer) => writer.put(name, Buffer.from(value)));
    }
    const file = random.pick(FILES);
    if (random.chance(0.3) && files.has(file)) {
      files.delete(file);
      writes.push((writer) => writer.remove(file));
    } else if (random.chance(0.6)) {
      const blocks = Array.from({ length: random.between(1, 3) }, () => this.#value());
      files.set(file, [...(files.get(file) ?? []), ...blocks]);
      for (const block of blocks) writes.push((writer) => writer.append(file, Buffer.from(block)));
    }
    const next: Contents = { segments, files };
    const write = (writer: SegmentWriter): void => {
      for (const change of writes) change(writer);
    };
    return { scope, next, write };
  }

  #append(): void {
    if (this.#isAppending) return;
    this.#isAppending = true;
    const values = Array.from({ length: this.#random.between(1, 5) }, () => this.#value());
    const first = this.#records.length;
    const records = values.map((value, i): StoredRecord => {
      return { offset: first + i, timestampMs: first + i, value: Buffer.from(value) };
    });
    this.#unheard.push(values);
    const isStaged = this.#random.chance(0.5);
    const appended = isStaged ? this.#stageAndAppend(records) : this.#log.append(TOPIC, records);
    appended.then(
      () => {
        this.#records.push(...values);
        this.#unheard = [];
        this.#isAppending = false;
      },
      (error: unknown) => {
        if (error instanceof LifeEnded) return;
        // It is not there, unless the life ends before the next one.
        this.#isAppending = false;
      },
    );
  }

  async #stageAndAppend(records: readonly StoredRecord[]): Promise<void> {
    const count = this.#random.between(0, records.length);
    const staged = await this.#log.stage(TOPIC, records.slice(count), 0);
    await this.#log.append(TOPIC, records.slice(0, count), undefined, staged).catch((error: unknown) => {
      this.#log.unstage(TOPIC, staged);
      throw error;
    });
  }

  #truncate(): void {
    const end = this.#records.length;
    this.#truncated = this.#random.between(this.#truncated, end);
    this.#told(this.#log.truncateBefore(TOPIC, this.#truncated), () => undefined);
  }

  #takeSnapshot(): void {
    const first = this.#commits.length - 1;
    const recordCount = this.#records.length;
    this.#store.snapshot().then(
      ({ files }) => this.#guarded(() => this.#copySnapshot(files, first, recordCount)),
      () => undefined,
    );
  }

  /** It has what was there when it was asked for, or what came until it was made. */
  #copySnapshot(files: readonly SnapshotFile[], first: number, recordCount: number): void {
    // The last commit may have ended without this having been told.
    const commits = [...this.#commits.slice(first), this.#latest()];
    const known = [...this.#records, ...(this.#unheard.at(-1) ?? [])];
    const start = this.#truncated;
    const copy: BackupFile[] = [];
    for (const { path, byteCount, name } of files) {
      const entry = this.#disk.entry(`${FOLDER}/${SNAPSHOT_FOLDER}/${name}`);
      // Another snapshot took its place.
      if (entry === null || entry === 'folder') return;
      if (entry.content.length < byteCount) throw new Disagreement(`${path} of a snapshot is short`);
      copy.push({ path, content: entry.content.slice(0, byteCount) });
    }
    this.#copies.push({ copy, commits, known, least: recordCount, start });
  }

  /** Starts on the backups that snapshots made. */
  async #checkCopies(): Promise<void> {
    for (const { copy, commits, known, least, start } of this.#copies.splice(0)) {
      const restored = await openRestored(this.#random, FOLDER, copy, (disk, faults, schedule) =>
        Store.open(FOLDER, CACHE_BYTES, UNTOLD, backEnds(disk, faults, schedule, this.#assembly)),
      );
      if (restored === null) continue;
      const { store, schedule } = restored;
      const found = SCOPES.map((scope) => foundIn(store, scope)).join();
      if (!commits.some((shards) => shards.map(textOf).join() === found))
        throw new Disagreement(`a snapshot has ${found}, which no commit has left`);
      this.copyCount += 1;
      const log = new LogTable(store, LOG_CHUNK_BYTES);
      const end = log.endOffset(TOPIC);
      if (end < least || end > known.length || log.startOffset(TOPIC) > start)
        throw new Disagreement(
          `a snapshot's log has offsets ${log.startOffset(TOPIC)} to ${end}, of ${least} to ${known.length}`,
        );
      const read = await readLog(log, start, schedule);
      if (read.join() !== known.slice(start, end).join())
        throw new Disagreement(`a snapshot's log has ${read.join()}, not ${known.slice(start, end).join()}`);
    }
  }

  /** Tells what disagrees with the next step. */
  #guarded(task: () => void): void {
    try {
      task();
    } catch (error) {
      this.#problem ??= error;
    }
  }

  #latest(): readonly Contents[] {
    return SCOPES.map((scope) => this.#shards.get(scope)!.at(-1)!);
  }

  #value(): string {
    return this.#random.hex(this.#random.pick(VALUE_BYTES));
  }

  /** Any failure ends the life, as it does the process. */
  #told(promise: Promise<unknown>, done: () => void): void {
    promise.then(done, (error: unknown) => {
      if (this.faults.ended === null) this.#fatal ??= error;
    });
  }

  async #run(steps: number): Promise<void> {
    for (let i = 0; i < steps && !this.#isOver; i += 1) {
      if (this.#problem !== null) throw this.#problem;
      try {
        if (!(await this.#schedule.step(this.#random))) return;
      } catch (error) {
        if (!(error instanceof LifeEnded)) throw error;
      }
    }
  }

  async #settled(): Promise<void> {
    await this.#run(MOST_STEPS);
    if (this.#isOver) await this.#nextLife();
  }

  /** The power, or the process, is gone; what is left is what may be left. */
  async #nextLife(): Promise<void> {
    // What passes by itself is waited for.
    if (this.#fatal !== null && this.faults.lastingErrorCount === 0) throw this.#fatal;
    for (;;) {
      if (this.faults.ended === 'power') this.#disk.cutPower(this.#random);
      if (await this.#beginLife()) return;
    }
  }

  /** False when it is over before it has begun. */
  async #beginLife(): Promise<boolean> {
    await this.#checkCopies();
    this.faults.beginLife();
    this.#fatal = null;
    this.#isCommitting = false;
    this.#isAppending = false;
    this.#schedule = new Schedule();
    const parts = backEnds(this.#disk, this.faults, this.#schedule, this.#assembly);
    let store: Store | null = null;
    this.#told(
      Store.open(FOLDER, CACHE_BYTES, UNTOLD, parts).then((opened) => {
        store = opened;
      }),
      () => undefined,
    );
    for (let i = 0; store === null && !this.#isOver; i += 1) {
      if (i > MOST_STEPS) throw new Disagreement('the store does not open');
      await this.#run(1);
    }
    if (store === null) {
      if (this.#fatal !== null && this.faults.errorCount === 0) throw this.#fatal;
      return false;
    }
    this.#store = store;
    for (;;) {
      try {
        await this.#compare(store);
        return true;
      } catch (error) {
        if (this.#isOver) return false;
        // There is a descriptor the next time.
        if (!(error instanceof ArmedError)) throw error;
      }
    }
  }

  /** What is there must be what was committed, or what was being committed. */
  async #compare(store: Store): Promise<void> {
    for (const scope of SCOPES)
      this.#shards.set(scope, [expectOneOf(store, scope, this.#shards.get(scope)!)]);
    this.#commits = [this.#latest()];
    this.#log = new LogTable(store, LOG_CHUNK_BYTES);
    const end = this.#log.endOffset(TOPIC);
    if (this.#log.startOffset(TOPIC) > this.#truncated)
      throw new Disagreement(
        `the log starts at ${this.#log.startOffset(TOPIC)}, was cut at ${this.#truncated}`,
      );
    const read = await readLog(this.#log, this.#truncated, this.#schedule);
    const matches = [[], ...this.#unheard].map((values) => [...this.#records, ...values]);
    const known = matches.find(
      (one) => one.length === end && one.slice(this.#truncated).join() === read.join(),
    );
    if (known === undefined)
      throw new Disagreement(
        `the log has ${read.join()} from ${this.#truncated} to ${end}, not\n ${matches.map((one) => one.slice(this.#truncated).join()).join('\n or ')}`,
      );
    this.#records = known;
    this.#unheard = [];
  }
}

function backEnds(disk: SimulatedDisk, faults: Faults, schedule: Schedule, assembly: Assembly) {
  const hand = (thread: 'serving' | 'storage') =>
    assembly.disk(new DiskOfLife(disk, faults, syncTurn(schedule)), thread);
  return {
    disk: hand('serving'),
    lock: async () => ({ release: async () => {} }),
    wait: () => new Promise<void>((resolve) => schedule.push('timer', resolve)),
    startStorage: simulatedStorage(hand('storage'), schedule, () => faults.ended !== null, assembly),
    arenaBytes: ARENA_BYTES,
    checkpointLeastBytes: CHECKPOINT_LEAST_BYTES,
    checkpointShares: CHECKPOINT_SHARES,
  };
}

/** Which of the contents a shard has. */
function expectOneOf(store: Store, scope: string, contents: readonly Contents[]): Contents {
  const found = foundIn(store, scope);
  const match = contents.findLast((one) => textOf(one) === found);
  if (match === undefined)
    throw new Disagreement(
      `the store has of ${scope} ${found}, not\n  ${contents.map(textOf).join('\n  or ')}`,
    );
  return match;
}

function foundIn(store: Store, scope: string): string {
  const reader = store.reader(scope);
  const segments = [...reader.list('')].filter(({ name }) => !name.startsWith(FILE_KEY));
  const blocksOf = (file: string): string[] =>
    Array.from({ length: reader.blockCount(file) }, (_, i) => Buffer.from(reader.block(file, i)).toString());
  return textOf({
    segments: new Map(segments.map(({ name, bytes }) => [name, Buffer.from(bytes).toString()])),
    files: new Map(FILES.filter((file) => reader.blockCount(file) > 0).map((file) => [file, blocksOf(file)])),
  });
}

function textOf({ segments, files }: Contents): string {
  return JSON.stringify([[...segments].sort(), [...files].sort()]);
}

async function readLog(log: LogTable, start: number, schedule: Schedule): Promise<string[]> {
  const reading = log.read(TOPIC, start, Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY);
  const records = await finished(reading, schedule);
  for (const [i, { offset }] of records.entries())
    if (offset !== start + i) throw new Disagreement(`record ${i} of the log has offset ${offset}`);
  return records.map(({ value }) => Buffer.from(value).toString());
}

async function finished<Result>(promise: Promise<Result>, schedule: Schedule): Promise<Result> {
  let result: { readonly value: Result } | { readonly error: unknown } | null = null;
  promise.then(
    (value) => {
      result = { value };
    },
    (error: unknown) => {
      result = { error };
    },
  );
  for (let i = 0; result === null && i < MOST_STEPS; i += 1) await schedule.step(new Random(i));
  const settled = result as { readonly value: Result } | { readonly error: unknown } | null;
  if (settled === null) throw new Disagreement('something waits for what will never be');
  if ('error' in settled) throw settled.error;
  return settled.value;
}

/** What is wrong with the history of a seed; null for nothing. Adds where crashes came to `totals`. */
export async function storeHistoryReport(
  seed: number,
  assembly: Assembly,
  totals: Record<string, number>,
): Promise<string | null> {
  const history = new StoreHistory(seed, assembly);
  let problem: unknown = null;
  try {
    await history.play();
  } catch (error) {
    problem = error;
  }
  for (const [operation, count] of Object.entries(history.faults.crashedAt))
    totals[`at ${operation}`] = (totals[`at ${operation}`] ?? 0) + count;
  totals.snapshots = (totals.snapshots ?? 0) + history.copyCount;
  if (problem === null) return null;
  return `store history ${seed}: ${problem instanceof Error ? (problem.stack ?? problem.message) : String(problem)}`;
}
