/** The clock that times are shown by, and that fields for times mean: UTC, or the browser's. */

let isLocal = false;

export function showTimesBy(clock: 'UTC' | 'local'): void {
  isLocal = clock === 'local';
}

export function showsLocalTime(): boolean {
  return isLocal;
}

export function zoneName(): string {
  return isLocal ? 'local time' : 'UTC';
}

/** A date whose UTC fields are what that clock shows. */
export function shownDate(ms: number): Date {
  return new Date(isLocal ? ms - 60_000 * new Date(ms).getTimezoneOffset() : ms);
}

/** What a field for date and time takes, for a moment in UTC such as `2026-11-21T07:00:00`; nothing for none. */
export function fieldText(utc: string): string {
  // By the local clock, the last hours that a date can have are beyond what it can have.
  const shownMs = shownDate(Date.parse(`${utc}Z`)).getTime();
  return Number.isNaN(shownMs) ? '' : utcText(shownMs);
}

/** The moment in UTC that a field holds. */
export function utcOfField(text: string): string {
  const ms = Date.parse(isLocal ? text : `${text}Z`);
  return Number.isNaN(ms) ? '' : utcText(ms);
}

/** `2026-11-21T07:00:00` */
export function utcText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19);
}
