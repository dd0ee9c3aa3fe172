/** Why a try to copy a partition failed. */

import { BUSY_STATUS } from './hand-over.js';
import { PeerStatusError } from './peer-link.js';

/** A try failed; another may not, unless it is final. */
export class CopyError extends Error {
  override name = 'CopyError';
  readonly isFinal: boolean;

  constructor(message: string, isFinal = false, options?: ErrorOptions) {
    super(message, options);
    this.isFinal = isFinal;
  }

  /** Whether the giver serves others first. */
  get isBusy(): boolean {
    return this.cause instanceof PeerStatusError && this.cause.status === BUSY_STATUS;
  }
}

/** What a task rejects with becomes a CopyError. */
export async function failing<Result>(
  task: () => Promise<Result>,
  isFinal: (error: unknown) => boolean = () => false,
): Promise<Result> {
  try {
    return await task();
  } catch (error) {
    if (error instanceof CopyError) throw error;
    throw new CopyError((error as Error).message, isFinal(error), { cause: error });
  }
}
