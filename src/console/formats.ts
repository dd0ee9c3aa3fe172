/** How numbers, sizes and times read: the same everywhere, in UTC, as all buckets of Logring are. */

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** `12,345` */
export function countText(count: number): string {
  return whole.format(count);
}

/** `1 entry`, `2 entries`. */
export function counted(count: number, one: string, many: string): string {
  return `${countText(count)} ${count === 1 ? one : many}`;
}

/** `2026-11-21 07:00:00.123`, from microseconds since the epoch. */
export function timeText(timestampUs: number): string {
  return isoText(timestampUs).replace('T', ' ').slice(0, 23);
}

/** `2026-11-21T07:00:00.123456Z`, from microseconds since the epoch. */
export function isoText(timestampUs: number): string {
  const ms = Math.floor(timestampUs / 1000);
  const us = String(timestampUs - ms * 1000).padStart(3, '0');
  return new Date(ms).toISOString().replace('Z', `${us}Z`);
}
