/**
 * Finds which of thousands of literals occur in a URL, in one pass over its bytes. Each literal is filed
 * under one gram of its own (4 bytes, or 2 or 1 where it is shorter), the least crowded at the time; a bit
 * table of hashed grams keeps the pass at about a nanosecond a byte, and only a gram that is filed leads to a
 * comparison. Where a literal and a URL repeat themselves, so that comparisons go far and fail, one linear search takes
 * their place: O(URL) a literal, whatever they are.
 */

const GRAM_LENGTHS = [4, 2, 1] as const;
const BIT_TABLE_BITS = 16;

interface Filed<T> {
  readonly literal: Uint8Array;
  /** Where the gram stands in the literal. */
  readonly gramStart: number;
  readonly value: T;
  /** The last pass that came to it, and whether that knows: a literal counts once however often a URL holds it. */
  pass: number;
  isKnown: boolean;
  /** In that pass, where they failed. */
  comparedBytes: number;
}

export class LiteralIndex<T> {
  /** What the last match() found, in its first `hitCount` places. */
  readonly hits: T[] = [];
  hitCount = 0;
  readonly #tables = GRAM_LENGTHS.map((gramLength) => new GramTable<T>(gramLength));
  #pass = 0;

  /** Files a literal of at least one byte. The same literal is not filed twice. */
  add(literal: Uint8Array, value: T): void {
    this.#tableFor(literal).add(literal, value);
  }

  remove(literal: Uint8Array, value: T): void {
    this.#tableFor(literal).remove(literal, value);
  }

  /** Finds the values of all literals within the first `length` bytes; returns how many. */
  match(bytes: Uint8Array, length: number): number {
    this.hitCount = 0;
    this.#pass += 1;
    for (const table of this.#tables) {
      if (table.literalCount > 0)
        this.hitCount = table.match(bytes, length, this.#pass, this.hits, this.hitCount);
    }
    return this.hitCount;
  }

  #tableFor(literal: Uint8Array): GramTable<T> {
    return this.#tables[literal.length >= 4 ? 0 : literal.length >= 2 ? 1 : 2];
  }
}

/** The literals that are filed under grams of one length. */
class GramTable<T> {
  literalCount = 0;
  readonly #gramLength: number;
  readonly #gramMask: number;
  readonly #byGram = new Map<number, Filed<T>[]>();
  /** Bit h is set when a filed gram hashes to h. */
  readonly #bits = new Uint32Array(2 ** BIT_TABLE_BITS / 32);
  /** Since the bits were set last. */
  #removedCount = 0;

  constructor(gramLength: number) {
    this.#gramLength = gramLength;
    this.#gramMask = gramLength === 4 ? -1 : 2 ** (8 * gramLength) - 1;
  }

  add(literal: Uint8Array, value: T): void {
    let gramStart = 0;
    let crowd = Number.POSITIVE_INFINITY;
    for (let start = 0; start + this.#gramLength <= literal.length; start++) {
      const filed = this.#byGram.get(this.#gramAt(literal, start))?.length ?? 0;
      if (filed >= crowd) continue;
      gramStart = start;
      crowd = filed;
    }
    const gram = this.#gramAt(literal, gramStart);
    const chain = this.#byGram.get(gram) ?? [];
    chain.push({ literal, gramStart, value, pass: 0, isKnown: false, comparedBytes: 0 });
    this.#byGram.set(gram, chain);
    setBit(this.#bits, hashGram(gram));
    this.literalCount += 1;
  }

  /** Bits of grams that are gone only cost a look-up, so they stay until they are as many as the others. */
  remove(literal: Uint8Array, value: T): void {
    for (let start = 0; start + this.#gramLength <= literal.length; start++) {
      const gram = this.#gramAt(literal, start);
      const chain = this.#byGram.get(gram);
      const at = chain?.findIndex((filed) => filed.value === value) ?? -1;
      if (chain === undefined || at < 0) continue;
      chain.splice(at, 1);
      if (chain.length === 0) this.#byGram.delete(gram);
      this.literalCount -= 1;
      this.#removedCount += 1;
      break;
    }
    if (this.#removedCount <= this.#byGram.size) return;
    this.#removedCount = 0;
    this.#bits.fill(0);
    for (const gram of this.#byGram.keys()) setBit(this.#bits, hashGram(gram));
  }

  /** Appends to `hits` from `hitCount` on; returns the new count. */
  match(bytes: Uint8Array, length: number, pass: number, hits: T[], hitCount: number): number {
    const bits = this.#bits;
    const gramMask = this.#gramMask;
    const first = this.#gramLength - 1;
    let gram = 0;
    let count = hitCount;
    for (let i = 0; i < length; i++) {
      gram = ((gram << 8) | bytes[i]) & gramMask;
      const hash = hashGram(gram);
      if (((bits[hash >>> 5] >>> (hash & 31)) & 1) === 0 || i < first) continue;
      const chain = this.#byGram.get(gram);
      if (chain === undefined) continue;
      for (const filed of chain) {
        if (filed.pass !== pass) {
          filed.pass = pass;
          filed.isKnown = false;
          filed.comparedBytes = 0;
        }
        if (filed.isKnown) continue;
        const { literal } = filed;
        const equalBytes = equalBytesAt(bytes, length, i - first - filed.gramStart, literal);
        if (equalBytes < literal.length) {
          filed.comparedBytes += equalBytes;
          if (filed.comparedBytes <= length) continue;
          filed.isKnown = true;
          if (!occursIn(bytes, length, literal)) continue;
        }
        filed.isKnown = true;
        hits[count] = filed.value;
        count += 1;
      }
    }
    return count;
  }

  #gramAt(literal: Uint8Array, start: number): number {
    let gram = 0;
    for (let i = 0; i < this.#gramLength; i++) gram = ((gram << 8) | literal[start + i]) & this.#gramMask;
    return gram;
  }
}

function hashGram(gram: number): number {
  return Math.imul(gram, 0x9e3779b1) >>> (32 - BIT_TABLE_BITS);
}

function setBit(bits: Uint32Array, index: number): void {
  bits[index >>> 5] |= 1 << (index & 31);
}

/** How many of the first bytes of a literal stand at `start`; 0 where it does not fit in there. */
function equalBytesAt(bytes: Uint8Array, length: number, start: number, literal: Uint8Array): number {
  if (start < 0 || start + literal.length > length) return 0;
  let equal = 0;
  while (equal < literal.length && bytes[start + equal] === literal[equal]) equal++;
  return equal;
}

/** Of a literal that is searched for: after so many bytes fit, with how many less another place may still fit. */
let fallBack = new Uint32Array(0);

/** Whether a literal stands in the first `length` bytes, after Knuth, Morris and Pratt. O(length + literal). */
function occursIn(bytes: Uint8Array, length: number, literal: Uint8Array): boolean {
  if (fallBack.length <= literal.length) fallBack = new Uint32Array(2 * literal.length);
  fallBack[1] = 0;
  for (let end = 1, fit = 0; end < literal.length; end++) {
    while (fit > 0 && literal[end] !== literal[fit]) fit = fallBack[fit];
    if (literal[end] === literal[fit]) fit++;
    fallBack[end + 1] = fit;
  }
  for (let i = 0, fit = 0; i < length; i++) {
    while (fit > 0 && bytes[i] !== literal[fit]) fit = fallBack[fit];
    if (bytes[i] === literal[fit]) fit++;
    if (fit === literal.length) return true;
  }
  return false;
}
