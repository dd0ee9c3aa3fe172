/** What endpoints and ports of the API refuse, thrown or rejected, and how it is answered. */

import { SegmentError } from '../../engine/segments.js';
import { InvalidArgument, Unavailable } from '../endpoints/refusal.js';
import { isOutOfDescriptors } from '../store/disk/system-errors.js';
import { dataLoss, invalidArgument, unavailable } from './errors.js';
import { DESCRIPTORS_RETRY_SECONDS } from './limits.js';
import type { HttpAnswer } from './server/server.js';

type Answer = HttpAnswer | Promise<HttpAnswer>;

/** Turns what a query refuses into its answer, thrown or rejected; anything else is a bug and goes on. */
export function refusable(run: () => Answer): Answer {
  const refused = (error: unknown): HttpAnswer => {
    const refusal = refusalOf(error);
    if (refusal === null) throw error;
    return refusal;
  };
  try {
    const answer = run();
    return answer instanceof Promise ? answer.catch(refused) : answer;
  } catch (error) {
    return refused(error);
  }
}

/** null for what is no refusal. */
export function refusalOf(error: unknown): HttpAnswer | null {
  if (error instanceof Unavailable) return unavailable(error.message, error.retryAfterSeconds);
  if (error instanceof InvalidArgument) return invalidArgument(error.problems);
  if (error instanceof SegmentError) return dataLoss();
  if (isOutOfDescriptors(error))
    return unavailable(
      "too many files and connections are open, so what is stored can't be read; raise the limit of open files (ulimit -n, LimitNOFILE)",
      DESCRIPTORS_RETRY_SECONDS,
    );
  return null;
}
