/**
 * Shares the match thread among evaluations: one batch at a time, the evaluation that has had the least of
 * the thread goes next, so no expression keeps another waiting for longer than a batch. An expression that
 * takes too long, or more memory than the thread may have, is refused and the thread starts again; the others
 * lose nothing.
 */

import { Worker } from 'node:worker_threads';
import { assert } from '../../engine/assert.js';
import { SegmentError } from '../../engine/segments.js';
import type { BatchResult, PartBatch } from '../../engine/usage/expressions/scan-lane.js';
import type { BatchRoom, UrlBatch } from '../../engine/usage/expressions/url-batch.js';
import type { UsageView } from '../../engine/usage/usage-view.js';
import type { LocatedFile } from '../store/blocks/stored-blocks.js';
import { busy, ExpressionError, stopped } from './expression-error.js';
import {
  BATCH_TARGET_MS,
  DEADLINE_CHECK_MS,
  FIRST_BATCH_BYTES,
  LARGEST_BATCH_BYTES,
  LONE_SCAN_MS,
} from './limits.js';
import type { MatchReply, MatchRequest } from './match-protocol.js';
import type { ThreadTime } from './thread-time.js';

/** Batches that go through the thread for one expression. */
export interface BatchSource {
  /** The next batch, or null when there isn't one. A batch whose results never came is asked for again. */
  takeBatch(byteLimit: number, room: BatchRoom): UrlBatch | PartBatch | null;
  /** What came of the batch taken last. */
  note(result: BatchResult): void;
}

export interface MatchThreadOptions {
  /** Thread time for one evaluation, on all threads together. */
  readonly deadlineMs: number;
  readonly heapMb: number;
  /** Evaluations at once. */
  readonly evaluationLimit: number;
  readonly files: PartFiles;
}

/** The files of sealed parts. */
export interface PartFiles {
  locate(view: UsageView, file: string): LocatedFile;
  /** Told what is wrong with a file. */
  damaged(view: UsageView, file: string, problem: string): void;
}

interface Evaluation {
  readonly expression: string;
  readonly source: BatchSource;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
  readonly time: ThreadTime;
  /**
   * Its place in the order of turns: the thread time it had, counted from what the others had when it came.
   */
  turnMs: number;
  batchBytes: number;
  crashCount: number;
}

interface InFlight {
  readonly evaluation: Evaluation;
  readonly batch: UrlBatch | PartBatch;
  readonly byteCount: number;
  /** Takes note of the time that the batch took. */
  readonly end: (elapsedMs?: number) => void;
  deadline: NodeJS.Timeout;
}

export class MatchThread {
  readonly #options: MatchThreadOptions;
  readonly #evaluations = new Set<Evaluation>();
  #worker: Worker | null = null;
  #ready = false;
  #inFlight: InFlight | null = null;
  #stopped = false;
  /** What the last batch of URLs came back in. */
  #spare: ArrayBuffer | null = null;
  /** Buffers for batches that were ever made. */
  buffersMade = 0;
  /** How often the thread was begun, the first time included. */
  startCount = 0;

  constructor(options: MatchThreadOptions) {
    this.#options = options;
  }

  /** Begins the thread ahead of its first evaluation, which else waits for it. */
  start(): void {
    if (!this.#stopped) this.#readyWorker();
  }

  /**
   * Resolves when the source has no batch left; rejects with an ExpressionError, or as the thread does when
   * it can't start.
   */
  run(expression: string, source: BatchSource, time: ThreadTime): Promise<void> {
    if (this.#stopped) return Promise.reject(stopped());
    if (this.#evaluations.size >= this.#options.evaluationLimit) {
      return Promise.reject(busy(this.#evaluations.size));
    }
    let turnMs = Number.POSITIVE_INFINITY;
    for (const other of this.#evaluations) turnMs = Math.min(turnMs, other.turnMs);
    return new Promise((resolve, reject) => {
      this.#evaluations.add({
        expression,
        source,
        resolve,
        reject,
        time,
        turnMs: Number.isFinite(turnMs) ? turnMs : 0,
        batchBytes: FIRST_BATCH_BYTES,
        crashCount: 0,
      });
      this.#sendNext();
    });
  }

  /** Ends the evaluation of a source that waits for its turn but has no batch left. */
  leave(source: BatchSource): void {
    for (const evaluation of this.#evaluations) {
      if (evaluation.source !== source || evaluation === this.#inFlight?.evaluation) continue;
      this.#evaluations.delete(evaluation);
      evaluation.resolve();
    }
  }

  /** Refuses what is under way and ends the thread. */
  async stop(): Promise<void> {
    this.#stopped = true;
    if (this.#inFlight !== null) this.#land();
    const worker = this.#dropWorker();
    for (const evaluation of this.#evaluations) this.#refuse(evaluation, stopped());
    await worker?.terminate();
  }

  #sendNext(): void {
    while (this.#inFlight === null && !this.#stopped) {
      const evaluation = this.#nextInTurn();
      if (evaluation === null) return;
      const worker = this.#readyWorker();
      if (worker === null) return;
      const batch = evaluation.source.takeBatch(evaluation.batchBytes, this.#room);
      if (batch === null) {
        this.#evaluations.delete(evaluation);
        evaluation.resolve();
        continue;
      }
      this.#send(worker, evaluation, batch);
    }
  }

  /**
   * The thread, or null while it is starting: then it calls again; or when none can be started: then all are
   * refused.
   */
  #readyWorker(): Worker | null {
    try {
      this.#worker ??= this.#startWorker();
    } catch (error) {
      for (const evaluation of this.#evaluations) this.#refuse(evaluation, error as Error);
    }
    return this.#ready ? this.#worker : null;
  }

  #nextInTurn(): Evaluation | null {
    let next: Evaluation | null = null;
    for (const evaluation of this.#evaluations) {
      if (next === null || evaluation.turnMs < next.turnMs) next = evaluation;
    }
    return next;
  }

  #send(worker: Worker, evaluation: Evaluation, batch: UrlBatch | PartBatch): void {
    const end = evaluation.time.begin();
    // How much a batch of URLs was is asked for when its memory is gone.
    const byteCount = batch.kind === 'urls' ? batch.bytes.length : 0;
    this.#inFlight = { evaluation, batch, byteCount, end, deadline: this.#timer(evaluation) };
    const { expression } = evaluation;
    if (batch.kind === 'urls') {
      const { kind, bytes, ends } = batch;
      const request: MatchRequest = { kind, expression, bytes, ends };
      worker.postMessage(request, [bytes.buffer, ends.buffer]);
      return;
    }
    const { kind, view, file, from, matches } = batch;
    const located = this.#options.files.locate(view, file);
    const targetMs = this.#evaluations.size > 1 ? BATCH_TARGET_MS : LONE_SCAN_MS;
    const request: MatchRequest = { kind, expression, scan: { file, from, matches }, located, targetMs };
    worker.postMessage(request);
  }

  /** One buffer goes to and fro: those that are dropped are freed late, on either side. */
  readonly #room: BatchRoom = (byteCount) => {
    const spare = this.#spare;
    this.#spare = null;
    if (spare !== null && spare.byteLength >= byteCount) return new Uint8Array(spare, 0, byteCount);
    this.buffersMade += 1;
    return new Uint8Array(new ArrayBuffer(Math.max(byteCount, LARGEST_BATCH_BYTES)), 0, byteCount);
  };

  #startWorker(): Worker {
    const worker = new Worker(new URL('./match-worker.js', import.meta.url), {
      name: 'logring-match',
      // Options of the process, such as a debugger's port, are not the thread's.
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: this.#options.heapMb },
    });
    this.startCount += 1;
    // A worker that was dropped may still speak.
    worker.on('message', (reply: MatchReply) => {
      if (worker === this.#worker) this.#receive(reply);
    });
    worker.on('error', (error) => {
      if (worker === this.#worker) this.#recover(error);
    });
    worker.on('exit', () => {
      if (worker === this.#worker) this.#recover(new Error('the match thread ended by itself'));
    });
    worker.unref();
    return worker;
  }

  #receive(reply: MatchReply): void {
    if (reply.outcome === 'ready') {
      this.#ready = true;
    } else {
      const { evaluation, batch, byteCount } = this.#land(
        reply.outcome === 'matched' ? reply.elapsedMs : undefined,
      );
      if (reply.outcome === 'refused')
        this.#refuse(evaluation, new ExpressionError(reply.kind, reply.message));
      else if (reply.outcome === 'failed') this.#failed(evaluation, batch, reply);
      else {
        // A batch without a URL is not counted in #room.
        if ((reply.spent?.length ?? 0) > 0) this.#spare = reply.spent!.buffer;
        this.#note(evaluation, byteCount, reply.result, reply.elapsedMs);
      }
    }
    this.#sendNext();
  }

  #failed(
    evaluation: Evaluation,
    batch: UrlBatch | PartBatch,
    { message, isDamage }: MatchReply & { readonly outcome: 'failed' },
  ): void {
    if (isDamage && batch.kind === 'part') this.#options.files.damaged(batch.view, batch.file, message);
    this.#refuse(evaluation, isDamage ? new SegmentError(message) : new Error(message));
  }

  #note(evaluation: Evaluation, byteCount: number, result: BatchResult, elapsedMs: number): void {
    evaluation.source.note(result);
    evaluation.turnMs += elapsedMs;
    evaluation.batchBytes = nextBatchBytes(evaluation.batchBytes, byteCount, elapsedMs);
    if (evaluation.time.leftMs <= 0) this.#refuse(evaluation, this.#tooExpensive());
  }

  #timer(evaluation: Evaluation): NodeJS.Timeout {
    const { time } = evaluation;
    const look = () => {
      if (time.leftMs <= 0) this.#abandon(evaluation);
      else if (this.#inFlight !== null) this.#inFlight.deadline = this.#timer(evaluation);
    };
    return setTimeout(look, Math.min(time.lookMs, DEADLINE_CHECK_MS)).unref();
  }

  /** The batch in flight has used up its evaluation's time: only ending the thread stops it. */
  #abandon(evaluation: Evaluation): void {
    this.#land();
    this.#endWorker();
    this.#refuse(evaluation, this.#tooExpensive());
    this.#sendNext();
  }

  /**
   * The thread died, usually because memory is short. Others may have filled it, so the batch is tried once
   * more.
   */
  #recover(error: Error): void {
    const wasReady = this.#ready;
    this.#dropWorker();
    if (!wasReady) {
      for (const evaluation of this.#evaluations) this.#refuse(evaluation, error);
      return;
    }
    if (this.#inFlight === null) return;
    const { evaluation } = this.#land();
    evaluation.crashCount += 1;
    if (evaluation.crashCount > 1) {
      const message = `made the match thread fail: ${error.message}`;
      this.#refuse(evaluation, new ExpressionError('too-complex', message));
    }
    this.#sendNext();
  }

  #land(elapsedMs?: number): InFlight {
    const inFlight = this.#inFlight;
    assert(inFlight !== null, 'the match thread answered what nobody asked');
    clearTimeout(inFlight.deadline);
    inFlight.end(elapsedMs);
    this.#inFlight = null;
    return inFlight;
  }

  #refuse(evaluation: Evaluation, error: Error): void {
    this.#evaluations.delete(evaluation);
    evaluation.reject(error);
  }

  #dropWorker(): Worker | null {
    const worker = this.#worker;
    this.#worker = null;
    this.#ready = false;
    return worker;
  }

  #endWorker(): void {
    const worker = this.#dropWorker();
    if (worker !== null) void worker.terminate();
  }

  #tooExpensive(): ExpressionError {
    const message = `takes more than ${this.#options.deadlineMs} ms to evaluate`;
    return new ExpressionError('too-expensive', message);
  }
}

/** Towards BATCH_TARGET_MS, by at most a factor of four at a time; down to single URLs. */
function nextBatchBytes(askedBytes: number, byteCount: number, elapsedMs: number): number {
  if (byteCount === 0) return askedBytes;
  const fitting = (byteCount * BATCH_TARGET_MS) / Math.max(elapsedMs, 0.01);
  return Math.max(1, Math.min(Math.floor(fitting), 4 * askedBytes, LARGEST_BATCH_BYTES));
}
