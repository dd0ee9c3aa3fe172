/** Why an expression of a caller got no answer. */

/**
 * invalid: not an expression in RE2's syntax. too-long, too-complex, too-expensive: over a limit of
 * limits.ts. busy: too many expressions are being evaluated, or this one for too long already, or what it is about was
 * replaced meanwhile. stopped: the service is shutting down.
 */
export type ExpressionErrorKind =
  | 'invalid'
  | 'too-long'
  | 'too-complex'
  | 'too-expensive'
  | 'busy'
  | 'stopped';

/** The message reads on from the name of the expression: `is 2000 characters long, …`. */
export class ExpressionError extends Error {
  override name = 'ExpressionError';
  readonly kind: ExpressionErrorKind;

  constructor(kind: ExpressionErrorKind, message: string) {
    super(message);
    this.kind = kind;
  }
}

export function busy(otherCount: number): ExpressionError {
  return new ExpressionError(
    'busy',
    `can't be evaluated now: ${otherCount} others are, which is the limit; try again`,
  );
}

export function crowded(otherCount: number): ExpressionError {
  return new ExpressionError(
    'busy',
    `can't be evaluated now: what ${otherCount} others find takes all the memory that there is for it; try again`,
  );
}

export function slow(waitMs: number, otherCount: number): ExpressionError {
  return new ExpressionError(
    'busy',
    `is not evaluated after ${waitMs / 1000} s, while ${otherCount} others are evaluated too; it goes on, so try again`,
  );
}

export function held(waitMs: number): ExpressionError {
  return new ExpressionError(
    'busy',
    `is not evaluated after ${waitMs / 1000} s: the state of a partition is about to be replaced; try again`,
  );
}

export function replaced(): ExpressionError {
  return new ExpressionError('busy', 'is not evaluated: the state of a partition was replaced; try again');
}

export function stopped(): ExpressionError {
  return new ExpressionError('stopped', 'is not evaluated any more: the service is shutting down');
}
