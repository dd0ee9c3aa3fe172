/**
 * A run whose file can't be read: nobody knows whose rows it has, so every answer that reaches back to it is
 * refused. While rows are asked for it is tried again now and then, and it expires as any other run.
 */

import type { SegmentError } from '../segments.js';
import { type RunInfo, runFile } from './run.js';

export class UnreadableRun {
  readonly info: RunInfo;
  readonly file: string;
  /** Why it could not be read when it was tried last. */
  reason: SegmentError;
  readonly rowCount = 0;
  readonly rowByteCount = 0;
  readonly heldBytes = 0;

  constructor(info: RunInfo, reason: SegmentError) {
    this.info = info;
    this.file = runFile(info);
    this.reason = reason;
  }
}
