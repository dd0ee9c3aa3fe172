/** Segments that make something together: whether they are whole and go together; what is not goes as a whole. */

import { SegmentError, type SegmentReader } from '../../engine/segments.js';
import type { DroppedPart } from '../store/dropped-table.js';
import type { Finding, Fix } from './findings.js';
import { type ScopeSegments, SEGMENTS } from './scope-segments.js';

export interface Group {
  /** Begins the names of its segments. */
  readonly prefix: string;
  readonly dropped: DroppedPart;
}

export type GroupOf = (name: string, scope: string) => Group | null;

/** Segments that build on each other: a part of usage, statistics of a slot. */
export function checkGroups(
  segments: ScopeSegments,
  viewPrefix: string,
  groupOf: GroupOf,
  load: (reader: SegmentReader) => void,
  beside: (prefix: string) => Beside = () => NOTHING_BESIDE,
): Finding[] {
  const groups = new Map<string, Group>();
  for (const name of [...segments.names(), ...segments.damagedNames]) {
    const group = name.startsWith(viewPrefix) ? groupOf(name, segments.scope) : null;
    if (group !== null) groups.set(group.prefix, group);
  }
  const findings: Finding[] = [];
  for (const { prefix, dropped } of groups.values()) {
    const isOfGroup = (name: string): boolean => name.startsWith(prefix);
    const damaged = segments.damagedNames.filter(isOfGroup);
    const problem =
      damaged.length > 0
        ? `${damaged.join(', ')} is damaged`
        : (loadProblem(() => load(segments.reader(isOfGroup))) ?? beside(prefix).problem);
    if (problem === null) continue;
    const keys = [...segments.names(), ...segments.damagedNames]
      .filter(isOfGroup)
      .map((name) => segments.keyOf(name));
    findings.push({
      what: `${dropped.what}: ${problem}`,
      remedy: 'is dropped',
      fixes: [{ do: 'delete', table: SEGMENTS, keys }, ...beside(prefix).fixes],
      dropped: [dropped],
    });
  }
  return findings;
}

/** What a group has beside its segments. */
export interface Beside {
  readonly problem: string | null;
  /** When the group is dropped. */
  readonly fixes: readonly Fix[];
}

const NOTHING_BESIDE: Beside = { problem: null, fixes: [] };

/** Why it does not load, or null. */
export function loadProblem(load: () => unknown): string | null {
  try {
    load();
    return null;
  } catch (error) {
    if (error instanceof SegmentError) return error.message;
    throw error;
  }
}
