/** Work on files that others come between. */

import { assert } from '../../../engine/assert.js';

/** Goes on after each step, and after one that yields a promise once that resolves; one that rejects is thrown there. */
export type FileSteps<Result> = Generator<void | Promise<void>, Result>;

/** Runs through all steps, which may not yield promises. */
export function finished<Result>(steps: FileSteps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    assert(step.value === undefined, 'a step has to be waited for');
  }
}
