/**
 * The directory of a sorted run: which rows are whose, and where they stand; nothing per row. It is the last
 * block of the run's file.
 *
 *   row         0    1    2    3    4    5    6    7    8     counted through the file
 *   blocks     [0 ──────────][3 ─────────][6 ───────────]     first row and its time, 12 bytes a block
 *   projects    a ─────  b ────────────────────────  c        first row, row count, oldest and newest time
 *
 *   rowCount u32 │ rowByteCount f64 │ blockCount u32 │ projectCount u32 │ firstRow u32 × blocks │ firstTimeUs f64 × blocks
 *   │ per project: name, firstRow u32, rowCount u32, oldestUs f64, newestUs f64
 */

import { upperBound } from '../binary-search.js';
import { ByteReader, ByteWriter } from '../bytes.js';
import { MAX_NAME_BYTES } from '../limits.js';
import { type BlockReader, SegmentError } from '../segments.js';
import { finished } from '../steps.js';

/** Of a project beside the characters of its name. */
const PROJECT_BYTES = 28;

/** That a writer wants to have free before it writes a name: it may take three bytes a character. */
const NAME_ROOM_BYTES = 3 * MAX_NAME_BYTES;

/** What is done with each project of a run is done with so many a step: half a millisecond where their names are long. */
export const PROJECTS_A_STEP = 256;

export interface RunDirectory {
  readonly rowCount: number;
  readonly rowByteCount: number;
  /** Ascending; block i holds rows [blockFirstRows[i], blockFirstRows[i + 1]). */
  readonly blockFirstRows: Uint32Array;
  readonly blockFirstTimesUs: Float64Array;
  /** Ascending as strings; parallel to the columns below. */
  readonly projects: string[];
  readonly projectFirstRows: Uint32Array;
  readonly projectRowCounts: Uint32Array;
  readonly oldestUs: Float64Array;
  readonly newestUs: Float64Array;
}

export function encodeDirectory(directory: RunDirectory): Uint8Array {
  return finished(encodingDirectory(directory));
}

/** The same in steps, in memory of its own: it may have many names, and long ones. */
export function* encodingDirectory(directory: RunDirectory): Generator<void, Uint8Array<ArrayBuffer>> {
  const { projects, blockFirstRows, blockFirstTimesUs } = directory;
  const nameLengths = projects.reduce((sum, { length }) => sum + length, 0);
  const beside = 18 + NAME_ROOM_BYTES + 12 * blockFirstRows.length;
  const writer = new ByteWriter(beside + PROJECT_BYTES * projects.length + nameLengths);
  writer.u32(directory.rowCount);
  writer.f64(directory.rowByteCount);
  writer.u32(blockFirstRows.length);
  writer.u32(projects.length);
  for (const row of blockFirstRows) writer.u32(row);
  for (const timeUs of blockFirstTimesUs) writer.f64(timeUs);
  for (let i = 0; i < projects.length; i++) {
    writer.string(projects[i]);
    writer.u32(directory.projectFirstRows[i]);
    writer.u32(directory.projectRowCounts[i]);
    writer.f64(directory.oldestUs[i]);
    writer.f64(directory.newestUs[i]);
    if (i % PROJECTS_A_STEP === PROJECTS_A_STEP - 1) yield;
  }
  return writer.written();
}

/** Throws a SegmentError for bytes that are no directory. */
export function decodeDirectory(bytes: Uint8Array): RunDirectory {
  return finished(decodingDirectory(bytes));
}

/** The same in steps. `shared` may return another string of the same text. */
export function* decodingDirectory(
  bytes: Uint8Array,
  shared = (name: string) => name,
): Generator<void, RunDirectory> {
  const reader = new ByteReader(bytes);
  const rowCount = reader.u32();
  const rowByteCount = reader.f64();
  const blockCount = reader.u32();
  const projectCount = reader.u32();
  if (reader.remaining < 12 * blockCount + PROJECT_BYTES * projectCount)
    throw new SegmentError('a directory of rows is shorter than it says');
  const directory: RunDirectory = {
    rowCount,
    rowByteCount,
    blockFirstRows: reader.u32s(blockCount),
    blockFirstTimesUs: reader.f64s(blockCount),
    projects: new Array(projectCount),
    projectFirstRows: new Uint32Array(projectCount),
    projectRowCounts: new Uint32Array(projectCount),
    oldestUs: new Float64Array(projectCount),
    newestUs: new Float64Array(projectCount),
  };
  for (let i = 0; i < projectCount; i++) {
    directory.projects[i] = shared(reader.string());
    directory.projectFirstRows[i] = reader.u32();
    directory.projectRowCounts[i] = reader.u32();
    directory.oldestUs[i] = reader.f64();
    directory.newestUs[i] = reader.f64();
    if (i % PROJECTS_A_STEP === PROJECTS_A_STEP - 1) yield;
  }
  if (reader.remaining > 0) throw new SegmentError('a directory of rows is longer than it says');
  return directory;
}

/** The block that holds a row. O(log blocks). */
export function blockOfRow({ blockFirstRows }: RunDirectory, row: number): number {
  return upperBound(blockFirstRows, 1, blockFirstRows.length, row) - 1;
}

/** Throws a SegmentError where the store has no such file. */
export function storedDirectory(reader: BlockReader, file: string): Uint8Array {
  const blockCount = reader.blockCount(file);
  if (blockCount === 0) throw new SegmentError('a row file that the manifest names is not in the store');
  return reader.block(file, blockCount - 1);
}
