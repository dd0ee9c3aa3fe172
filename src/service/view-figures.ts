/** What the views hold, added up over the shards that answers come from. */

import type { FigureKind, FigureLine, View, ViewKind } from '../../engine/view.js';
import { VIEWS } from '../../engine/views.js';
import type { Shards } from './shards.js';

export interface ViewFigures {
  readonly kind: ViewKind;
  readonly lines: readonly FigureLine[];
}

/** Some milliseconds: see View.figures. */
export function viewFigures(shards: Shards): ViewFigures[] {
  const views = [...shards.edge, ...shards.relay].flatMap(({ views }): readonly View<never>[] => views);
  return VIEWS.map(({ kind }) => {
    const lines = new Map<string | null, FigureLine>();
    for (const view of views) {
      if (view.kind !== kind) continue;
      for (const line of view.figures()) lines.set(line.label, sumOf(kind, lines.get(line.label), line));
    }
    return { kind, lines: [...lines.values()] };
  });
}

function sumOf({ figures }: ViewKind, sum: FigureLine | undefined, line: FigureLine): FigureLine {
  if (sum === undefined) return line;
  return { ...line, values: figures.map((kind, i) => combined(kind, sum.values[i], line.values[i])) };
}

function combined({ over }: FigureKind, a: number | null, b: number | null): number | null {
  if (a === null || b === null) return a ?? b;
  return over === 'least' ? Math.min(a, b) : a + b;
}
