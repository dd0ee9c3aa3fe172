/**
 * A run whose file can't be read: nobody knows whose rows it has, so whoever's answer reaches back to it is refused. It
 * expires as any other run.
 */

import { SegmentError } from '../segments.js';
import { type RunInfo, runFile } from './run.js';

export class UnreadableRun {
  readonly info: RunInfo;
  readonly file: string;
  readonly #reason: string;
  readonly rowCount = 0;
  readonly rowByteCount = 0;
  readonly heldBytes = 0;

  constructor(info: RunInfo, reason: string) {
    this.info = info;
    this.file = runFile(info);
    this.#reason = reason;
  }

  refusal(): SegmentError {
    return new SegmentError(this.#reason);
  }
}
