/**
 * What the match thread and the storage thread do with usage, here and now, over segment tables in memory.
 */

import { RE2JS } from 're2js';
import type { BlockReader } from '../../engine/segments.js';
import type { PartBatch } from '../../engine/usage/expressions/scan-lane.js';
import { scanUrls } from '../../engine/usage/expressions/url-scan.js';
import { type ScanResult, scanPart } from '../../engine/usage/sealed/part-scan.js';
import { type SealPlan, sealPart } from '../../engine/usage/sealed/seal.js';
import type { PartSummary } from '../../engine/usage/sealed/sealed-part.js';
import type { UsageView } from '../../engine/usage/usage-view.js';
import { AutomatonTables } from '../../src/match-thread/automaton-tables.js';
import { ExpressionAutomaton } from '../../src/match-thread/expression-automaton.js';
import type { BatchSource } from '../../src/match-thread/match-thread.js';
import type { SegmentTable } from '../segment-table.js';

/** Where the files of a view are. */
export type BlocksOf = (view: UsageView) => BlockReader;

export const NO_FILES: BlocksOf = () => {
  throw new Error('no part of this view is sealed');
};

/** So few that some expressions need more. */
const STATE_LIMIT = 24;

const compiled = new Map<string, ExpressionAutomaton>();

/** Works on one batch of about so many bytes, if there is one. A scan stops as soon as it may. */
export function matchHere(
  source: BatchSource,
  expression: string,
  byteCount: number,
  blocksOf: BlocksOf,
): void {
  const batch = source.takeBatch(byteCount, (length) => new Uint8Array(length));
  if (batch === null) return;
  const automaton = automatonOf(expression);
  source.note(
    batch.kind === 'part'
      ? scan(automaton, batch, byteCount, blocksOf)
      : scanUrls(batch, automaton, () => undefined),
  );
}

function automatonOf(expression: string): ExpressionAutomaton {
  let known = compiled.get(expression);
  if (known === undefined) {
    known = new ExpressionAutomaton(RE2JS.compile(expression), new AutomatonTables(STATE_LIMIT));
    compiled.set(expression, known);
  }
  return known;
}

function scan(
  automaton: ExpressionAutomaton,
  batch: PartBatch,
  checkWork: number,
  blocksOf: BlocksOf,
): ScanResult {
  const clock = { checkWork, isTimeUp: () => true };
  return scanPart(batch, blocksOf(batch.view), automaton, automaton.need, clock);
}

/** A part that is being sealed. */
export class TableSeal {
  readonly #view: UsageView;
  readonly #plan: SealPlan;
  readonly #steps: Generator<void, PartSummary>;

  private constructor(view: UsageView, table: SegmentTable, plan: SealPlan) {
    this.#view = view;
    this.#plan = plan;
    this.#steps = sealPart(plan, table);
  }

  /** Begins with the part that is due, if one is. */
  static begin(view: UsageView, table: SegmentTable): TableSeal | null {
    const plan = view.planSeal();
    return plan && new TableSeal(view, table, plan);
  }

  /** Goes on; true when it is finished. What it made counts with the next save. */
  advance(stepCount: number): boolean {
    for (let i = 0; i < stepCount; i++) {
      const step = this.#steps.next();
      if (step.done !== true) continue;
      this.#view.finishSeal(this.#plan, step.value);
      return true;
    }
    return false;
  }
}
