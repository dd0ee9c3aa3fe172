/**
 * What is known of a run: rows of one tier class and one span of time, in one file. Rows come into fresh runs
 * of an hour, in order of arrival; compactions make sorted runs of them, of an hour and then of a day (see
 * compaction-policy.ts).
 */

import { ByteReader, ByteWriter } from '../bytes.js';
import { SegmentError } from '../segments.js';
import { TIER_CLASSES, type TierClass } from '../tier.js';
import { US_PER_DAY, US_PER_HOUR } from '../time.js';

export type RunKind = 'fresh' | 'sorted';

export interface RunInfo {
  /** Counts up within a shard; never used twice. */
  readonly id: number;
  readonly kind: RunKind;
  readonly tierClass: TierClass;
  readonly startUs: number;
  /** An hour or a day. */
  readonly spanUs: number;
  /** Rows before it have expired; they are still in the file, but not in any answer. */
  visibleFromUs: number;
  /** Whether rows may no longer be added. Always so for sorted runs. */
  isClosed: boolean;
}

/** The name of the run's file, such as `90d/h0000494123-00000017`: class, hour since the epoch, id. */
export function runFile({ id, tierClass, startUs, spanUs }: RunInfo): string {
  const span = spanUs === US_PER_HOUR ? 'h' : 'd';
  const hour = String(startUs / US_PER_HOUR).padStart(10, '0');
  return `${tierClass}/${span}${hour}-${String(id).padStart(8, '0')}`;
}

const RUN_FILE = /^([0-9]+d)\/([hd])([0-9]{10})-([0-9]{8,16})$/;

/** What the name of a run's file says of it; null for a name of no run. */
export function parseRunFile(file: string, kind: RunKind, isClosed: boolean): RunInfo | null {
  const match = RUN_FILE.exec(file);
  const tierClass = TIER_CLASSES.find((known) => known === match?.[1]);
  if (match === null || tierClass === undefined) return null;
  return {
    id: Number(match[4]),
    kind,
    tierClass,
    startUs: Number(match[3]) * US_PER_HOUR,
    spanUs: match[2] === 'h' ? US_PER_HOUR : US_PER_DAY,
    visibleFromUs: -Infinity,
    isClosed,
  };
}

const BYTES_A_RUN = 64;

/** manifest = next id, run count, runs */
export function encodeManifest(nextId: number, runs: Iterable<RunInfo>): Uint8Array {
  const list = [...runs];
  const writer = new ByteWriter(16 + BYTES_A_RUN * list.length);
  writer.f64(nextId);
  writer.u32(list.length);
  for (const run of list) {
    writer.f64(run.id);
    writer.u8(run.kind === 'fresh' ? 0 : 1);
    writer.u8(TIER_CLASSES.indexOf(run.tierClass));
    writer.f64(run.startUs);
    writer.f64(run.spanUs);
    writer.f64(run.visibleFromUs);
    writer.u8(run.isClosed ? 1 : 0);
  }
  return writer.finish();
}

/** Throws a SegmentError for bytes that are no manifest. */
export function decodeManifest(bytes: Uint8Array): { nextId: number; runs: RunInfo[] } {
  const reader = new ByteReader(bytes);
  const nextId = reader.f64();
  const runs = Array.from({ length: reader.u32() }, (): RunInfo => {
    const id = reader.f64();
    const kind = reader.u8() === 0 ? 'fresh' : 'sorted';
    const tierClass = TIER_CLASSES[reader.u8()];
    if (tierClass === undefined)
      throw new SegmentError('the manifest of row files names an unknown tier class');
    const startUs = reader.f64();
    const spanUs = reader.f64();
    const visibleFromUs = reader.f64();
    return { id, kind, tierClass, startUs, spanUs, visibleFromUs, isClosed: reader.u8() === 1 };
  });
  if (reader.remaining > 0) throw new SegmentError('the manifest of row files is longer than it says');
  return { nextId, runs };
}
