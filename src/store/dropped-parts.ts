/**
 * What repairs have dropped, in the table `meta`, so that answers go on saying what they lack until it has
 * expired.
 *
 *   dropped/<number, 8 digits>   JSON: view, level, startUs (null: nobody knows), endUs, what
 */

import { LONGEST_RETENTION_US } from '../../engine/tier.js';
import { openEnvelope, rawEnvelope } from './values/envelope.js';

export interface DroppedPart {
  /** The name of its kind. */
  readonly view: string;
  /** Of statistics the level whose slot it is; null: of all. */
  readonly level: string | null;
  /** Entries of [startUs, endUs) may be gone; null: as far as anything goes back. */
  readonly startUs: number | null;
  readonly endUs: number;
  /** For the operator. */
  readonly what: string;
}

export const DROPPED_KEY = 'dropped/';

export function droppedKey(index: number): string {
  return `${DROPPED_KEY}${String(index).padStart(8, '0')}`;
}

export function encodeDropped(key: string, part: DroppedPart): Uint8Array {
  return rawEnvelope(key, Buffer.from(JSON.stringify(part)));
}

/** Throws a SegmentError for anything else. */
export function decodeDropped(key: string, value: Uint8Array): DroppedPart {
  return JSON.parse(Buffer.from(openEnvelope(key, value)).toString()) as DroppedPart;
}

/** Parts that overlap a window, both ends inclusive; none of those that no answer can reach any more. */
export function overlappingParts(
  parts: readonly DroppedPart[],
  window: {
    readonly view: string;
    readonly level: string | null;
    readonly startUs: number;
    readonly endUs: number;
  },
): DroppedPart[] {
  return parts.filter(
    ({ view, level, startUs, endUs }) =>
      view === window.view &&
      (level === null || level === window.level) &&
      endUs > window.startUs &&
      (startUs ?? -Infinity) <= window.endUs,
  );
}

/** Whether an answer may still lack it. */
export function isStillMissed({ endUs }: DroppedPart, nowUs: number): boolean {
  return endUs > nowUs - LONGEST_RETENTION_US;
}
