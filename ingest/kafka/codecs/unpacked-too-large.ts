/** A batch unpacks to more than the limit: not damaged, but not to be taken into memory either. */

export class UnpackedTooLargeError extends RangeError {
  override name = 'UnpackedTooLargeError';

  constructor() {
    super('the batch unpacks to more than the limit');
  }
}

/** Whether the error is of this kind, from our own codecs or from Node's zlib. */
export function isUnpackedTooLarge(error: unknown): boolean {
  return (
    error instanceof UnpackedTooLargeError ||
    (error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE')
  );
}
