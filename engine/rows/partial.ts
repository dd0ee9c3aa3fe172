/**
 * The partial answer of `logs.all`: a shard's rows of one project, in runs that are opened when their turn
 * comes. Merging takes the newest rows of all shards, so a shard reads only the blocks of those that belong
 * to the answer.
 *
 *   rows 4   project │ retention, start, end and now f64 │ row count u32 │ body count u32 │ has more u8
 *            │ per row, newest first: timeUs f64, idHash u32, length u32 │ the bodies of the first rows
 *
 * A written one has only so many of its newest rows as somebody who asks several processes will need of each, and of
 * large ones only the bodies of the first; lacking-rows.ts tells when that was too few.
 */

import type { ByteWriter } from '../bytes.js';
import { LOG_ROW_LIMIT } from '../limits.js';
import { type Detail, PartialError, readPartial } from '../partial-format.js';
import { RETENTION_US } from '../tier.js';
import { LASTING_ROW_BYTES } from './block.js';
import { FreshCursor, type RowBounds, type RowCursor, SortedCursor } from './cursor.js';
import type { LogsReading } from './logs-reading.js';
import { compareRows, type Row } from './row-order.js';
import type { RowsView } from './rows-view.js';
import type { RunInfo } from './run.js';

const FORM = 'rows 4';

export interface LogsParameters {
  readonly project: string;
  /** How far back the caller's tier may look, µs. */
  readonly retentionUs: number;
  /**
   * Inclusive bounds in µs; null is unbounded. The wire's strict lower bound is converted where it is read.
   */
  readonly startUs: number | null;
  readonly endUs: number | null;
}

/** Rows of the project that may belong to the answer, newest first. */
export interface RowSource {
  /** No row of it that qualifies is newer. */
  readonly newestUs: number;
  /** Throws a SegmentError for a run that can't be read. */
  open(): RowCursor;
}

export interface MergedLogs {
  /** Newest first. */
  readonly rows: readonly Uint8Array[];
  /** The time of the last of LOG_ROW_LIMIT rows, as older ones don't belong to them; with fewer -Infinity. */
  readonly reachUs: number;
  /** The last time at which all of them are visible, µs since the epoch; Infinity without rows. */
  readonly visibleUntilUs: number;
}

/** To be merged, or written, in the same turn and once: what it leads to may change after it. */
export interface LogsPartial {
  readonly sources: readonly RowSource[];
  /** Of one that was read. */
  readonly came?: CameRows;
}

/** What came of another process's rows. */
export interface CameRows {
  /** Newest first. */
  readonly rows: readonly ReadRow[];
  /** How many of them came with their bodies. */
  readonly bodyCount: number;
  /** Whether there are older ones that did not come. */
  readonly hasMore: boolean;
}

/** Of another process's rows one is needed that did not come: what it was reckoned with has gone since. */
export class RowDidNotCome extends Error {
  override name = 'RowDidNotCome';
}

/** What the rows that came from other processes take, bytes: the replies, and copies of large ones. */
export function cameBytes(partials: readonly LogsPartial[]): number {
  let byteCount = 0;
  for (const { came } of partials)
    for (const { row } of came?.rows ?? [])
      byteCount += row.length < LASTING_ROW_BYTES ? row.length : 2 * row.length;
  return byteCount;
}

/**
 * A row is visible as long as both the caller's retention and that of the ring that holds it reach back to
 * it, to the microsecond. With a `reading`, the same each time, what was read is not read again. O(runs that
 * have the project).
 */
export function collectLogs(
  view: RowsView,
  parameters: LogsParameters,
  nowUs: number,
  reading: LogsReading | null = null,
): LogsPartial {
  const { project, endUs } = parameters;
  const sources: RowSource[] = [];
  view.retryUnreadable(nowUs);
  for (const run of view.freshRuns()) {
    const bounds = boundsIn(run.info, parameters, nowUs);
    const lastUs = lastVisibleUs(run.info, parameters);
    if (lastUs < bounds.lowestUs || lastUs < run.info.startUs) continue;
    const rows = run.rowsOf(project);
    if (rows === undefined) continue;
    sources.push({
      newestUs: Math.min(lastUs, run.timeUs(rows.ordinals[rows.count - 1])),
      open: () => new FreshCursor(run, rows, bounds, reading),
    });
  }
  for (const { run, projectIndex } of view.sortedRunsOf(project)) {
    const { oldestUs, newestUs } = run.directory;
    const bounds = boundsIn(run.info, parameters, nowUs);
    if (newestUs[projectIndex] < bounds.lowestUs) continue;
    if (endUs !== null && oldestUs[projectIndex] > endUs) continue;
    sources.push({
      newestUs: Math.min(newestUs[projectIndex], endUs ?? Infinity),
      open: () => new SortedCursor(run, projectIndex, bounds, reading),
    });
  }
  for (const run of view.unreadableRuns()) {
    const lastUs = lastVisibleUs(run.info, parameters);
    if (lastUs < boundsIn(run.info, parameters, nowUs).lowestUs || lastUs < run.info.startUs) continue;
    sources.push({
      newestUs: lastUs,
      open: () => {
        throw run.reason;
      },
    });
  }
  return { sources };
}

/**
 * The newest rows, at most LOG_ROW_LIMIT, in the order of row-order.ts; null as soon as they are more than
 * `byteLimit` bytes: then it may be collected and merged again with a higher limit, in another turn. Throws a
 * SegmentError when a row that may belong to the answer can't be read; a RowDidNotCome, which lackingRows in the same turn
 * rules out. Cost: O(rows returned × runs with rows among them), and the blocks that hold these rows are read.
 */
export function mergeLogs(partials: readonly LogsPartial[], byteLimit: number): MergedLogs | null;
export function mergeLogs(partials: readonly LogsPartial[]): MergedLogs;
export function mergeLogs(partials: readonly LogsPartial[], byteLimit = Infinity): MergedLogs | null {
  const rows: Uint8Array[] = [];
  let byteCount = 0;
  let reachUs = -Infinity;
  let visibleUntilUs = Infinity;
  const isWhole = takeNewest(partials, ({ timeUs, keptUs, row }) => {
    if (row === NO_BODY) throw new RowDidNotCome();
    byteCount += row.length;
    if (byteCount > byteLimit) return false;
    rows.push(row);
    if (rows.length === LOG_ROW_LIMIT) reachUs = timeUs;
    visibleUntilUs = Math.min(visibleUntilUs, timeUs + keptUs);
    return true;
  });
  return isWhole ? { rows, reachUs, visibleUntilUs } : null;
}

/** Of rows, and of bytes of their bodies. */
const ALL_ROWS: Detail = { count: LOG_ROW_LIMIT, byteLimit: Infinity };

/** What several shards have, as of one. */
export function combineLogs(partials: readonly LogsPartial[]): LogsPartial {
  return { sources: partials.flatMap(({ sources }) => sources) };
}

/**
 * As it is now: the newest `count` rows, and of these so many bodies that they take no more than `byteLimit`. Throws a
 * SegmentError as mergeLogs does. At most LOG_ROW_LIMIT rows.
 */
export function writeLogs(
  out: ByteWriter,
  partial: LogsPartial,
  parameters: LogsParameters,
  nowUs: number,
  { count, byteLimit }: Detail = ALL_ROWS,
): void {
  out.string(FORM);
  out.string(parameters.project);
  for (const boundUs of boundsOf(parameters, nowUs)) out.f64(boundUs);
  const countsAt = out.length;
  out.u32(0);
  out.u32(0);
  out.u8(0);
  const bodies: Uint8Array[] = [];
  let rowCount = 0;
  let byteCount = 0;
  const isWhole = takeNewest([partial], (cursor) => {
    if (rowCount === count) return false;
    const { row } = cursor;
    byteCount += row.length;
    if (byteCount <= byteLimit) bodies.push(row);
    out.f64(cursor.timeUs);
    out.u32(cursor.idHash);
    out.u32(row.length);
    rowCount++;
    return true;
  });
  out.replaceU32(countsAt, rowCount);
  out.replaceU32(countsAt + 4, bodies.length);
  out.replaceU8(countsAt + 8, isWhole ? 0 : 1);
  for (const body of bodies) out.bytes(body);
}

/** Throws a PartialError, also for the answer to another question. Small rows are views into `bytes`. */
export function readLogs(bytes: Uint8Array, parameters: LogsParameters, nowUs: number): LogsPartial {
  return readPartial(FORM, bytes, (content) => {
    let isSame = content.string() === parameters.project;
    for (const boundUs of boundsOf(parameters, nowUs)) isSame = content.f64() === boundUs && isSame;
    if (!isSame) throw new PartialError('a partial answer is to another question');
    const count = content.u32();
    const bodyCount = content.u32();
    const hasMore = content.u8() === 1;
    if (count > LOG_ROW_LIMIT || bodyCount > count || (hasMore && count === LOG_ROW_LIMIT))
      throw new PartialError('a partial answer has more rows than an answer');
    const rows: { -readonly [Key in keyof ReadRow]: ReadRow[Key] }[] = [];
    for (let i = 0; i < count; i++) {
      const place = { timeUs: content.f64(), idHash: content.u32(), length: content.u32(), row: NO_BODY };
      if (!Number.isSafeInteger(place.timeUs))
        throw new PartialError('a row of a partial answer has no time');
      rows.push(place);
    }
    for (const place of rows.slice(0, bodyCount)) {
      const row = content.bytes(place.length);
      // A large one may be sent as it is, and then keeps alive what it is a part of.
      place.row = row.length < LASTING_ROW_BYTES ? row : row.slice();
    }
    for (let i = 1; i < count; i++)
      if (comparePlaces(rows[i - 1], rows[i]) < 0 || (i < bodyCount && compareRows(rows[i - 1], rows[i]) < 0))
        throw new PartialError('the rows of a partial answer are out of order');
    const came = { rows, bodyCount, hasMore };
    return {
      sources: count === 0 ? [] : [{ newestUs: rows[0].timeUs, open: () => new ReadCursor(came) }],
      came,
    };
  });
}

/** Where a row belongs among others, all but its body. */
export type Place = Pick<ReadRow, 'timeUs' | 'idHash'>;

export function comparePlaces(a: Place, b: Place): number {
  return a.timeUs - b.timeUs || b.idHash - a.idHash;
}

function boundsOf({ retentionUs, startUs, endUs }: LogsParameters, nowUs: number): number[] {
  return [retentionUs, startUs ?? -Infinity, endUs ?? Infinity, nowUs];
}

export interface ReadRow extends Row {
  readonly length: number;
}

/** In the place of a body that did not come. */
const NO_BODY = new Uint8Array(0);

/** Rows that another process has written. */
class ReadCursor implements RowCursor {
  /** It is not told of which tier they are: they count as expired. */
  readonly keptUs = 0;
  readonly #rows: readonly ReadRow[];
  readonly #hasMore: boolean;
  #position = -1;

  constructor({ rows, hasMore }: CameRows) {
    this.#rows = rows;
    this.#hasMore = hasMore;
  }

  get timeUs(): number {
    return this.#rows[this.#position].timeUs;
  }

  get idHash(): number {
    return this.#rows[this.#position].idHash;
  }

  get row(): Uint8Array {
    return this.#rows[this.#position].row;
  }

  advance(): boolean {
    this.#position += 1;
    if (this.#position < this.#rows.length) return true;
    if (this.#hasMore) throw new RowDidNotCome();
    return false;
  }
}

/**
 * Hands over the newest rows, one after another, until there are LOG_ROW_LIMIT or `take` wants no more: then
 * false.
 */
function takeNewest(partials: readonly LogsPartial[], take: (row: RowCursor) => boolean): boolean {
  const newest = new NewestRows(partials.flatMap(({ sources }) => sources));
  for (let taken = 0; taken < LOG_ROW_LIMIT; taken++) {
    const row = newest.next();
    if (row === null) return true;
    if (!take(row)) return false;
  }
  return true;
}

/** Rows of all sources, newest first. A source is opened when its turn comes. */
export class NewestRows {
  /** The newest last. */
  readonly #unopened: RowSource[];
  readonly #cursors: RowCursor[] = [];
  /** Of the row that was handed over last. */
  #last: RowCursor | null = null;

  constructor(sources: readonly RowSource[]) {
    this.#unopened = sources.toSorted((a, b) => a.newestUs - b.newestUs);
  }

  /** The next one, until it is called again; null: there is none. Throws as mergeLogs does. */
  next(): RowCursor | null {
    if (this.#last?.advance() === false) this.#cursors.splice(this.#cursors.indexOf(this.#last), 1);
    let newest = newestCursor(this.#cursors);
    for (
      let source = this.#unopened.at(-1);
      source !== undefined && (newest === null || source.newestUs >= newest.timeUs);
      source = this.#unopened.at(-1)
    ) {
      this.#unopened.pop();
      const cursor = source.open();
      if (cursor.advance()) this.#cursors.push(cursor);
      newest = newestCursor(this.#cursors);
    }
    this.#last = newest;
    return newest;
  }
}

function newestCursor(cursors: readonly RowCursor[]): RowCursor | null {
  let newest: RowCursor | null = null;
  for (const cursor of cursors) if (newest === null || compareRows(cursor, newest) > 0) newest = cursor;
  return newest;
}

function boundsIn(
  { tierClass, visibleFromUs }: RunInfo,
  { retentionUs, startUs, endUs }: LogsParameters,
  nowUs: number,
): RowBounds {
  const keptUs = Math.min(retentionUs, RETENTION_US[tierClass]);
  return { lowestUs: Math.max(startUs ?? -Infinity, nowUs - keptUs, visibleFromUs), endUs, keptUs };
}

function lastVisibleUs({ startUs, spanUs }: RunInfo, { endUs }: LogsParameters): number {
  return Math.min(startUs + spanUs - 1, endUs ?? Infinity);
}
