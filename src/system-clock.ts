/** The real clock. Nothing else in the product reads it; everything else is given one. */

/** Microseconds since the epoch, as the system's clock has it now: it may step. */
export function wallClockUs(): number {
  return Date.now() * 1000;
}

/**
 * Microseconds of a clock that never steps; only differences mean anything, also between times that different threads
 * of this process have read.
 */
export function monotonicUs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1_000_000 + Math.round(nanoseconds / 1000);
}
