/**
 * Time as integers: microseconds since the Unix epoch, UTC. A microsecond count exceeds 32 bits, so bit
 * operators never touch one; it stays far below 2^53, so doubles hold it exactly.
 */

export const US_PER_MS = 1_000;
export const US_PER_SECOND = 1_000_000;
export const US_PER_MINUTE = 60 * US_PER_SECOND;
export const US_PER_HOUR = 60 * US_PER_MINUTE;
export const US_PER_DAY = 24 * US_PER_HOUR;

/** The start of the unit-long slot that holds timestampUs. Also right for times before 1970. */
export function truncateUs(timestampUs: number, unitUs: number): number {
  return Math.floor(timestampUs / unitUs) * unitUs;
}

/** The index of the unit-long slot that holds timestampUs, counted from the epoch. */
export function slotIndex(timestampUs: number, unitUs: number): number {
  return Math.floor(timestampUs / unitUs);
}
