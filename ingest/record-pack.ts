/**
 * Decoded records as columns in one buffer, which a thread can hand to another without copying.
 *
 *   f64   nextOffset × records │ timestampUs × entries │ (relay) executionTimeMs, statusCode × entries
 *   u32   entryEnd × records │ columns of the kind × entries
 *           edge: idHash, project, rowEnd, urlEnd │ relay: project, functionId
 *   u8    (edge) tierClass × entries │ areas × entries │ row bytes │ URL bytes
 *
 * Projects and functions are places in a list of names; what an entry lacks is NONE.
 */

import type { EdgeEntry, RelayEntry } from '../engine/entry.js';
import { TIER_CLASSES } from '../engine/tier.js';

/** A record whole: its entries, a reason for each other element, and the offset after it. */
export interface AppliedRecord<Entry> {
  readonly entries: readonly Entry[];
  readonly rejectedReasons: readonly string[];
  readonly nextOffset: number;
}

export interface RecordPack {
  readonly kind: 'edge' | 'relay';
  readonly recordCount: number;
  readonly entryCount: number;
  readonly names: readonly string[];
  /** The reasons of the records that have any, by the record's place. */
  readonly rejected: ReadonlyMap<number, readonly string[]>;
  readonly buffer: ArrayBuffer;
}

const NONE = 0xffffffff;
const NO_URL = 0x80;
const NO_REASONS: readonly string[] = [];

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

export function packEdge(records: readonly AppliedRecord<EdgeEntry>[]): RecordPack {
  const entries = records.flatMap((record) => record.entries);
  const entryCount = entries.length;
  let byteCount = 0;
  for (const { row, url } of entries) byteCount += row.length + (url?.length ?? 0);
  const columns = edgeColumns(records.length, entryCount, byteCount);
  const names = new Names();
  let rowEnd = 0;
  let urlEnd = 0;
  const { bytes } = columns;
  for (let i = 0; i < entryCount; i++) {
    const { timestampUs, idHash, project, tierClass, areas, row } = entries[i];
    columns.timestampsUs[i] = timestampUs;
    columns.idHashes[i] = idHash;
    columns.projects[i] = names.placeOf(project);
    columns.tierClasses[i] = TIER_CLASSES.indexOf(tierClass);
    columns.areas[i] = entries[i].url === null ? areas | NO_URL : areas;
    bytes.set(row, rowEnd);
    rowEnd += row.length;
    columns.rowEnds[i] = rowEnd;
  }
  for (let i = 0; i < entryCount; i++) {
    const { url } = entries[i];
    if (url !== null) {
      bytes.set(url, rowEnd + urlEnd);
      urlEnd += url.length;
    }
    columns.urlEnds[i] = urlEnd;
  }
  return packed('edge', records, columns, names.list);
}

export function packRelay(records: readonly AppliedRecord<RelayEntry>[]): RecordPack {
  const entries = records.flatMap((record) => record.entries);
  const columns = relayColumns(records.length, entries.length);
  const names = new Names();
  for (let i = 0; i < entries.length; i++) {
    const { timestampUs, project, functionId, statusCode, executionTimeMs } = entries[i];
    columns.timestampsUs[i] = timestampUs;
    columns.executionTimesMs[i] = executionTimeMs;
    columns.projects[i] = names.placeOf(project);
    columns.functionIds[i] = functionId === null ? NONE : names.placeOf(functionId);
    columns.statusCodes[i] = statusCode;
  }
  return packed('relay', records, columns, names.list);
}

/** The records of a pack, in order. The rows and URLs of their entries are views of its buffer. */
export function* unpackRecords(
  pack: RecordPack,
): Generator<AppliedRecord<EdgeEntry> | AppliedRecord<RelayEntry>, void, void> {
  const { kind, recordCount, entryCount, rejected, buffer } = pack;
  const { nextOffsets, entryEnds } = recordColumns(
    buffer,
    recordCount,
    entryCount * (kind === 'edge' ? 1 : 3),
  );
  const entryAt = kind === 'edge' ? edgeReader(pack) : relayReader(pack);
  let at = 0;
  for (let r = 0; r < recordCount; r++) {
    const entries = [];
    for (const end = entryEnds[r]; at < end; at++) entries.push(entryAt(at));
    yield {
      entries,
      rejectedReasons: rejected.get(r) ?? NO_REASONS,
      nextOffset: nextOffsets[r],
    } as AppliedRecord<EdgeEntry> | AppliedRecord<RelayEntry>;
  }
}

function edgeReader({ buffer, names, recordCount, entryCount }: RecordPack): (at: number) => EdgeEntry {
  const columns = edgeColumnsOf(buffer, recordCount, entryCount);
  const { bytes, rowEnds, urlEnds } = columns;
  const urlsStart = entryCount === 0 ? 0 : rowEnds[entryCount - 1];
  return (at) => {
    const rowStart = at === 0 ? 0 : rowEnds[at - 1];
    const urlStart = urlsStart + (at === 0 ? 0 : urlEnds[at - 1]);
    const areas = columns.areas[at];
    return {
      timestampUs: columns.timestampsUs[at],
      project: names[columns.projects[at]],
      tierClass: TIER_CLASSES[columns.tierClasses[at]],
      idHash: columns.idHashes[at],
      row: bytes.subarray(rowStart, rowEnds[at]),
      url: (areas & NO_URL) !== 0 ? null : bytes.subarray(urlStart, urlsStart + urlEnds[at]),
      areas: areas & ~NO_URL,
    };
  };
}

function relayReader({ buffer, names, recordCount, entryCount }: RecordPack): (at: number) => RelayEntry {
  const columns = relayColumnsOf(buffer, recordCount, entryCount);
  return (at) => {
    const functionId = columns.functionIds[at];
    return {
      timestampUs: columns.timestampsUs[at],
      project: names[columns.projects[at]],
      functionId: functionId === NONE ? null : names[functionId],
      statusCode: columns.statusCodes[at],
      executionTimeMs: columns.executionTimesMs[at],
    };
  };
}

interface RecordColumns {
  readonly buffer: ArrayBuffer;
  readonly nextOffsets: Float64Array;
  readonly timestampsUs: Float64Array;
  readonly entryEnds: Uint32Array;
}

/** The columns that both kinds have; `floatCount` numbers of 64 bits follow those of the records. */
function recordColumns(buffer: ArrayBuffer, recordCount: number, floatCount: number): RecordColumns {
  return {
    buffer,
    nextOffsets: new Float64Array(buffer, 0, recordCount),
    timestampsUs: new Float64Array(buffer, 8 * recordCount, floatCount),
    entryEnds: new Uint32Array(buffer, 8 * (recordCount + floatCount), recordCount),
  };
}

function edgeColumns(recordCount: number, entryCount: number, byteCount: number) {
  const buffer = new ArrayBuffer(12 * recordCount + 26 * entryCount + byteCount);
  return edgeColumnsOf(buffer, recordCount, entryCount);
}

function edgeColumnsOf(buffer: ArrayBuffer, recordCount: number, entryCount: number) {
  const words = 12 * recordCount + 8 * entryCount;
  const bytes = words + 16 * entryCount;
  return {
    ...recordColumns(buffer, recordCount, entryCount),
    idHashes: new Uint32Array(buffer, words, entryCount),
    projects: new Uint32Array(buffer, words + 4 * entryCount, entryCount),
    rowEnds: new Uint32Array(buffer, words + 8 * entryCount, entryCount),
    urlEnds: new Uint32Array(buffer, words + 12 * entryCount, entryCount),
    tierClasses: new Uint8Array(buffer, bytes, entryCount),
    areas: new Uint8Array(buffer, bytes + entryCount, entryCount),
    bytes: new Uint8Array(buffer, bytes + 2 * entryCount),
  };
}

function relayColumns(recordCount: number, entryCount: number) {
  return relayColumnsOf(new ArrayBuffer(12 * recordCount + 32 * entryCount), recordCount, entryCount);
}

function relayColumnsOf(buffer: ArrayBuffer, recordCount: number, entryCount: number) {
  const words = 12 * recordCount + 24 * entryCount;
  return {
    ...recordColumns(buffer, recordCount, 3 * entryCount),
    executionTimesMs: new Float64Array(buffer, 8 * (recordCount + entryCount), entryCount),
    projects: new Uint32Array(buffer, words, entryCount),
    functionIds: new Uint32Array(buffer, words + 4 * entryCount, entryCount),
    statusCodes: new Float64Array(buffer, 8 * (recordCount + 2 * entryCount), entryCount),
  };
}

function packed(
  kind: RecordPack['kind'],
  records: readonly AppliedRecord<unknown>[],
  { buffer, nextOffsets, entryEnds }: RecordColumns,
  names: readonly string[],
): RecordPack {
  const rejected = new Map<number, readonly string[]>();
  let entryCount = 0;
  for (let r = 0; r < records.length; r++) {
    const { entries, rejectedReasons, nextOffset } = records[r];
    entryCount += entries.length;
    entryEnds[r] = entryCount;
    nextOffsets[r] = nextOffset;
    if (rejectedReasons.length > 0) rejected.set(r, rejectedReasons);
  }
  return { kind, recordCount: records.length, entryCount, names, rejected, buffer };
}
