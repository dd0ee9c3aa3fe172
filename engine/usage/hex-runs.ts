/**
 * Text as a page of URLs holds it: ids are hexadecimal digits as a rule, and two of them go into a byte. Only text of
 * ASCII is packed so; a byte beyond it stands for itself behind an escape.
 *
 *   byte below 0x80    itself
 *   0x80 .. 0xbf       4, 6 .. 130 digits 0-9a-f follow, two a byte
 *   0xff               the next byte is itself
 */

export const HEX_RUN = 0x80;
export const ESCAPE = 0xff;
const LEAST_PAIRS = 2;
const MOST_PAIRS = LEAST_PAIRS + 0x3f;

/** The byte of each of the sixteen digits. */
export const DIGIT_BYTES = new TextEncoder().encode('0123456789abcdef');

/** The value of a digit's byte; 255 for every other byte. */
const DIGIT_VALUES = new Uint8Array(256).fill(255);
for (const [value, byte] of DIGIT_BYTES.entries()) DIGIT_VALUES[byte] = value;

/** Packs bytes [start, end) to `target` from `at` on, which has room for twice as many; returns where it ended. */
export function packText(
  bytes: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  at: number,
): number {
  let to = at;
  for (let i = start; i < end; ) {
    const pairs = pairsAt(bytes, i, end);
    if (pairs >= LEAST_PAIRS) {
      target[to++] = HEX_RUN + pairs - LEAST_PAIRS;
      for (let pair = 0; pair < pairs; pair++, i += 2) {
        target[to++] = (DIGIT_VALUES[bytes[i]] << 4) | DIGIT_VALUES[bytes[i + 1]];
      }
    } else {
      if (bytes[i] >= 0x80) target[to++] = ESCAPE;
      target[to++] = bytes[i++];
    }
  }
  return to;
}

/** The bytes of digits that follow a run's first byte. */
export function pairsOfRun(first: number): number {
  return first - HEX_RUN + LEAST_PAIRS;
}

/** How many bytes of text packed bytes [start, end) unpack to, written to `target` from `at` on; returns where it ended. */
export function unpackText(
  packed: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  at: number,
): number {
  let to = at;
  for (let i = start; i < end; ) {
    const first = packed[i++];
    if (first < HEX_RUN) target[to++] = first;
    else if (first === ESCAPE) target[to++] = packed[i++];
    else {
      for (let left = pairsOfRun(first); left > 0; left--, i++) {
        target[to++] = DIGIT_BYTES[packed[i] >>> 4];
        target[to++] = DIGIT_BYTES[packed[i] & 15];
      }
    }
  }
  return to;
}

function pairsAt(bytes: Uint8Array, start: number, end: number): number {
  const last = Math.min(end, start + 2 * MOST_PAIRS);
  let i = start;
  while (i < last && DIGIT_VALUES[bytes[i]] !== 255) i += 1;
  return (i - start) >>> 1;
}
