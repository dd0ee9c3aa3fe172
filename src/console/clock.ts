/**
 * The browser's clock, read here only: for ranges such as "the last hour", and for how long ago something
 * was.
 */

export function browserNowMs(): number {
  return Date.now();
}
