/** Takes what can be read of a run into a new sorted run, by the compaction that every run goes through. */

import { type CompactionPlan, compactRuns } from '../../engine/rows/compaction.js';
import { decodeDirectory, encodeDirectory, type RunDirectory } from '../../engine/rows/directory.js';
import { type RunInfo, runFile } from '../../engine/rows/run.js';
import type { FileBuilder } from '../../engine/segments.js';
import { finished } from '../../engine/steps.js';
import type { CompactionFiles } from '../store/blocks/compaction-files.js';

/** Returns where the frames of the new file end: none when there are no rows. The files are let go of. */
export function salvage(
  files: CompactionFiles,
  info: RunInfo,
  damagedBlocks: readonly number[],
  output: string,
): Float64Array {
  const file = runFile(info);
  const plan: CompactionPlan = {
    output,
    inputs: [{ file, kind: info.kind, startUs: info.startUs, visibleFromUs: info.visibleFromUs }],
    rowByteCount: Infinity,
  };
  try {
    const steps = compactRuns(plan, withoutBlocks(files, info, damagedBlocks));
    while (!steps.next().done);
    return finished(files.finish(output));
  } catch (error) {
    files.abandon();
    throw error;
  }
}

/** The same files, of which the run's has only the other blocks, and a directory to match. */
function withoutBlocks(files: CompactionFiles, info: RunInfo, damagedBlocks: readonly number[]): FileBuilder {
  const damagedFile = runFile(info);
  const left: number[] = [];
  for (let i = 0; i < files.blockCount(damagedFile); i++) if (!damagedBlocks.includes(i)) left.push(i);
  return {
    create: (file, sample) => files.create(file, sample),
    append: (file, bytes, plainBytes) => files.append(file, bytes, plainBytes),
    remove: (file) => files.remove(file),
    release: (block) => files.release(block),
    blockCount: (file) => (file === damagedFile ? left.length : files.blockCount(file)),
    block: (file, index) => {
      if (file !== damagedFile) return files.block(file, index);
      const block = files.block(file, left[index]);
      if (info.kind === 'fresh' || index < left.length - 1) return block;
      return encodeDirectory(directoryWithout(decodeDirectory(block), damagedBlocks));
    },
  };
}

/** Projects without a row left are gone; the times of the others stay bounds. */
function directoryWithout(directory: RunDirectory, damagedBlocks: readonly number[]): RunDirectory {
  const { blockFirstRows, rowCount } = directory;
  const endOf = (block: number): number => blockFirstRows[block + 1] ?? rowCount;
  const gone = damagedBlocks.map((block) => ({ start: blockFirstRows[block], end: endOf(block) }));
  /** Rows of [start, end) that are gone. */
  const goneWithin = (start: number, end: number): number =>
    gone.reduce((sum, span) => sum + Math.max(0, Math.min(end, span.end) - Math.max(start, span.start)), 0);
  const firstRows: number[] = [];
  const rowCounts: number[] = [];
  const places: number[] = [];
  for (const [i, first] of directory.projectFirstRows.entries()) {
    const end = first + directory.projectRowCounts[i];
    const left = directory.projectRowCounts[i] - goneWithin(first, end);
    if (left === 0) continue;
    firstRows.push(first - goneWithin(0, first));
    rowCounts.push(left);
    places.push(i);
  }
  const blocks = [...blockFirstRows.keys()].filter((block) => !damagedBlocks.includes(block));
  return {
    rowCount: rowCount - goneWithin(0, rowCount),
    rowByteCount: directory.rowByteCount,
    blockFirstRows: Uint32Array.from(
      blocks,
      (block) => blockFirstRows[block] - goneWithin(0, blockFirstRows[block]),
    ),
    blockFirstTimesUs: Float64Array.from(blocks, (block) => directory.blockFirstTimesUs[block]),
    projects: places.map((place) => directory.projects[place]),
    projectFirstRows: Uint32Array.from(firstRows),
    projectRowCounts: Uint32Array.from(rowCounts),
    oldestUs: Float64Array.from(places, (place) => directory.oldestUs[place]),
    newestUs: Float64Array.from(places, (place) => directory.newestUs[place]),
  };
}
