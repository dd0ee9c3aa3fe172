/** Cells of counts: all matching entries, then one per area in the order of AREA_PATTERNS. */

import { AREA_COUNT } from './areas.js';

export const CELL_STRIDE = 1 + AREA_COUNT;

/** For each mask of areas a 1 in the 8-bit lane of each area in it. */
const LANES_OF_AREAS = Int32Array.from({ length: 2 ** AREA_COUNT }, (_, areas) => {
  let lanes = 0;
  for (let area = 0; area < AREA_COUNT; area++) lanes |= ((areas >>> area) & 1) << (8 * area);
  return lanes;
});

/** Adds one entry of these areas to the cells at `base`. */
export function addAreas(areas: number, cells: Float64Array, base: number): void {
  cells[base] += 1;
  cells[base + 1] += areas & 1;
  cells[base + 2] += (areas >>> 1) & 1;
  cells[base + 3] += (areas >>> 2) & 1;
  cells[base + 4] += (areas >>> 3) & 1;
}

/** Adds the cells of `from` at `fromBase` to those at `base`. */
export function addCells(
  from: Float64Array | Uint32Array,
  fromBase: number,
  cells: Float64Array,
  base: number,
): void {
  for (let i = 0; i < CELL_STRIDE; i++) cells[base + i] += from[fromBase + i];
}

/** Adds the entries [start, end), at most 255, all areas in one sum: a lane of 8 bits each. */
export function addSlice(
  areasColumn: Uint8Array,
  start: number,
  end: number,
  cells: Float64Array,
  base: number,
): void {
  let lanes = 0;
  for (let i = start; i < end; i++) lanes = (lanes + LANES_OF_AREAS[areasColumn[i] & 15]) | 0;
  cells[base] += end - start;
  cells[base + 1] += lanes & 255;
  cells[base + 2] += (lanes >>> 8) & 255;
  cells[base + 3] += (lanes >>> 16) & 255;
  cells[base + 4] += lanes >>> 24;
}
