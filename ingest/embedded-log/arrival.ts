/** When something was posted, milliseconds since the epoch. */

/**
 * What time it is at the earliest and at the latest: a clock may be wrong, and what is forgotten too early counts twice. So
 * things are remembered as of the latest, and forgotten by the earliest.
 */
export interface TimeBounds {
  readonly earliestMs: number;
  readonly latestMs: number;
}

export interface Arrival extends TimeBounds {
  /** By the clock: its records have it. */
  readonly timestampMs: number;
}
