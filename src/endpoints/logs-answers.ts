/**
 * Answers of `logs.all`. Usual ones are put together at once, in buffers that are used again. Of those that
 * are too large for one turn of the event loop some rows of one answer are read a turn, and they are counted
 * among the large answers from the beginning, what other processes have sent of them included.
 */

import { LASTING_ROW_BYTES } from '../../engine/rows/block.js';
import { LogsReading } from '../../engine/rows/logs-reading.js';
import {
  cameBytes,
  type LogsParameters,
  type LogsPartial,
  type MergedLogs,
  RowDidNotCome,
} from '../../engine/rows/partial.js';
import { longWorkTurn } from '../turns.js';
import { BodyPool } from './body-pool.js';
import type { EndpointResources, Holding, LiveAnswer } from './endpoint.js';
import { ANSWER_RETRY_SECONDS, LOGS_STEP_BYTES } from './limits.js';
import { encodeLogs, logsPieces, logsWindow } from './logs-body.js';
import { Unavailable } from './refusal.js';

/** Null for more than `byteLimit` bytes of rows. */
export type QueryLogs = (nowUs: number, byteLimit: number, reading: LogsReading | null) => MergedLogs | null;

export class LogsAnswers {
  readonly #largeAnswers: EndpointResources['largeAnswers'];
  readonly #nowUs: () => number;
  readonly #bodies = new BodyPool();

  constructor(largeAnswers: EndpointResources['largeAnswers'], nowUs: () => number) {
    this.#largeAnswers = largeAnswers;
    this.#nowUs = nowUs;
  }

  /** `others`: what other processes have sent of it, as of `nowUs`. */
  answer(
    parameters: LogsParameters,
    nowUs: number,
    query: QueryLogs,
    others: readonly LogsPartial[] = [],
  ): LiveAnswer | Promise<LiveAnswer> {
    const merged = query(nowUs, LOGS_STEP_BYTES, null);
    if (merged !== null) return this.#usual(merged, parameters, nowUs);
    const readClock = others.length === 0 ? this.#nowUs : () => nowUs;
    return this.#large(parameters, query, readClock, cameBytes(others));
  }

  /** Nothing that a slow client makes last may reach the rows, which keep their blocks in memory. */
  #usual(
    { rows, reachUs, visibleUntilUs }: MergedLogs,
    parameters: LogsParameters,
    nowUs: number,
  ): LiveAnswer {
    let buffer: Buffer<ArrayBuffer> | null = null;
    const body = encodeLogs(rows, (byteCount) => {
      buffer = this.#bodies.take(byteCount);
      return buffer;
    });
    return {
      body,
      visibleUntilUs,
      window: windowOf(parameters, reachUs, nowUs),
      holding: null,
      release: () => {
        if (buffer !== null) this.#bodies.giveBack(buffer);
        buffer = null;
      },
    };
  }

  /** Rejects with Unavailable when there is no room for it. */
  async #large(
    parameters: LogsParameters,
    query: QueryLogs,
    readClock: () => number,
    othersBytes: number,
  ): Promise<LiveAnswer> {
    const holding = this.#largeAnswers.hold();
    const reading = new LogsReading();
    try {
      resize(holding, othersBytes);
      for (let byteLimit = LOGS_STEP_BYTES; ; byteLimit += LOGS_STEP_BYTES) {
        await longWorkTurn('answers');
        const nowUs = readClock();
        const merged = query(nowUs, byteLimit, reading);
        if (merged === null) {
          resize(holding, othersBytes + reading.heldBytes);
          continue;
        }
        const { rows, reachUs } = merged;
        const body = logsPieces(rows, LASTING_ROW_BYTES);
        resize(
          holding,
          body.reduce((bytes, { buffer }) => bytes + buffer.byteLength, 0),
        );
        const window = logsWindow(parameters, reachUs, nowUs);
        return { body, window: () => window, holding, release: () => holding.release() };
      }
    } catch (error) {
      holding.release();
      if (!(error instanceof RowDidNotCome)) throw error;
      throw new Unavailable(
        'logs that the answer was to have were deleted while it was computed; try again',
        ANSWER_RETRY_SECONDS,
      );
    }
  }
}

/** In a function of its own: closures of one function keep alive what any of them uses. */
function windowOf(parameters: LogsParameters, reachUs: number, nowUs: number): LiveAnswer['window'] {
  return () => logsWindow(parameters, reachUs, nowUs);
}

function resize(holding: Holding, byteCount: number): void {
  if (holding.resize(byteCount)) return;
  throw new Unavailable(
    'so many large answers are being sent that there is no memory for this one; try again, ask for a shorter time, or raise LOGRING_MEMORY_BUDGET_MB',
    ANSWER_RETRY_SECONDS,
  );
}
