/**
 * The evaluation of one expression over some views, for one or more asks, in slices: pure, synchronous, and told by its
 * caller when to go on. An answer is exact for one state of the views, which they were in between ask and answer:
 *
 * - A literal is evaluated here. Once a partition's matches are live the view keeps them so, and the round is ready in
 *   the same call in which the last partition goes live: the answer is for the state at that moment.
 * - Any other expression is evaluated elsewhere, over batches of URLs that the round hands out. New URLs may come faster
 *   than batches come back, so the round freezes every partition when it begins, and answers for that state: a URL's
 *   code is at most that of the entry that brought it, so a prefix of the entries needs only a prefix of the URLs.
 */

import { assert } from '../assert.js';
import { ApiCounts, type ApiCountsRow, type UsageInterval } from './api-counts.js';
import { evaluateLiteral, type PartitionMatches } from './partition-matches.js';
import type { StandingExpression } from './standing-expressions.js';
import type { UsagePartition } from './usage-partition.js';
import type { UsageView } from './usage-view.js';

/** What folding one entry costs, in bytes searched: what a slice is measured in. */
const ENTRY_COST_BYTES = 64;

export interface ApiCountsAsk {
  readonly interval: UsageInterval;
  readonly nowUs: number;
}

/** URLs to be matched elsewhere. One with no URL at all only asks whether the expression is valid. */
export interface UrlBatch {
  /** The URLs in UTF-8, one behind the other. The buffer is the caller's. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Where each URL ends. */
  readonly ends: Uint32Array<ArrayBuffer>;
}

/** unfinished: advance again. waiting: batches are to be matched first. */
export type RoundState = 'ready' | 'unfinished' | 'waiting';

interface Target {
  readonly partition: UsagePartition;
  readonly matches: PartitionMatches;
  /** The frozen state of the partition. */
  readonly urlCount: number;
  readonly entryCount: number;
}

interface Member {
  readonly view: UsageView;
  readonly standing: StandingExpression;
}

export class ExpressionRound {
  readonly #literal: Uint8Array | null;
  readonly #members: readonly Member[];
  readonly #targets: readonly Target[];
  /** Targets before these are done; the second runs behind the first. */
  #matchedTargets = 0;
  #foldedTargets = 0;
  #accepted: boolean;
  #closed = false;

  /** The views' partitions that any of the asks needs are taken up. `close` must follow. */
  constructor(views: readonly UsageView[], expression: string, asks: readonly ApiCountsAsk[]) {
    assert(expression.length > 0, 'an expression is never empty');
    const askedUs = Math.max(...asks.map((ask) => ask.nowUs));
    const windows = asks.map((ask) => new ApiCounts(ask.interval, ask.nowUs));
    this.#members = views.map((view) => ({ view, standing: view.ask(expression, askedUs) }));
    const targets: Target[] = [];
    for (const { view, standing } of this.#members) {
      assert(standing.literal !== null || standing.roundCount === 0, 'an expression has one round at a time');
      standing.roundCount += 1;
      for (const partition of view.partitions()) {
        if (!windows.some((window) => window.overlaps(partition))) continue;
        const matches = view.standing.matchesOf(standing, partition);
        if (matches === null) continue;
        targets.push({
          partition,
          matches,
          urlCount: partition.urls.count,
          entryCount: partition.entries.count,
        });
      }
    }
    this.#targets = targets;
    this.#literal = this.#members[0]?.standing.literal ?? null;
    this.#accepted = this.#members.length > 0 && this.#members.every(({ standing }) => standing.accepted);
  }

  /** Does about `sliceBytes` of work, or finds that batches are to be matched first. */
  advance(sliceBytes: number): RoundState {
    if (this.#literal !== null) return this.#advanceLiteral(this.#literal, sliceBytes);
    if (!this.#accepted || !this.#allMatched()) return 'waiting';
    return this.#foldFrozen(sliceBytes);
  }

  /** The next URLs to be matched, about `byteLimit` bytes and at least one URL; null when none are left. */
  takeBatch(byteLimit: number): UrlBatch | null {
    assert(this.#literal === null, 'a literal is not matched elsewhere');
    if (!this.#accepted) return { bytes: new Uint8Array(0), ends: new Uint32Array(0) };
    if (this.#allMatched()) return null;
    return copyUrls(this.#targets, this.#matchedTargets, byteLimit);
  }

  /** The verdicts on the batch taken last: not 0 where the URL matches. They are noted for all rounds to come. */
  supply(verdicts: Uint8Array): void {
    assert(!this.#closed, 'a closed round takes no verdicts');
    if (!this.#accepted) {
      this.#accepted = true;
      for (const { standing } of this.#members) standing.accepted = true;
      return;
    }
    let next = 0;
    for (let t = this.#matchedTargets; next < verdicts.length; t++) {
      const { matches, urlCount } = this.#targets[t];
      while (next < verdicts.length && matches.evaluatedUrls < urlCount) {
        matches.addVerdict(verdicts[next] !== 0);
        next += 1;
      }
    }
  }

  /** The answer to one of the asks, once ready. */
  rows(ask: ApiCountsAsk): ApiCountsRow[] {
    const counts = new ApiCounts(ask.interval, ask.nowUs);
    if (this.#literal === null) {
      for (const { partition, matches } of this.#targets) counts.add(partition, matches.list);
      return counts.rows();
    }
    for (const { view, standing } of this.#members) {
      for (const partition of view.partitions()) {
        if (!counts.overlaps(partition)) continue;
        const matches = standing.matches.get(partition.hourIndex);
        if (matches !== undefined) counts.add(partition, matches.list);
      }
    }
    return counts.rows();
  }

  /** Lets go of the standing expressions; with `forget` they stand no longer. */
  close(forget = false): void {
    assert(!this.#closed, 'a round is closed once');
    this.#closed = true;
    for (const { view, standing } of this.#members) {
      standing.roundCount -= 1;
      if (forget && standing.roundCount === 0) view.standing.drop(standing);
      else view.standing.trim();
    }
  }

  #advanceLiteral(literal: Uint8Array, sliceBytes: number): RoundState {
    let left = sliceBytes;
    for (const { partition, matches } of this.#targets) {
      if (matches.live) continue;
      while (
        matches.evaluatedUrls < partition.urls.count ||
        matches.foldedEntries < partition.entries.count
      ) {
        if (left <= 0) return 'unfinished';
        left -= evaluateLiteral(partition, matches, literal, left);
        if (matches.evaluatedUrls < partition.urls.count) return 'unfinished';
        left -= foldSome(partition, matches, partition.entries.count, left);
      }
      matches.goLive();
    }
    return 'ready';
  }

  #foldFrozen(sliceBytes: number): RoundState {
    let left = sliceBytes;
    for (; this.#foldedTargets < this.#targets.length; this.#foldedTargets++) {
      const { partition, matches, entryCount } = this.#targets[this.#foldedTargets];
      assert(matches.foldedEntries <= entryCount, 'a frozen partition was folded too far');
      while (matches.foldedEntries < entryCount) {
        if (left <= 0) return 'unfinished';
        left -= foldSome(partition, matches, entryCount, left);
      }
    }
    return 'ready';
  }

  #allMatched(): boolean {
    const targets = this.#targets;
    while (this.#matchedTargets < targets.length) {
      const { matches, urlCount } = targets[this.#matchedTargets];
      if (matches.evaluatedUrls < urlCount) return false;
      this.#matchedTargets += 1;
    }
    return true;
  }
}

/** Folds entries up to ordinal `entryCount` as far as the budget goes, at least one; returns what that cost. */
function foldSome(
  partition: UsagePartition,
  matches: PartitionMatches,
  entryCount: number,
  budgetBytes: number,
): number {
  const affordable = Math.max(1, Math.floor(budgetBytes / ENTRY_COST_BYTES));
  const count = Math.min(entryCount - matches.foldedEntries, affordable);
  matches.fold(partition, count);
  return count * ENTRY_COST_BYTES;
}

/** Copies the next unevaluated URLs of the targets from `firstTarget` on, about `byteLimit` bytes. */
function copyUrls(targets: readonly Target[], firstTarget: number, byteLimit: number): UrlBatch {
  const parts: Uint8Array[] = [];
  const ends: number[] = [];
  let byteCount = 0;
  for (let t = firstTarget; t < targets.length && byteCount < byteLimit; t++) {
    const { partition, matches, urlCount } = targets[t];
    let code = matches.evaluatedUrls;
    while (code < urlCount && byteCount < byteLimit) {
      const page = partition.urls.pages[partition.urls.pageIndexOf(code)];
      const first = code - page.firstCode;
      const start = page.startOf(first);
      const endIndex = Math.min(page.count, urlCount - page.firstCode);
      const base = byteCount - start;
      let index = first;
      while (index < endIndex && byteCount < byteLimit) {
        byteCount = base + page.ends[index];
        ends.push(byteCount);
        index += 1;
      }
      parts.push(page.bytes.subarray(start, byteCount - base));
      code = page.firstCode + index;
    }
  }
  const bytes = new Uint8Array(byteCount);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return { bytes, ends: Uint32Array.from(ends) };
}
