/** What an edge entry counts as, by its response status. */

export const OK = 0;
export const WARNING = 1;
export const ERROR = 2;

/** Of the outcomes: the counts of a bucket. */
export const OUTCOME_COUNT = 3;

/** 0 is no status, and ok as all below 400. */
export function outcomeOf(statusCode: number): number {
  return statusCode >= 500 ? ERROR : statusCode >= 400 ? WARNING : OK;
}
