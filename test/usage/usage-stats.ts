/** What a usage view holds, in numbers. */

import type { UsageView } from '../../engine/usage/usage-view.js';

export function usageStats(view: UsageView) {
  const parts = [...view.parts()];
  const [entries, urls, standingExpressions] = view.figures()[0].values;
  return {
    parts: parts.length,
    sealedParts: parts.filter(({ kind }) => kind === 'sealed').length,
    entries,
    urls,
    standingExpressions,
    heldBytes: view.freshBytes,
    matchBytes: view.standing.memory.heldBytes,
  };
}
