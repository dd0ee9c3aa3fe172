/** The real clock. Nothing else in the product reads it; everything else is given one. */

const originUs = Math.round(performance.timeOrigin * 1000);

/** Microseconds since the epoch, as the system's clock has it now: it may step. */
export function wallClockUs(): number {
  return Date.now() * 1000;
}

/** Microseconds of a clock that never steps; only differences mean anything. */
export function monotonicUs(): number {
  return originUs + Math.round(performance.now() * 1000);
}
