/**
 * How an expression that was never asked for is evaluated, over the shards of a process, for one or more
 * asks, in slices: pure, synchronous, and told by its caller when to go on. What each shard counts is exact
 * for one state of it between ask and answer.
 *
 *   parts            literal (no operators)     any other expression
 *   fresh            here, slice by slice       URLs go in batches to a match thread
 *   sealed (files)   match threads read and scan the files, a piece at a time
 *
 * Sealed parts never change; their files stay until the evaluation is closed. Of fresh parts new URLs may
 * come faster than batches come back, so each is frozen when the evaluation begins, and counted in that
 * state: a URL's code is at most that of the entry that brought it, so a prefix of the entries needs only a
 * prefix of the URLs. What was found stays with the view (standing-expressions.ts), which keeps it up to
 * date.
 */

import { assert } from '../../assert.js';
import type { ApiCounts, ApiCountsAsk } from '../api-counts.js';
import type { UsageView } from '../usage-view.js';
import { type BatchResult, type PartBatch, ScanLane, type ScanTarget, urlsLeft } from './scan-lane.js';
import { ShardEvaluation } from './shard-evaluation.js';
import { type BatchRoom, noUrls, type UrlBatch } from './url-batch.js';

/** unfinished: advance again. waiting: batches are to be worked on first. */
export type EvaluationState = 'ready' | 'unfinished' | 'waiting';

export class ExpressionEvaluation {
  readonly #shards: readonly ShardEvaluation[];
  readonly #unscanned: ScanTarget[];
  /** The first is the evaluation's own. */
  readonly #lanes: ScanLane[];
  #isAccepted: boolean;
  #isCancelled = false;
  #isClosed = false;

  /** `close` must follow. */
  constructor(views: readonly UsageView[], expression: string, asks: readonly ApiCountsAsk[]) {
    assert(expression.length > 0, 'an expression is never empty');
    this.#shards = views.map((view) => new ShardEvaluation(view, expression, asks));
    this.#unscanned = this.#shards.flatMap(({ unscanned }) => unscanned);
    this.#lanes = [new ScanLane(this.#unscanned)];
    this.#isAccepted = views.length > 0 && this.#shards.every(({ isAccepted }) => isAccepted);
  }

  /** Does about `sliceBytes` of work, or finds that batches are to be worked on first. */
  advance(sliceBytes: number): EvaluationState {
    if (!this.#isAccepted || this.#isScanning()) return 'waiting';
    let left = sliceBytes;
    for (const shard of this.#shards) {
      left = shard.advance(left);
      if (!shard.isReady) return 'unfinished';
    }
    return 'ready';
  }

  /**
   * What is to be worked on next: a piece of a part, or about `byteLimit` bytes of URLs; of an expression
   * that nobody has compiled yet at least a batch of none. Null: nothing is left.
   */
  takeBatch(byteLimit: number, room: BatchRoom): UrlBatch | PartBatch | null {
    if (this.#isCancelled) return null;
    return this.#lanes[0].takeBatch(byteLimit, room) ?? (this.#isAccepted ? null : noUrls());
  }

  /** What came of the batch taken last. It is noted for all evaluations to come. */
  note(result: BatchResult): void {
    assert(!this.#isClosed, 'a closed evaluation takes no results');
    if (this.#lanes[0].isBusy) this.#lanes[0].note(result);
    if (this.#isAccepted) return;
    this.#isAccepted = true;
    for (const shard of this.#shards) shard.accept();
  }

  /** Parts that nobody looks at yet, and their URLs. */
  get unscanned(): { readonly partCount: number; readonly urlCount: number } {
    const urlCount = this.#unscanned.reduce((sum, target) => sum + urlsLeft(target), 0);
    return { partCount: this.#unscanned.length, urlCount };
  }

  /** For another thread, which takes parts as the evaluation's own does. */
  addLane(): ScanLane {
    const lane = new ScanLane(this.#unscanned);
    this.#lanes.push(lane);
    return lane;
  }

  /** No batch is handed out any more. */
  cancel(): void {
    this.#isCancelled = true;
    for (const lane of this.#lanes) lane.cancel();
  }

  /** The partial answers to one of the asks, once ready: one of each view. */
  collect(ask: ApiCountsAsk): ApiCounts[] {
    return this.#shards.map((shard) => shard.collect(ask));
  }

  /** Lets go of the standing expressions; with `forget` they stand no longer. */
  close(forget = false): void {
    assert(!this.#isClosed, 'an evaluation is closed once');
    this.#isClosed = true;
    for (const shard of this.#shards) shard.close(forget);
  }

  #isScanning(): boolean {
    return this.#unscanned.length > 0 || this.#lanes.some((lane) => lane.isBusy);
  }
}
