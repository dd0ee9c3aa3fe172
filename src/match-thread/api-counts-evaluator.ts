/**
 * The serving thread's side of evaluating expressions: collects the partial answers of `usage.api-counts`, at
 * once when nothing is left to evaluate, else by a promise. The serving thread does a slice of an evaluation
 * a turn, and match threads the rest (match-thread.ts; more than one where there are many URLs and cores).
 * Asks for one expression share its evaluation: those that come while one is under way are answered together
 * by the next, so that each answer holds everything that was applied before its ask.
 */

import { SegmentError } from '../../engine/segments.js';
import type { ApiCounts, ApiCountsAsk } from '../../engine/usage/api-counts.js';
import {
  type EvaluationState,
  ExpressionEvaluation,
} from '../../engine/usage/expressions/expression-evaluation.js';
import type { ScanLane } from '../../engine/usage/expressions/scan-lane.js';
import { isLiteral } from '../../engine/usage/expressions/standing-expressions.js';
import { noUrls } from '../../engine/usage/expressions/url-batch.js';
import { knownCounts } from '../../engine/usage/partial.js';
import type { UsageView } from '../../engine/usage/usage-view.js';
import { coreCount } from '../core-count.js';
import { monotonicUs } from '../system-clock.js';
import { longWorkTurn } from '../turns.js';
import { busy, crowded, ExpressionError, held, replaced, slow, stopped } from './expression-error.js';
import {
  EVALUATION_DEADLINE_MS,
  EVALUATION_LIMIT,
  EVALUATION_WAIT_MS,
  EXPRESSION_LENGTH_LIMIT,
  MATCH_HELPER_LIMIT,
  MATCH_THREAD_HEAP_MB,
  SLICE_BYTES,
  URLS_PER_HELPER,
} from './limits.js';
import { type BatchSource, MatchThread, type MatchThreadOptions } from './match-thread.js';
import { ThreadTime } from './thread-time.js';

export interface EvaluatorOptions extends MatchThreadOptions {
  /** After so long an ask is refused; the evaluation goes on, and what it finds is known to the next. */
  readonly waitMs: number;
  /** Work on the serving thread at one go, in bytes searched. */
  readonly sliceBytes: number;
  /** Match threads beside the first, for expressions over many URLs. */
  readonly helperCount: number;
  /** URLs of an evaluation for each of them. */
  readonly urlsPerHelper: number;
}

const DEFAULTS: Omit<EvaluatorOptions, 'files'> = {
  deadlineMs: EVALUATION_DEADLINE_MS,
  waitMs: EVALUATION_WAIT_MS,
  heapMb: MATCH_THREAD_HEAP_MB,
  evaluationLimit: EVALUATION_LIMIT,
  sliceBytes: SLICE_BYTES,
  helperCount: Math.min(MATCH_HELPER_LIMIT, coreCount() - 1),
  urlsPerHelper: URLS_PER_HELPER,
};

interface Running {
  readonly views: readonly UsageView[];
  readonly evaluation: ExpressionEvaluation;
  readonly state: EvaluationState;
  readonly asks: readonly WaitingAsk[];
}

interface WaitingAsk extends ApiCountsAsk {
  /** Of all that are evaluated, those that it is about; undefined: all. */
  readonly views: readonly UsageView[] | undefined;
  readonly resolve: (partials: ApiCounts[]) => void;
  readonly reject: (error: unknown) => void;
}

export class ApiCountsEvaluator {
  readonly #views: () => readonly UsageView[];
  readonly #options: EvaluatorOptions;
  readonly #thread: MatchThread;
  readonly #helpers: readonly MatchThread[];
  /** Expressions whose evaluation is under way, with the asks that came since it began. */
  readonly #running = new Map<string, WaitingAsk[]>();
  #holdCount = 0;
  /** By expression, what came while evaluations are held. */
  readonly #held = new Map<string, Set<WaitingAsk>>();
  #stopped = false;

  /** `views` is asked for the usage views of all shards whenever an evaluation begins. */
  constructor(
    views: () => readonly UsageView[],
    options: Partial<EvaluatorOptions> & Pick<EvaluatorOptions, 'files'>,
  ) {
    this.#views = views;
    this.#options = { ...DEFAULTS, ...options };
    this.#thread = new MatchThread(this.#options);
    this.#helpers = Array.from({ length: this.#options.helperCount }, () => new MatchThread(this.#options));
  }

  /**
   * Begins the match thread, so that the first expression doesn't wait for it; helpers begin when there is
   * work for them.
   */
  start(): void {
    this.#thread.start();
  }

  /** How often match threads were begun. */
  get threadStartCount(): number {
    return this.#helpers.reduce((sum, { startCount }) => sum + startCount, this.#thread.startCount);
  }

  /** Buffers for batches of URLs that were ever made: one for each thread and its beginnings. */
  get buffersMade(): number {
    return this.#helpers.reduce((sum, { buffersMade }) => sum + buffersMade, this.#thread.buffersMade);
  }

  /** Expressions whose evaluation is under way. */
  get runningCount(): number {
    return this.#running.size;
  }

  /**
   * What each shard counts of a non-empty expression; `chosen`: some of their views. Throws or rejects with an
   * ExpressionError. At once it costs tens of microseconds when the expression is up to date, and a slice at most.
   */
  collect(
    expression: string,
    ask: ApiCountsAsk,
    chosen?: readonly UsageView[],
  ): ApiCounts[] | Promise<ApiCounts[]> {
    if (this.#stopped) throw stopped();
    assertLength(expression);
    // Nothing is to be searched, and it may not be known yet whether it is an expression.
    if (chosen?.length === 0) return isLiteral(expression) ? [] : this.check(expression).then(() => []);
    const isHeld = this.#holdCount > 0;
    const waiting = this.#running.get(expression);
    if (waiting !== undefined && !isHeld) return this.#collectLater(ask, chosen, (one) => waiting.push(one));
    const known = waiting === undefined ? knownCounts(chosen ?? this.#views(), expression, ask) : null;
    if (known !== null) return known;
    const views = this.#views();
    const underWayCount = this.#running.size + this.#held.size;
    const heldAsks = this.#held.get(expression);
    if (heldAsks !== undefined) return this.#collectLater(ask, chosen, (one) => heldAsks.add(one));
    if (underWayCount >= this.#options.evaluationLimit) throw busy(underWayCount);
    if (this.#running.size > 0 && isCrowded(views)) throw crowded(this.#running.size);
    if (isHeld) return this.#collectLater(ask, chosen, (one) => this.#held.set(expression, new Set([one])));
    const evaluation = new ExpressionEvaluation(views, expression, [ask]);
    const state = evaluation.advance(this.#options.sliceBytes);
    if (state === 'ready') {
      const partials = ofViews(evaluation.collect(ask), views, chosen);
      evaluation.close();
      if (partials === null) throw replaced();
      return partials;
    }
    this.#running.set(expression, []);
    return this.#collectLater(
      ask,
      chosen,
      (one) => void this.#runAll(expression, { views, evaluation, state, asks: [one] }),
    );
  }

  /**
   * From now on no evaluation is begun until what is returned is called, so that those that run come to an end: what is
   * asked meanwhile waits.
   */
  hold(): () => void {
    this.#holdCount += 1;
    return () => {
      this.#holdCount -= 1;
      if (this.#holdCount > 0) return;
      for (const [expression, asks] of this.#held) this.#begin(expression, [...asks]);
      this.#held.clear();
    };
  }

  #begin(expression: string, asks: readonly WaitingAsk[]): void {
    const waiting = this.#running.get(expression);
    if (waiting !== undefined) {
      waiting.push(...asks);
      return;
    }
    const views = this.#views();
    this.#running.set(expression, []);
    const evaluation = new ExpressionEvaluation(views, expression, asks);
    void this.#runAll(expression, { views, evaluation, state: 'unfinished', asks });
  }

  /** What comes of an ask that is handed over, or a refusal when that takes too long. */
  #collectLater(
    ask: ApiCountsAsk,
    views: readonly UsageView[] | undefined,
    handOver: (one: WaitingAsk) => void,
  ): Promise<ApiCounts[]> {
    return new Promise<ApiCounts[]>((resolve, reject) => {
      const settled =
        <Outcome>(settle: (outcome: Outcome) => void) =>
        (outcome: Outcome) => {
          clearTimeout(timer);
          settle(outcome);
        };
      const one: WaitingAsk = { ...ask, views, resolve: settled(resolve), reject: settled(reject) };
      const timer = setTimeout(() => reject(this.#giveUp(one)), this.#options.waitMs).unref();
      handOver(one);
    });
  }

  /** Why an ask that has waited for too long is refused. One that is held is forgotten. */
  #giveUp(one: WaitingAsk): ExpressionError {
    const { waitMs } = this.#options;
    for (const [expression, asks] of this.#held) {
      if (!asks.delete(one)) continue;
      if (asks.size === 0) this.#held.delete(expression);
      return held(waitMs);
    }
    return slow(waitMs, this.#running.size - 1);
  }

  /**
   * Rejects with an ExpressionError for what can't be evaluated. The thread compiles it, because that may
   * take hundreds of milliseconds; what has no metacharacters is valid as it is.
   */
  async check(expression: string): Promise<void> {
    if (this.#stopped) throw stopped();
    assertLength(expression);
    if (isLiteral(expression)) return;
    let isTaken = false;
    // One batch without a URL: all that comes of it is whether the expression is valid.
    const source: BatchSource = {
      takeBatch: () => (isTaken ? null : noUrls()),
      note: () => {
        isTaken = true;
      },
    };
    await this.#thread.run(expression, source, this.#threadTime());
  }

  /** Refuses what is under way and ends the match threads. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const asks of this.#held.values()) for (const ask of asks) ask.reject(stopped());
    this.#held.clear();
    await Promise.all([this.#thread, ...this.#helpers].map((thread) => thread.stop()));
  }

  /** Finishes an evaluation, then one for the asks that came meanwhile, until none came. */
  async #runAll(expression: string, first: Running): Promise<void> {
    let running = first;
    for (;;) {
      const settle = await this.#finish(expression, running);
      const asks = this.#running.get(expression) ?? [];
      if (asks.length === 0) this.#running.delete(expression);
      else this.#running.set(expression, []);
      settle();
      if (asks.length === 0) return;
      const views = this.#views();
      const evaluation = new ExpressionEvaluation(views, expression, asks);
      running = { views, evaluation, state: 'unfinished', asks };
    }
  }

  /** Takes an evaluation to its end; what it returns answers the asks, or refuses them. */
  async #finish(expression: string, { views, evaluation, state, asks }: Running): Promise<() => void> {
    try {
      await this.#complete(expression, { views, evaluation, state });
      const settles = asks.map((ask) => {
        const partials = ofViews(evaluation.collect(ask), views, ask.views);
        return () => (partials === null ? ask.reject(replaced()) : ask.resolve(partials));
      });
      evaluation.close();
      return () => {
        for (const settle of settles) settle();
      };
    } catch (error) {
      evaluation.close(error instanceof ExpressionError && ['invalid', 'too-complex'].includes(error.kind));
      return () => {
        for (const ask of asks) ask.reject(error);
      };
    }
  }

  /** Goes on until it is ready, never more than a slice in one turn of the event loop. */
  async #complete(expression: string, running: Omit<Running, 'asks'>): Promise<void> {
    const { views, evaluation } = running;
    let { state } = running;
    while (state !== 'ready') {
      if (state === 'waiting') await this.#match(expression, evaluation, views);
      await longWorkTurn('evaluations');
      if (this.#stopped) throw stopped();
      if (this.#mustGiveWay(expression, views)) throw crowded(this.#running.size - 1);
      state = evaluation.advance(this.#options.sliceBytes);
    }
  }

  /** While matches take more memory than they may, only the oldest evaluation goes on. */
  #mustGiveWay(expression: string, views: readonly UsageView[]): boolean {
    const [oldest] = this.#running.keys();
    return expression !== oldest && isCrowded(views);
  }

  #threadTime(): ThreadTime {
    return new ThreadTime(this.#options.deadlineMs, () => monotonicUs() / 1000);
  }

  /**
   * On the thread, with help where there are URLs enough. When one refuses, the others end with what they
   * have in hand.
   */
  async #match(
    expression: string,
    evaluation: ExpressionEvaluation,
    views: readonly UsageView[],
  ): Promise<void> {
    const { partCount, urlCount } = evaluation.unscanned;
    const wanted = Math.min(Math.floor(urlCount / this.#options.urlsPerHelper), partCount - 1);
    const helpers = this.#helpers.slice(0, Math.max(0, wanted));
    const time = this.#threadTime();
    let givesWay = false;
    const source: BatchSource = {
      takeBatch: (byteLimit, room) => evaluation.takeBatch(byteLimit, room),
      note: (result) => {
        evaluation.note(result);
        givesWay ||= this.#mustGiveWay(expression, views);
        if (givesWay) evaluation.cancel();
      },
    };
    const own = this.#thread.run(expression, source, time);
    const help = (helper: MatchThread) =>
      this.#help((lane) => helper.run(expression, lane, time), helper, evaluation, own);
    const runs = [own, ...helpers.map(help)];
    for (const run of runs) run.catch(() => evaluation.cancel());
    for (const outcome of await Promise.allSettled(runs))
      if (outcome.status === 'rejected') throw outcome.reason;
    if (givesWay) throw crowded(this.#running.size - 1);
  }

  /**
   * Of a helper that can't be started there is no help: the thread does it all. One that has nothing to do is
   * not waited for.
   */
  async #help(
    run: (lane: ScanLane) => Promise<void>,
    helper: MatchThread,
    evaluation: ExpressionEvaluation,
    own: Promise<void>,
  ): Promise<void> {
    const lane = evaluation.addLane();
    const leave = () => {
      if (!lane.isBusy) helper.leave(lane);
    };
    own.then(leave, leave);
    try {
      await run(lane);
    } catch (error) {
      const isOfExpression = error instanceof ExpressionError && error.kind !== 'busy';
      if (isOfExpression || error instanceof SegmentError || lane.isBusy) throw error;
    }
  }
}

/** Of what each of `views` counts, what those that are chosen count; null where one is no longer among them. */
function ofViews(
  partials: ApiCounts[],
  views: readonly UsageView[],
  chosen: readonly UsageView[] | undefined,
): ApiCounts[] | null {
  if (chosen === undefined) return partials;
  if (chosen.some((view) => !views.includes(view))) return null;
  return chosen.map((view) => partials[views.indexOf(view)]);
}

function assertLength(expression: string): void {
  if (expression.length <= EXPRESSION_LENGTH_LIMIT) return;
  const message = `is ${expression.length} characters long, the limit is ${EXPRESSION_LENGTH_LIMIT}`;
  throw new ExpressionError('too-long', message);
}

function isCrowded(views: readonly UsageView[]): boolean {
  return views.some(({ standing }) => !standing.trim());
}
