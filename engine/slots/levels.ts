/** The levels at which a view keeps time slots, fine to coarse, and the series of buckets read from them. */

import { slotIndex, truncateUs, US_PER_SECOND } from '../time.js';
import type { SegmentGroup } from '../view.js';

export interface Level {
  readonly name: string;
  /** The length of a slot, which is a bucket. */
  readonly unitUs: number;
  /** How far back the longest interval that reads this level goes. */
  readonly windowUs: number;
}

/** Whole buckets, both ends inclusive; the last one is that of now. */
export interface Series {
  /** The place in the view's levels. */
  readonly level: number;
  /** Slot indexes count units of the level from the epoch. */
  readonly firstSlot: number;
  readonly lastSlot: number;
}

/** The buckets of the level that begin at trunc(now − backUs) or later, up to that of now. */
export function seriesBack(levels: readonly Level[], level: number, backUs: number, nowUs: number): Series {
  const { unitUs } = levels[level];
  return { level, firstSlot: slotIndex(nowUs - backUs, unitUs), lastSlot: slotIndex(nowUs, unitUs) };
}

/** Slots of the level that start before this are out of every series at nowUs or later. */
export function keptFromUs({ unitUs, windowUs }: Level, nowUs: number): number {
  return truncateUs(nowUs - windowUs, unitUs);
}

/** Segments of one slot build on each other; null for a segment that belongs to no slot of the view. */
export function slotOfSegment(view: string, levels: readonly Level[], segment: string): SegmentGroup | null {
  const match = /^(([a-z-]+)\/([a-z]+)\/(-?[0-9]{12})\/)[0-9]{10}$/.exec(segment);
  if (match === null || match[2] !== view) return null;
  const level = levels.find(({ name }) => name === match[3]);
  if (level === undefined) return null;
  const startUs = Number(match[4]) * US_PER_SECOND;
  return { key: match[1], level: level.name, startUs, endUs: startUs + level.unitUs };
}
