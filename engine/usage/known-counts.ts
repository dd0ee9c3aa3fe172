/** The answer to an expression of which nothing is left to be evaluated, as of most that are asked again: one pass over the parts. */

import { ApiCounts, type ApiCountsRow } from './api-counts.js';
import type { ApiCountsAsk } from './expression-round.js';
import type { UsageView } from './usage-view.js';

/** Null when something is left: then it takes a round. */
export function knownCounts(
  views: readonly UsageView[],
  expression: string,
  ask: ApiCountsAsk,
): ApiCountsRow[] | null {
  if (views.length === 0) return null;
  const counts = new ApiCounts(ask.interval, ask.nowUs);
  for (const view of views) {
    const standing = view.standing.find(expression);
    if (!standing?.accepted) return null;
    for (const part of view.parts()) {
      if (!counts.overlaps(part)) continue;
      const matches = view.standing.wholeMatches(standing, part);
      if (matches === null) return null;
      counts.add(part, matches);
    }
  }
  for (const view of views) {
    view.ask(expression, ask.nowUs);
    view.standing.trim();
  }
  return counts.rows();
}
