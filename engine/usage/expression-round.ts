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
import type { PartScanRequest, ScanResult } from './part-scan.js';
import { SealedMatches } from './sealed-matches.js';
import type { SealedPart } from './sealed-part.js';
import type { StandingExpression } from './standing-expressions.js';
import { copyUrls, type UrlBatch } from './url-batch.js';
import type { UsageView } from './usage-view.js';

/** What folding one entry costs, in bytes searched: what a slice is measured in. */
const ENTRY_COST_BYTES = 64;

export interface ApiCountsAsk {
  readonly interval: UsageInterval;
  readonly nowUs: number;
}

/** A piece of a sealed part to be scanned elsewhere (see scanPart). What it holds stays the round's. */
export interface PartBatch extends PartScanRequest {
  readonly kind: 'part';
  /** Whose part it is. */
  readonly view: UsageView;
}

/** unfinished: advance again. waiting: batches are to be worked on first. */
export type RoundState = 'ready' | 'unfinished' | 'waiting';

interface FreshTarget {
  readonly part: FreshPart;
  readonly matches: FreshMatches;
  /** The frozen state of the part. */
  readonly urlCount: number;
  readonly entryCount: number;
}

interface SealedTarget {
  readonly view: UsageView;
  readonly part: SealedPart;
  readonly matches: SealedMatches;
}

/** A thread's share of the scans: takes the next part that no other has taken when it is through with one. */
export class ScanLane {
  /** Of all lanes, the next one last. */
  readonly #untaken: SealedTarget[];
  #taken: SealedTarget | null = null;

  constructor(untaken: SealedTarget[]) {
    this.#untaken = untaken;
  }

  get isBusy(): boolean {
    return this.#taken !== null && !this.#taken.matches.isComplete;
  }

  /** The next piece. One whose results never came is asked for again. */
  takeBatch(): PartBatch | null {
    while (!this.isBusy) {
      this.#taken = this.#untaken.pop() ?? null;
      if (this.#taken === null) return null;
    }
    const { view, part, matches } = this.#taken!;
    return { kind: 'part', view, file: part.file, from: matches.next!, matches: matches.list.columns };
  }

  supply(result: ScanResult): void {
    assert(this.isBusy, 'a scan was made that nobody asked for');
    this.#taken!.matches.scanned(result);
  }
}

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
  readonly #unscanned: SealedTarget[] = [];
  /** The first is the round's own. */
  readonly #lanes = [new ScanLane(this.#unscanned)];
  /** What all is known from, by view and birth of the part. */
  readonly #matches = new Map<UsageView, Map<number, Counted>>();
  /** Fresh targets before these are done; the second runs behind the first. */
  #matchedTargets = 0;
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
    this.#unscanned.reverse();
    this.#literal = this.#members[0]?.standing.literal ?? null;
    this.#accepted = this.#members.length > 0 && this.#members.every(({ standing }) => standing.accepted);
  }

  /** Does about `sliceBytes` of work, or finds that batches are to be worked on first. */
  advance(sliceBytes: number): RoundState {
    if (this.#isScanning()) return 'waiting';
    if (this.#literal !== null) return this.#advanceLiteral(this.#literal, sliceBytes);
    if (!this.#accepted || !this.#allMatched()) return 'waiting';
    return this.#foldFrozen(sliceBytes);
  }

  /** What is to be worked on next: a piece of a part, or about `byteLimit` bytes of URLs and at least one. Null: nothing is left. */
  takeBatch(byteLimit: number): UrlBatch | PartBatch | null {
    if (this.#hasGivenUp) return null;
    if (!this.#accepted) return { kind: 'urls', bytes: new Uint8Array(0), ends: new Uint32Array(0) };
    const scan = this.#lanes[0].takeBatch();
    if (scan !== null) return scan;
    if (this.#literal !== null || this.#allMatched()) return null;
    return copyUrls(this.#fresh, this.#matchedTargets, byteLimit);
  }

  /** What came of the batch taken last: of URLs, not 0 where one matches. It is noted for all rounds to come. */
  supply(result: Uint8Array | ScanResult): void {
    assert(!this.#closed, 'a closed round takes no results');
    if (!(result instanceof Uint8Array)) this.#lanes[0].supply(result);
    else if (this.#accepted) this.#noteVerdicts(result);
    else {
      this.#accepted = true;
      for (const { standing } of this.#members) standing.accepted = true;
    }
  }

  /** Parts that nobody scans yet. */
  get unscannedParts(): number {
    return this.#unscanned.length;
  }

  /** For another thread, which takes parts as the round's own does. */
  addLane(): ScanLane {
    const lane = new ScanLane(this.#unscanned);
    this.#lanes.push(lane);
    return lane;
  }

  /** There is no more to be had of it, but of lanes that are amid a part. */
  giveUp(): void {
    this.#hasGivenUp = true;
    this.#unscanned.length = 0;
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

  #noteVerdicts(verdicts: Uint8Array): void {
    let next = 0;
    for (let t = this.#matchedTargets; next < verdicts.length; t++) {
      const { matches, urlCount } = this.#fresh[t];
      while (next < verdicts.length && matches.evaluatedUrls < urlCount) {
        matches.addVerdict(verdicts[next] !== 0);
        next += 1;
      }
    }
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

  #allMatched(): boolean {
    const targets = this.#fresh;
    while (this.#matchedTargets < targets.length) {
      const { matches, urlCount } = targets[this.#matchedTargets];
      if (matches.evaluatedUrls < urlCount) return false;
      this.#matchedTargets += 1;
    }
    return true;
  }
}

/** Folds entries up to ordinal `entryCount` as far as the budget goes, at least one; returns what that cost. */
function foldSome(part: FreshPart, matches: FreshMatches, entryCount: number, budgetBytes: number): number {
  const affordable = Math.max(1, Math.floor(budgetBytes / ENTRY_COST_BYTES));
  const count = Math.min(entryCount - matches.foldedEntries, affordable);
  matches.fold(part, count);
  return count * ENTRY_COST_BYTES;
}
