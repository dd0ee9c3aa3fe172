/**
 * Assertions for our own bugs: a failed one ends the process through its one crash path. Bad input never gets
 * here.
 */

export class AssertionError extends Error {
  override name = 'AssertionError';
}

/** Messages are static strings: a template literal on a hot path costs more than the check. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}
