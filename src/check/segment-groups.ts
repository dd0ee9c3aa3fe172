/** Segments that build on each other, and are dropped together. */

import { entryOf } from '../../engine/entry-of.js';
import type { ViewKind } from '../../engine/view.js';
import { intervalText } from '../http/query/incomplete.js';
import type { DroppedPart } from '../store/dropped-parts.js';
import type { Finding } from './findings.js';
import type { ScopeSegments } from './scope-segments.js';
import { SEGMENTS } from './stored-tables.js';

export interface Group {
  /** Tells it from others. */
  readonly key: string;
  readonly dropped: DroppedPart;
}

export interface FoundGroup extends Group {
  /** Of its segments, the damaged ones among them. */
  readonly names: readonly string[];
}

/** The group of a view's segment; null for one that belongs to none. */
export function groupOf(kind: ViewKind, segment: string, scope: string): Group | null {
  const group = kind.groupOf(segment);
  if (group === null) return null;
  const { key, level, startUs, endUs } = group;
  const by = level === null ? '' : ` by ${level}`;
  const what = `${kind.title.toLowerCase()} of ${scope}${by}, ${intervalText({ startUs, endUs })}`;
  return { key, dropped: { view: kind.name, level, startUs, endUs, what } };
}

/** The groups of a view's segments. */
export function groupsOf(segments: ScopeSegments, kind: ViewKind): FoundGroup[] {
  const groups = new Map<string, Group & { readonly names: string[] }>();
  for (const name of [...segments.names(), ...segments.damagedNames]) {
    const group = groupOf(kind, name, segments.scope);
    if (group === null) continue;
    entryOf(groups, group.key, () => ({ ...group, names: [] })).names.push(name);
  }
  return [...groups.values()];
}

/** Which of its segments are damaged, in words; null when none is. */
export function damageOf({ damagedNames }: ScopeSegments, { names }: FoundGroup): string | null {
  const damaged = names.filter((name) => damagedNames.includes(name));
  return damaged.length === 0 ? null : `${damaged.join(', ')} is damaged`;
}

export function groupIsGone(
  segments: ScopeSegments,
  { names, dropped }: FoundGroup,
  problem: string,
): Finding {
  return {
    what: `${dropped.what}: ${problem}`,
    remedy: 'is dropped',
    fixes: [{ do: 'delete', table: SEGMENTS, keys: names.map((name) => segments.keyOf(name)) }],
    dropped: [dropped],
  };
}
