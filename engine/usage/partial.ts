/**
 * The partial answer of `usage.api-counts`: what one shard counts in each bucket of the window (see
 * api-counts.ts). Of an expression of which nothing is left to be evaluated it is counted here; else see
 * shard-evaluation.ts.
 *
 *   usage 2   expression │ interval u8 │ now f64 │ bucket count u32 │ per bucket: five counts f64, all and by area
 */

import type { ByteWriter } from '../bytes.js';
import { PartialError, readPartial } from '../partial-format.js';
import { ApiCounts, type ApiCountsAsk, type ApiCountsRow, USAGE_INTERVALS } from './api-counts.js';
import type { UsageView } from './usage-view.js';

const FORM = 'usage 2';

/** One pass over the parts; null when something is left to be evaluated: then it takes an evaluation. */
function collectCounts(view: UsageView, expression: string, ask: ApiCountsAsk): ApiCounts | null {
  const counts = new ApiCounts(ask);
  const standing = view.standing.find(expression);
  if (!standing?.accepted) return null;
  for (const part of view.parts()) {
    if (!counts.overlaps(part)) continue;
    const matches = view.standing.wholeMatches(standing, part);
    if (matches === null) return null;
    counts.add(part, matches);
  }
  view.ask(expression, ask.nowUs);
  view.standing.trim();
  return counts;
}

/** Of all views; null when something is left to be evaluated, if only whether the expression is valid. */
export function knownCounts(
  views: readonly UsageView[],
  expression: string,
  ask: ApiCountsAsk,
): ApiCounts[] | null {
  const partials: ApiCounts[] = [];
  for (const view of views) {
    const counts = collectCounts(view, expression, ask);
    if (counts === null) return null;
    partials.push(counts);
  }
  return partials.length === 0 ? null : partials;
}

/** The rows in order of time, of partial answers to one ask. */
export function mergeCounts(partials: readonly ApiCounts[]): ApiCountsRow[] {
  if (partials.length === 0) return [];
  return combineCounts(partials).rows();
}

/** What several shards have, one at least, as of one. */
export function combineCounts(partials: readonly ApiCounts[]): ApiCounts {
  if (partials.length === 1) return partials[0];
  const sum = new ApiCounts(partials[0].ask);
  for (const partial of partials) sum.merge(partial);
  return sum;
}

export function writeCounts(out: ByteWriter, { ask, cells }: ApiCounts, expression: string): void {
  out.string(FORM);
  out.string(expression);
  out.u8(USAGE_INTERVALS.indexOf(ask.interval));
  out.f64(ask.nowUs);
  out.u32(cells.length);
  for (const count of cells) out.f64(count);
}

/** Throws a PartialError, also for the answer to another question. */
export function readCounts(bytes: Uint8Array, expression: string, ask: ApiCountsAsk): ApiCounts {
  return readPartial(FORM, bytes, (content) => {
    const counts = new ApiCounts(ask);
    const isSame =
      content.string() === expression &&
      content.u8() === USAGE_INTERVALS.indexOf(ask.interval) &&
      content.f64() === ask.nowUs &&
      content.u32() === counts.cells.length;
    if (!isSame) throw new PartialError('a partial answer is to another question');
    for (let cell = 0; cell < counts.cells.length; cell++) counts.cells[cell] = content.f64();
    if (!counts.isSound()) throw new PartialError('the counts of a partial answer contradict each other');
    return counts;
  });
}
