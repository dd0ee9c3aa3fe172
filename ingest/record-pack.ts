/**
 * Decoded records as columns in one buffer, which a thread can hand to another without copying.
 *
 *   bytes, edge only: row 0 │ URL 0 │ row 1 │ URL 1 │ … │ as far as the next multiple of 8
 *   f64   nextOffset × records │ columns of the kind × entries
 *           edge: timestampUs │ relay: timestampUs, executionTimeMs, statusCode
 *   u32   entryEnd × records │ columns of the kind × entries
 *           edge: idHash, project, rowEnd, urlEnd │ relay: project, functionId
 *   u8    columns of the kind × entries
 *           edge: tierClass, areas, outcome
 *
 * Projects and functions are places in a list of names; what an entry lacks is NONE.
 */

import { assert } from '../engine/assert.js';
import type { EdgeEntry, RelayEntry } from '../engine/entry.js';
import { TIER_CLASSES } from '../engine/tier.js';
import type { BufferPool } from './buffer-pool.js';
import type { Mark } from './record-marks.js';

type Entry = EdgeEntry | RelayEntry;
type Kind = 'edge' | 'relay';

/** A record whole: its entries, a reason for each other element, and the offset after it. */
export interface AppliedRecord<E> {
  readonly entries: readonly E[];
  readonly rejectedReasons: readonly string[];
  readonly nextOffset: number;
}

/** With the mark of the last record before the next offset, where it was taken. */
export interface PackedRecord<E> extends AppliedRecord<E> {
  readonly mark: Mark | null;
}

export interface RecordPack {
  readonly kind: Kind;
  readonly recordCount: number;
  readonly entryCount: number;
  /** Where the columns begin. */
  readonly byteCount: number;
  readonly names: readonly string[];
  /** The reasons of the records that have any, by the record's place. */
  readonly rejected: ReadonlyMap<number, readonly string[]>;
  /** By the record's place. */
  readonly marks: ReadonlyMap<number, Mark>;
  /** May be longer than what is in it. */
  readonly buffer: ArrayBuffer;
}

/** How many columns of each width the entries of a kind have. */
const WIDTHS = { edge: { f64: 1, u32: 4, u8: 3 }, relay: { f64: 3, u32: 2, u8: 0 } } as const;

const NONE = 0xffffffff;
const NO_URL = 0x80;
const NO_REASONS: readonly string[] = [];
const NO_BYTES = new Uint8Array(0);

/** Takes records one after another, whose entries' bytes it copies, and makes packs of them. */
export class PackBuilder {
  readonly #kind: Kind;
  readonly #buffers: BufferPool;
  #bytes = NO_BYTES;
  #byteCount = 0;
  /** As long as the last pack was. */
  #likelyBytes = 0;
  #entryCount = 0;
  #names = new Names();
  #rejected = new Map<number, readonly string[]>();
  #marks = new Map<number, Mark>();
  #nextOffsets: number[] = [];
  #entryEnds: number[] = [];
  #columns: Record<'f64' | 'u32' | 'u8', number[][]>;

  constructor(kind: Kind, buffers: BufferPool) {
    this.#kind = kind;
    this.#buffers = buffers;
    this.#columns = emptyColumns(kind);
  }

  get recordCount(): number {
    return this.#nextOffsets.length;
  }

  get entryCount(): number {
    return this.#entryCount;
  }

  /** Of rows and URLs. */
  get byteCount(): number {
    return this.#byteCount;
  }

  add({ entries, rejectedReasons, nextOffset }: AppliedRecord<Entry>): void {
    if (this.#kind === 'edge') for (const entry of entries as readonly EdgeEntry[]) this.#addEdge(entry);
    else for (const entry of entries as readonly RelayEntry[]) this.#addRelay(entry);
    this.#entryCount += entries.length;
    if (rejectedReasons.length > 0) this.#rejected.set(this.recordCount, rejectedReasons);
    this.#nextOffsets.push(nextOffset);
    this.#entryEnds.push(this.#entryCount);
  }

  /** Marks the record that was added last. */
  mark(mark: Mark): void {
    this.#marks.set(this.recordCount - 1, mark);
  }

  /** Everything that was added since the last was taken; its buffer is one of the pool's. */
  take(): RecordPack {
    const { recordCount } = this;
    const pack = {
      kind: this.#kind,
      recordCount,
      entryCount: this.#entryCount,
      byteCount: Math.ceil(this.#byteCount / 8) * 8,
      names: this.#names.list,
      rejected: this.#rejected,
      marks: this.#marks,
    };
    this.#reserve(pack.byteCount + columnBytes(pack));
    const buffer = this.#bytes.buffer as ArrayBuffer;
    const { nextOffsets, entryEnds, f64, u32, u8 } = columnsOf({ ...pack, buffer });
    nextOffsets.set(this.#nextOffsets);
    entryEnds.set(this.#entryEnds);
    const { f64: floats, u32: words, u8: octets } = this.#columns;
    for (let c = 0; c < f64.length; c++) f64[c].set(floats[c]);
    for (let c = 0; c < u32.length; c++) u32[c].set(words[c]);
    for (let c = 0; c < u8.length; c++) u8[c].set(octets[c]);

    this.#likelyBytes = pack.byteCount + columnBytes(pack);
    this.#bytes = NO_BYTES;
    this.#byteCount = 0;
    this.#entryCount = 0;
    this.#names = new Names();
    this.#rejected = new Map();
    this.#marks = new Map();
    this.#nextOffsets = [];
    this.#entryEnds = [];
    this.#columns = emptyColumns(this.#kind);
    return { ...pack, buffer };
  }

  #addEdge({ timestampUs, idHash, project, tierClass, areas, outcome, row, url }: EdgeEntry): void {
    const { f64, u32, u8 } = this.#columns;
    f64[0].push(timestampUs);
    u32[0].push(idHash);
    u32[1].push(this.#names.placeOf(project));
    u32[2].push(this.#write(row));
    u32[3].push(url === null ? this.#byteCount : this.#write(url));
    u8[0].push(TIER_CLASSES.indexOf(tierClass));
    u8[1].push(url === null ? areas | NO_URL : areas);
    u8[2].push(outcome);
  }

  #addRelay({ timestampUs, project, functionId, statusCode, executionTimeMs }: RelayEntry): void {
    const { f64, u32 } = this.#columns;
    f64[0].push(timestampUs);
    f64[1].push(executionTimeMs);
    f64[2].push(statusCode);
    u32[0].push(this.#names.placeOf(project));
    u32[1].push(functionId === null ? NONE : this.#names.placeOf(functionId));
  }

  /** Returns where it ends. */
  #write(bytes: Uint8Array): number {
    this.#reserve(this.#byteCount + bytes.length);
    this.#bytes.set(bytes, this.#byteCount);
    this.#byteCount += bytes.length;
    return this.#byteCount;
  }

  #reserve(byteCount: number): void {
    if (byteCount <= this.#bytes.length && this.#bytes !== NO_BYTES) return;
    const grown = new Uint8Array(this.#buffers.take(Math.max(byteCount, this.#likelyBytes)));
    grown.set(this.#bytes.subarray(0, this.#byteCount));
    if (this.#bytes !== NO_BYTES) this.#buffers.give(this.#bytes.buffer as ArrayBuffer);
    this.#bytes = grown;
  }
}

/** The records of a pack, in order. The rows and URLs of their entries are views of its buffer. */
export function* unpackRecords(
  pack: RecordPack,
): Generator<PackedRecord<EdgeEntry> | PackedRecord<RelayEntry>, void, void> {
  const { nextOffsets, entryEnds, ...columns } = columnsOf(pack);
  const entryAt = pack.kind === 'edge' ? edgeReader(pack, columns) : relayReader(pack, columns);
  let at = 0;
  for (let r = 0; r < pack.recordCount; r++) {
    const entries = [];
    for (const end = entryEnds[r]; at < end; at++) entries.push(entryAt(at));
    yield {
      entries,
      rejectedReasons: pack.rejected.get(r) ?? NO_REASONS,
      nextOffset: nextOffsets[r],
      mark: pack.marks.get(r) ?? null,
    } as PackedRecord<EdgeEntry> | PackedRecord<RelayEntry>;
  }
}

interface EntryColumns {
  readonly f64: readonly Float64Array[];
  readonly u32: readonly Uint32Array[];
  readonly u8: readonly Uint8Array[];
}

function edgeReader({ buffer, names, byteCount }: RecordPack, { f64, u32, u8 }: EntryColumns) {
  const bytes = new Uint8Array(buffer, 0, byteCount);
  const [timestampsUs] = f64;
  const [idHashes, projects, rowEnds, urlEnds] = u32;
  const [tierClasses, areas, outcomes] = u8;
  return (at: number): EdgeEntry => {
    const isWithoutUrl = (areas[at] & NO_URL) !== 0;
    return {
      timestampUs: timestampsUs[at],
      project: names[projects[at]],
      tierClass: TIER_CLASSES[tierClasses[at]],
      idHash: idHashes[at],
      row: bytes.subarray(at === 0 ? 0 : urlEnds[at - 1], rowEnds[at]),
      url: isWithoutUrl ? null : bytes.subarray(rowEnds[at], urlEnds[at]),
      areas: areas[at] & ~NO_URL,
      outcome: outcomes[at],
    };
  };
}

function relayReader({ names }: RecordPack, { f64, u32 }: EntryColumns) {
  const [timestampsUs, executionTimesMs, statusCodes] = f64;
  const [projects, functionIds] = u32;
  return (at: number): RelayEntry => ({
    timestampUs: timestampsUs[at],
    project: names[projects[at]],
    functionId: functionIds[at] === NONE ? null : names[functionIds[at]],
    statusCode: statusCodes[at],
    executionTimeMs: executionTimesMs[at],
  });
}

type Sizes = Pick<RecordPack, 'kind' | 'recordCount' | 'entryCount'>;

function columnBytes({ kind, recordCount, entryCount }: Sizes): number {
  const { f64, u32, u8 } = WIDTHS[kind];
  return 12 * recordCount + (8 * f64 + 4 * u32 + u8) * entryCount;
}

function columnsOf(pack: Sizes & Pick<RecordPack, 'buffer' | 'byteCount'>) {
  const { kind, recordCount, entryCount, buffer } = pack;
  let end = pack.byteCount;
  const next = (byteCount: number): number => {
    end += byteCount;
    return end - byteCount;
  };
  const { f64, u32, u8 } = WIDTHS[kind];
  const floats = (count: number) => new Float64Array(buffer, next(8 * count), count);
  const words = (count: number) => new Uint32Array(buffer, next(4 * count), count);
  const octets = (count: number) => new Uint8Array(buffer, next(count), count);
  const columns = {
    nextOffsets: floats(recordCount),
    f64: times(f64, () => floats(entryCount)),
    entryEnds: words(recordCount),
    u32: times(u32, () => words(entryCount)),
    u8: times(u8, () => octets(entryCount)),
  };
  assert(end - pack.byteCount === columnBytes(pack), 'the columns of a pack are as long as was computed');
  return columns;
}

function emptyColumns(kind: Kind) {
  const { f64, u32, u8 } = WIDTHS[kind];
  const empty = (): number[] => [];
  return { f64: times(f64, empty), u32: times(u32, empty), u8: times(u8, empty) };
}

function times<T>(count: number, make: () => T): T[] {
  return Array.from({ length: count }, make);
}

class Names {
  readonly list: string[] = [];
  readonly #places = new Map<string, number>();

  placeOf(name: string): number {
    let place = this.#places.get(name);
    if (place === undefined) {
      place = this.list.push(name) - 1;
      this.#places.set(name, place);
    }
    return place;
  }
}
