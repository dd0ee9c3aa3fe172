/**
 * Answers of `logs.all` that are too large for one turn of the event loop: some rows of one answer are read a turn, and they are
 * counted among the answers in flight from the beginning.
 */

import { LASTING_ROW_BYTES } from '../../engine/rows/block.js';
import { LogsReading } from '../../engine/rows/logs-reading.js';
import type { LogsParameters } from '../../engine/rows/partial.js';
import { Turns } from '../turns.js';
import type { AnswersInFlight, Holding } from './answers-in-flight.js';
import { ANSWER_RETRY_SECONDS, LOGS_STEP_BYTES } from './limits.js';
import { type Clock, type QueryPort, Unavailable } from './ports.js';
import { logsPieces } from './row-encoders.js';

export interface LargeLogsAnswer {
  readonly rows: readonly Uint8Array[];
  readonly pieces: readonly Uint8Array[];
  /** The time of which it is the answer. */
  readonly nowUs: number;
  /** Counts the pieces; to be released when they have been sent. */
  readonly holding: Holding;
}

export class LargeLogs {
  readonly #queries: QueryPort;
  readonly #inFlight: AnswersInFlight;
  readonly #clock: Clock;
  readonly #turns = new Turns();

  constructor(queries: QueryPort, inFlight: AnswersInFlight, clock: Clock) {
    this.#queries = queries;
    this.#inFlight = inFlight;
    this.#clock = clock;
  }

  /** Rejects with Unavailable when there is no room for it. */
  async read(parameters: LogsParameters): Promise<LargeLogsAnswer> {
    const holding = this.#inFlight.hold();
    const reading = new LogsReading();
    try {
      for (let byteLimit = LOGS_STEP_BYTES; ; byteLimit += LOGS_STEP_BYTES) {
        await this.#turns.next();
        const nowUs = this.#clock.nowUs();
        const rows = this.#queries.logs(parameters, nowUs, byteLimit, reading);
        if (rows === null) {
          resize(holding, reading.heldBytes);
          continue;
        }
        const pieces = logsPieces(rows, LASTING_ROW_BYTES);
        resize(
          holding,
          pieces.reduce((bytes, { buffer }) => bytes + buffer.byteLength, 0),
        );
        return { rows, pieces, nowUs, holding };
      }
    } catch (error) {
      holding.release();
      throw error;
    }
  }
}

function resize(holding: Holding, byteCount: number): void {
  if (holding.resize(byteCount)) return;
  throw new Unavailable(
    'so many large answers are being sent that there is no memory for this one; try again, ask for a shorter time, or raise LOGRING_MEMORY_BUDGET_MB',
    ANSWER_RETRY_SECONDS,
  );
}
