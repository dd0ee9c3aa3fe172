/** Why a query gets no answer, thrown or rejected; HTTP says it to the caller. */

import type { ParameterProblem } from './call-parameters.js';
import { CHANGED_RETRY_SECONDS } from './limits.js';

/** The service can't answer now, and the caller should come again. */
export class Unavailable extends Error {
  override name = 'Unavailable';
  readonly retryAfterSeconds: number;

  constructor(message: string, retryAfterSeconds: number) {
    super(message);
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

/** What the answer was to be made of is not the same any more. */
export class PartitionsChanged extends Unavailable {
  constructor() {
    super('the partitions changed while the answer was computed; try again', CHANGED_RETRY_SECONDS);
  }
}

/** What is asked for is wrong, in a way that only answering it has shown. */
export class InvalidArgument extends Error {
  override name = 'InvalidArgument';
  readonly problems: readonly ParameterProblem[];

  constructor(problems: readonly ParameterProblem[]) {
    super(problems.map(({ parameter, message }) => `${parameter} ${message}`).join('; '));
    this.problems = problems;
  }
}
