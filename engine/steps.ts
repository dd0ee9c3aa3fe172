/** Work in steps that others may come between. */

import { assert } from './assert.js';

/** Goes on after each step, and after one that yields a promise once that resolves; one that rejects is thrown there. */
export type Steps<Result> = Generator<void | Promise<void>, Result>;

/** Runs through all steps, which may not yield promises. */
export function finished<Result>(steps: Steps<Result>): Result {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    assert(step.value === undefined, 'a step has to be waited for');
  }
}
