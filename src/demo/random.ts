/**
 * A seeded random source (xoshiro128**) of the demo, benches and tests: one seed, one stream, on every machine.
 */

import { firstIndex } from '../../engine/binary-search.js';

const HEX_PAIRS = Array.from({ length: 65_536 }, (_, value) => value.toString(16).padStart(4, '0'));

export class Random {
  #a: number;
  #b: number;
  #c: number;
  #d: number;
  #spareNormal = Number.NaN;

  /** Any number is a seed; its integer part modulo 2^53 counts. The four words come from splitmix32. */
  constructor(seed: number) {
    let state = (seed ^ Math.floor(seed / 2 ** 32)) | 0;
    const word = (): number => {
      state = (state + 0x9e3779b9) | 0;
      let mixed = Math.imul(state ^ (state >>> 16), 0x85ebca6b);
      mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
      return mixed ^ (mixed >>> 16);
    };
    this.#a = word();
    this.#b = word();
    this.#c = word();
    this.#d = word() | 1;
  }

  /** Uniform in 0 … 2^32 − 1. */
  u32(): number {
    const product = Math.imul(this.#b, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9);
    const shifted = this.#b << 9;
    this.#c ^= this.#a;
    this.#d ^= this.#b;
    this.#b ^= this.#c;
    this.#a ^= this.#d;
    this.#c ^= shifted;
    this.#d = (this.#d << 11) | (this.#d >>> 21);
    return result >>> 0;
  }

  /** Uniform in [0, 1), with 53 random bits. */
  float(): number {
    return ((this.u32() >>> 5) * 67_108_864 + (this.u32() >>> 6)) / 9_007_199_254_740_992;
  }

  /** An integer in 0 … count − 1, for counts up to 2^53. */
  below(count: number): number {
    if (count <= 65_536) return Math.floor((this.u32() / 4_294_967_296) * count);
    return Math.floor(this.float() * count);
  }

  /** An integer in first … last, both included. */
  between(first: number, last: number): number {
    return first + this.below(last - first + 1);
  }

  chance(probability: number): boolean {
    return this.u32() < probability * 4_294_967_296;
  }

  pick<T>(list: readonly T[]): T {
    return list[this.below(list.length)];
  }

  /** Standard normal, by Marsaglia's polar method. */
  normal(): number {
    if (!Number.isNaN(this.#spareNormal)) {
      const spare = this.#spareNormal;
      this.#spareNormal = Number.NaN;
      return spare;
    }
    for (;;) {
      const x = 2 * this.float() - 1;
      const y = 2 * this.float() - 1;
      const radius = x * x + y * y;
      if (radius >= 1 || radius === 0) continue;
      const scale = Math.sqrt((-2 * Math.log(radius)) / radius);
      this.#spareNormal = y * scale;
      return x * scale;
    }
  }

  hex8(): string {
    const value = this.u32();
    return HEX_PAIRS[value >>> 16] + HEX_PAIRS[value & 0xffff];
  }

  /** `digitCount` hexadecimal digits; a multiple of 8. */
  hex(digitCount: number): string {
    let text = '';
    for (let done = 0; done < digitCount; done += 8) text += this.hex8();
    return text;
  }

  /** A version 4 UUID. */
  uuid(): string {
    const second = this.u32();
    const third = this.u32();
    const low = HEX_PAIRS[0x4000 | (second & 0x0fff)];
    const variant = HEX_PAIRS[0x8000 | (third >>> 18)];
    return `${this.hex8()}-${HEX_PAIRS[second >>> 16]}-${low}-${variant}-${HEX_PAIRS[third & 0xffff]}${this.hex8()}`;
  }

  /** A word of `length` lower-case letters. */
  letters(length: number): string {
    let text = '';
    for (let index = 0; index < length; index += 1) text += String.fromCharCode(97 + this.below(26));
    return text;
  }
}

/**
 * Draws ranks 0 … count − 1 with probability proportional to 1 / (rank + 1)^exponent: few busy, many quiet.
 */
export class Zipf {
  readonly #cumulative: Float64Array;

  constructor(count: number, exponent: number) {
    this.#cumulative = new Float64Array(count);
    let sum = 0;
    for (let rank = 0; rank < count; rank += 1) {
      sum += 1 / (rank + 1) ** exponent;
      this.#cumulative[rank] = sum;
    }
  }

  draw(random: Random): number {
    const cumulative = this.#cumulative;
    const target = random.float() * cumulative[cumulative.length - 1];
    return firstIndex(0, cumulative.length - 1, (rank) => cumulative[rank] > target);
  }
}
