/** Why an import ended before its end, as a sentence for the operator. */

export class ImportError extends Error {
  override name = 'ImportError';
}

/** The operator ended it. */
export class ImportInterrupted extends ImportError {
  override name = 'ImportInterrupted';
}
