/**
 * The evaluation of one expression over one shard's view, for one or more asks: what is to be matched, and
 * what is counted of it. It needs nothing of other shards; expression-evaluation.ts says in what order things
 * go, and what is exact.
 */

import { assert } from '../../assert.js';
import { ByteSearch } from '../../byte-search.js';
import { ApiCounts, type ApiCountsAsk } from '../api-counts.js';
import { evaluateLiteral, type FreshMatches } from '../fresh/fresh-matches.js';
import type { FreshPart } from '../fresh/fresh-part.js';
import { SealedMatches } from '../sealed/sealed-matches.js';
import type { SealedPart } from '../sealed/sealed-part.js';
import type { UsageView } from '../usage-view.js';
import { type FreshTarget, type ScanTarget, urlsLeft } from './scan-lane.js';
import type { StandingExpression } from './standing-expressions.js';

/** What folding one entry costs, in bytes searched: what a slice is measured in. */
const ENTRY_COST_BYTES = 64;

interface Counted {
  readonly part: FreshPart | SealedPart;
  readonly matches: FreshMatches | SealedMatches;
}

export class ShardEvaluation {
  /** What is to be matched elsewhere, taken by ScanLanes. */
  readonly unscanned: ScanTarget[] = [];
  readonly #view: UsageView;
  readonly #standing: StandingExpression;
  /** null: no literal. */
  readonly #literal: ByteSearch | null;
  readonly #fresh: FreshTarget[] = [];
  /** Parts that are to be scanned, whose files stay until it is closed. */
  readonly #sealed: SealedPart[] = [];
  /** What all is known from, by sequence of the part. */
  readonly #counted = new Map<number, Counted>();
  /** Fresh targets before it are folded. */
  #foldedTargets = 0;
  #isReady = false;

  /** The parts that any of the asks needs are taken up. `close` must follow. */
  constructor(view: UsageView, expression: string, asks: readonly ApiCountsAsk[]) {
    const windows = asks.map((ask) => new ApiCounts(ask));
    this.#view = view;
    this.#standing = view.ask(expression, Math.max(...asks.map(({ nowUs }) => nowUs)));
    const standing = this.#standing;
    this.#literal = standing.literal === null ? null : new ByteSearch(standing.literal);
    assert(
      standing.literal !== null || standing.evaluationCount === 0,
      'an expression is evaluated once at a time',
    );
    standing.evaluationCount += 1;
    for (const part of view.parts()) {
      if (!windows.some((window) => window.overlaps(part))) continue;
      if (part.kind === 'fresh') this.#addFresh(part);
      else this.#addSealed(part);
    }
    if (standing.literal === null)
      this.unscanned.push(...this.#fresh.filter((target) => urlsLeft(target) > 0));
  }

  /** Whether the expression is known to be valid. */
  get isAccepted(): boolean {
    return this.#standing.accepted;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  accept(): void {
    this.#standing.accepted = true;
  }

  /** Goes on once nothing is to be scanned any more; returns what is left of `budgetBytes`. */
  advance(budgetBytes: number): number {
    const literal = this.#literal;
    return literal === null ? this.#foldFrozen(budgetBytes) : this.#advanceLiteral(literal, budgetBytes);
  }

  /** The partial answer to one of the asks, once ready. */
  collect(ask: ApiCountsAsk): ApiCounts {
    const counts = new ApiCounts(ask);
    // Also those that have expired since: the ask is of before that.
    for (const { part, matches } of this.#counted.values()) counts.add(part, matches.list);
    const standing = this.#standing;
    if (standing.literal === null) return counts;
    // Of a literal, parts that came since are known, too.
    for (const part of this.#view.parts()) {
      if (this.#counted.has(part.sequence) || !counts.overlaps(part)) continue;
      const matches = standing.matches.get(part.sequence);
      if (matches !== undefined) counts.add(part, matches.list);
    }
    return counts;
  }

  /** Lets go of the standing expression; with `forget` it stands no longer. */
  close(forget: boolean): void {
    const standing = this.#standing;
    for (const part of this.#sealed) part.readerCount -= 1;
    standing.evaluationCount -= 1;
    if (forget && standing.evaluationCount === 0) this.#view.standing.drop(standing);
    else this.#view.standing.trim();
  }

  #addFresh(part: FreshPart): void {
    const matches = this.#view.standing.matchesOfFresh(this.#standing, part);
    if (matches === null) return;
    matches.reserve(part.urls.count);
    this.#fresh.push({ part, matches, urlCount: part.urls.count, entryCount: part.entries.count });
    this.#counted.set(part.sequence, { part, matches });
  }

  #addSealed(part: SealedPart): void {
    const matches = this.#view.standing.matchesOfSealed(this.#standing, part);
    if (matches === null) return;
    this.#counted.set(part.sequence, { part, matches });
    if (!(matches instanceof SealedMatches) || matches.isComplete) return;
    part.readerCount += 1;
    this.#sealed.push(part);
    this.unscanned.push({ view: this.#view, part, matches });
  }

  #advanceLiteral(literal: ByteSearch, budgetBytes: number): number {
    let left = budgetBytes;
    this.#isReady = false;
    for (const { part, matches } of this.#fresh) {
      if (matches.live) continue;
      while (matches.evaluatedUrls < part.urls.count || matches.foldedEntries < part.entries.count) {
        if (left <= 0) return left;
        left -= evaluateLiteral(part, matches, literal, left);
        if (matches.evaluatedUrls < part.urls.count) return left;
        left -= foldSome(part, matches, part.entries.count, left);
      }
      matches.goLive();
    }
    this.#isReady = true;
    return left;
  }

  #foldFrozen(budgetBytes: number): number {
    let left = budgetBytes;
    for (; this.#foldedTargets < this.#fresh.length; this.#foldedTargets++) {
      const { part, matches, entryCount } = this.#fresh[this.#foldedTargets];
      assert(matches.foldedEntries <= entryCount, 'a frozen part was folded too far');
      while (matches.foldedEntries < entryCount) {
        if (left <= 0) return left;
        left -= foldSome(part, matches, entryCount, left);
      }
    }
    this.#isReady = true;
    return left;
  }
}

/**
 * Folds entries up to ordinal `entryCount` as far as the budget goes, at least one; returns what that cost.
 */
function foldSome(part: FreshPart, matches: FreshMatches, entryCount: number, budgetBytes: number): number {
  const affordable = Math.max(1, Math.floor(budgetBytes / ENTRY_COST_BYTES));
  const count = Math.min(entryCount - matches.foldedEntries, affordable);
  matches.fold(part, count);
  return count * ENTRY_COST_BYTES;
}
