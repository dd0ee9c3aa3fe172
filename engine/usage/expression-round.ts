/**
 * The evaluation of one expression over some views, for one or more asks, in slices: pure, synchronous, and told by its
 * caller when to go on. An answer is exact for one state of the views, which they were in between ask and answer:
 *
 * - Sealed parts never change. They are scanned elsewhere, a piece at a time, different parts by different threads at
 *   once if there are any; their files stay until the round is closed.
 * - A literal is evaluated here over the fresh parts. Once a part's matches are live the view keeps them so, and the round is
 *   ready in the same call in which the last part goes live: the answer is for the state at that moment.
 * - Any other expression is evaluated elsewhere, over batches of URLs that the round hands out. New URLs may come faster
 *   than batches come back, so the round freezes every part when it begins, and answers for that state: a URL's code is at
 *   most that of the entry that brought it, so a prefix of the entries needs only a prefix of the URLs.
 */

import { assert } from '../assert.js';
import { ApiCounts, type ApiCountsRow, type UsageInterval } from './api-counts.js';
import { evaluateLiteral, type FreshMatches } from './fresh-matches.js';
import type { FreshPart } from './fresh-part.js';
import {
  type BatchResult,
  type FreshTarget,
  type PartBatch,
  ScanLane,
  type ScanTarget,
  urlsLeft,
} from './scan-lane.js';
import { SealedMatches } from './sealed-matches.js';
import type { SealedPart } from './sealed-part.js';
import type { StandingExpression } from './standing-expressions.js';
import { type BatchRoom, noUrls, type UrlBatch } from './url-batch.js';
import type { UsageView } from './usage-view.js';

/** What folding one entry costs, in bytes searched: what a slice is measured in. */
const ENTRY_COST_BYTES = 64;

export interface ApiCountsAsk {
  readonly interval: UsageInterval;
  readonly nowUs: number;
}

/** unfinished: advance again. waiting: batches are to be worked on first. */
export type RoundState = 'ready' | 'unfinished' | 'waiting';

interface Counted {
  readonly part: FreshPart | SealedPart;
  readonly matches: FreshMatches | SealedMatches;
}

interface Member {
  readonly view: UsageView;
  readonly standing: StandingExpression;
}

export class ExpressionRound {
  readonly #literal: Uint8Array | null;
  readonly #members: readonly Member[];
  readonly #fresh: FreshTarget[] = [];
  /** Parts that are to be scanned, whose files the round keeps. */
  readonly #sealed: SealedPart[] = [];
  readonly #unscanned: ScanTarget[] = [];
  /** The first is the round's own. */
  readonly #lanes = [new ScanLane(this.#unscanned)];
  /** What all is known from, by view and birth of the part. */
  readonly #matches = new Map<UsageView, Map<number, Counted>>();
  /** Fresh targets before it are folded. */
  #foldedTargets = 0;
  #accepted: boolean;
  #hasGivenUp = false;
  #closed = false;

  /** The views' parts that any of the asks needs are taken up. `close` must follow. */
  constructor(views: readonly UsageView[], expression: string, asks: readonly ApiCountsAsk[]) {
    assert(expression.length > 0, 'an expression is never empty');
    const askedUs = Math.max(...asks.map((ask) => ask.nowUs));
    const windows = asks.map((ask) => new ApiCounts(ask.interval, ask.nowUs));
    this.#members = views.map((view) => ({ view, standing: view.ask(expression, askedUs) }));
    for (const member of this.#members) {
      const { standing } = member;
      assert(standing.literal !== null || standing.roundCount === 0, 'an expression has one round at a time');
      standing.roundCount += 1;
      for (const part of member.view.parts()) {
        if (!windows.some((window) => window.overlaps(part))) continue;
        if (part.kind === 'fresh') this.#takeUpFresh(member, part);
        else this.#takeUpSealed(member, part);
      }
    }
    this.#literal = this.#members[0]?.standing.literal ?? null;
    if (this.#literal === null) this.#unscanned.push(...this.#fresh.filter((target) => urlsLeft(target) > 0));
    this.#accepted = this.#members.length > 0 && this.#members.every(({ standing }) => standing.accepted);
  }

  /** Does about `sliceBytes` of work, or finds that batches are to be worked on first. */
  advance(sliceBytes: number): RoundState {
    if (!this.#accepted || this.#isScanning()) return 'waiting';
    if (this.#literal !== null) return this.#advanceLiteral(this.#literal, sliceBytes);
    return this.#foldFrozen(sliceBytes);
  }

  /**
   * What is to be worked on next: a piece of a part, or about `byteLimit` bytes of URLs; of an expression that nobody has
   * compiled yet at least a batch of none. Null: nothing is left.
   */
  takeBatch(byteLimit: number, room: BatchRoom): UrlBatch | PartBatch | null {
    if (this.#hasGivenUp) return null;
    return this.#lanes[0].takeBatch(byteLimit, room) ?? (this.#accepted ? null : noUrls());
  }

  /** What came of the batch taken last. It is noted for all rounds to come. */
  supply(result: BatchResult): void {
    assert(!this.#closed, 'a closed round takes no results');
    if (this.#lanes[0].isBusy) this.#lanes[0].supply(result);
    if (this.#accepted) return;
    this.#accepted = true;
    for (const { standing } of this.#members) standing.accepted = true;
  }

  /** Parts that nobody looks at yet, and their URLs. */
  get unscanned(): { readonly partCount: number; readonly urlCount: number } {
    const urlCount = this.#unscanned.reduce((sum, target) => sum + urlsLeft(target), 0);
    return { partCount: this.#unscanned.length, urlCount };
  }

  /** For another thread, which takes parts as the round's own does. */
  addLane(): ScanLane {
    const lane = new ScanLane(this.#unscanned);
    this.#lanes.push(lane);
    return lane;
  }

  /** There is no more to be had of it. */
  giveUp(): void {
    this.#hasGivenUp = true;
    for (const lane of this.#lanes) lane.giveUp();
  }

  /** The answer to one of the asks, once ready. */
  rows(ask: ApiCountsAsk): ApiCountsRow[] {
    const counts = new ApiCounts(ask.interval, ask.nowUs);
    for (const { view, standing } of this.#members) {
      const known = this.#matches.get(view);
      if (this.#literal === null) {
        for (const { part, matches } of known?.values() ?? []) counts.add(part, matches.list);
        continue;
      }
      // Parts that came since are known, too.
      for (const part of view.parts()) {
        if (!counts.overlaps(part)) continue;
        const matches = known?.get(part.birth)?.matches ?? standing.matches.get(part.birth);
        if (matches !== undefined) counts.add(part, matches.list);
      }
    }
    return counts.rows();
  }

  /** Lets go of the standing expressions; with `forget` they stand no longer. */
  close(forget = false): void {
    assert(!this.#closed, 'a round is closed once');
    this.#closed = true;
    for (const part of this.#sealed) part.readerCount -= 1;
    for (const { view, standing } of this.#members) {
      standing.roundCount -= 1;
      if (forget && standing.roundCount === 0) view.standing.drop(standing);
      else view.standing.trim();
    }
  }

  #takeUpFresh({ view, standing }: Member, part: FreshPart): void {
    const matches = view.standing.matchesOfFresh(standing, part);
    if (matches === null) return;
    matches.reserve(part.urls.count);
    this.#fresh.push({ part, matches, urlCount: part.urls.count, entryCount: part.entries.count });
    this.#know(view, part, matches);
  }

  #takeUpSealed({ view, standing }: Member, part: SealedPart): void {
    const matches = view.standing.matchesOfSealed(standing, part);
    if (matches === null) return;
    this.#know(view, part, matches);
    if (!(matches instanceof SealedMatches) || matches.isComplete) return;
    part.readerCount += 1;
    this.#sealed.push(part);
    this.#unscanned.push({ view, part, matches });
  }

  #know(view: UsageView, part: FreshPart | SealedPart, matches: FreshMatches | SealedMatches): void {
    let known = this.#matches.get(view);
    if (known === undefined) {
      known = new Map();
      this.#matches.set(view, known);
    }
    known.set(part.birth, { part, matches });
  }

  #isScanning(): boolean {
    return this.#unscanned.length > 0 || this.#lanes.some((lane) => lane.isBusy);
  }

  #advanceLiteral(literal: Uint8Array, sliceBytes: number): RoundState {
    let left = sliceBytes;
    for (const { part, matches } of this.#fresh) {
      if (matches.live) continue;
      while (matches.evaluatedUrls < part.urls.count || matches.foldedEntries < part.entries.count) {
        if (left <= 0) return 'unfinished';
        left -= evaluateLiteral(part, matches, literal, left);
        if (matches.evaluatedUrls < part.urls.count) return 'unfinished';
        left -= foldSome(part, matches, part.entries.count, left);
      }
      matches.goLive();
    }
    return 'ready';
  }

  #foldFrozen(sliceBytes: number): RoundState {
    let left = sliceBytes;
    for (; this.#foldedTargets < this.#fresh.length; this.#foldedTargets++) {
      const { part, matches, entryCount } = this.#fresh[this.#foldedTargets];
      assert(matches.foldedEntries <= entryCount, 'a frozen part was folded too far');
      while (matches.foldedEntries < entryCount) {
        if (left <= 0) return 'unfinished';
        left -= foldSome(part, matches, entryCount, left);
      }
    }
    return 'ready';
  }
}

/** Folds entries up to ordinal `entryCount` as far as the budget goes, at least one; returns what that cost. */
function foldSome(part: FreshPart, matches: FreshMatches, entryCount: number, budgetBytes: number): number {
  const affordable = Math.max(1, Math.floor(budgetBytes / ENTRY_COST_BYTES));
  const count = Math.min(entryCount - matches.foldedEntries, affordable);
  matches.fold(part, count);
  return count * ENTRY_COST_BYTES;
}
