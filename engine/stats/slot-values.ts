/**
 * The values of a slot's buckets. What a bucket has is found by a place, a number that it keeps beside the count of its
 * values:
 *
 *     place ──▶ up to EXACT_VALUE_LIMIT values: runs in the value arena (0 or above: their head)
 *           ├─▶ more: a digest (0 or above: its index)
 *           └─▶ set aside: either of them in a scratch file (below 0), until a value is added
 */

import { assert } from '../assert.js';
import { ByteReader, ByteWriter } from '../bytes.js';
import { EXACT_VALUE_LIMIT, STATS_ASIDE_GROWTH } from '../limits.js';
import type { ScratchFile, ScratchSpace } from '../scratch.js';
import { SegmentError } from '../segments.js';
import { DIGEST_BYTES, Digest } from './digest.js';
import { FIGURE_COUNT, VALUE_COUNT, VALUES } from './figures.js';
import { ValueArena } from './value-arena.js';

const exactValues = new Float64Array(EXACT_VALUE_LIMIT);
/** What is set aside, until it is in the scratch file. */
const asideWriter = new ByteWriter();

export class SlotValues {
  #arena = new ValueArena();
  /** null: set aside. */
  readonly #digests: (Digest | null)[] = [];
  #heldDigestCount = 0;
  #digestCount = 0;
  #exactValueCount = 0;
  #scratch: ScratchFile | null = null;
  /** The bucket with which setting aside goes on. */
  #asideCursor = 0;

  /** Values that are kept as they are, in memory or set aside. */
  get exactValueCount(): number {
    return this.#exactValueCount;
  }

  get digestCount(): number {
    return this.#digestCount;
  }

  /** Of memory: what can be set aside. */
  get heldBytes(): number {
    return this.#arena.byteCount + this.#heldDigestCount * DIGEST_BYTES;
  }

  /** What writing all of them takes, at most. */
  get imageByteCount(): number {
    return 8 * this.#exactValueCount + this.#digestCount * DIGEST_BYTES;
  }

  /** Of the scratch file, with what has been brought back from it since. */
  get asideBytes(): number {
    return this.#scratch?.byteCount ?? 0;
  }

  /** Forgets all values, and keeps the room in memory. */
  clear(): void {
    this.#arena.clear();
    this.#digests.length = 0;
    this.#heldDigestCount = 0;
    this.#digestCount = 0;
    this.#exactValueCount = 0;
    this.#asideCursor = 0;
    this.close();
  }

  /** Gives back the scratch file. */
  close(): void {
    this.#scratch?.close();
    this.#scratch = null;
  }

  /** Adds a value to the `count` at a place; returns their place from now on. */
  add(place: number, count: number, value: number): number {
    let held = place < 0 ? this.#bringBack(place, count) : place;
    if (count < EXACT_VALUE_LIMIT) {
      this.#exactValueCount += 1;
      return this.#arena.push(held, count, value);
    }
    if (count === EXACT_VALUE_LIMIT) held = this.#turnToDigest(held);
    this.#digests[held]!.add(value);
    return held;
  }

  /** The digest of the `count` values at a place, or null while they are exact. */
  digestAt(place: number, count: number): Digest | null {
    if (count <= EXACT_VALUE_LIMIT) return null;
    return place < 0 ? Digest.read(this.#readAside(place)) : this.#digests[place];
  }

  /** Copies exact values to out[at…]. */
  copyTo(out: Float64Array, at: number, place: number, count: number): void {
    assert(count <= EXACT_VALUE_LIMIT, 'the values of a digest are not kept');
    if (place >= 0) {
      this.#arena.copyTo(out, at, place, count);
      return;
    }
    const image = this.#readAside(place);
    for (let i = 0; i < count; i++) out[at + i] = image.f64();
  }

  write(out: ByteWriter, place: number, count: number): void {
    const digest = this.digestAt(place, count);
    if (digest !== null) {
      digest.write(out);
      return;
    }
    this.copyTo(exactValues, 0, place, count);
    for (let i = 0; i < count; i++) out.f64(exactValues[i]);
  }

  /** Takes what was written of `count` values for the `hadCount` at a place; returns their place. */
  read(segment: ByteReader, count: number, place: number, hadCount: number): number {
    assert(place >= 0, 'nothing is loaded into what was set aside');
    if (hadCount <= EXACT_VALUE_LIMIT) this.#release(place, hadCount);
    if (count <= EXACT_VALUE_LIMIT) {
      this.#exactValueCount += count;
      return this.#hold(segment, count);
    }
    const digest = Digest.read(segment);
    if (digest.count !== count) throw new SegmentError('a digest does not hold the values that it counts');
    if (hadCount <= EXACT_VALUE_LIMIT) {
      this.#digestCount += 1;
      return this.#holdDigest(digest);
    }
    this.#digests[place] = digest;
    return place;
  }

  /**
   * Sets aside values of buckets, of which `figures` has the rows, `stepBytes` or a little more at a time; without room
   * it does nothing. Once all have been, their memory goes.
   */
  setAside(figures: Float64Array, bucketCount: number, scratch: ScratchSpace, stepBytes: number): void {
    if (this.asideBytes > STATS_ASIDE_GROWTH * this.imageByteCount) this.#bringAllBack(figures, bucketCount);
    this.#scratch ??= scratch.open();
    if (this.#scratch === null) return;
    const out = asideWriter;
    out.clear();
    const rows: number[] = [];
    const ends: number[] = [];
    let bucket = this.#asideCursor;
    for (; bucket < bucketCount && out.length < stepBytes; bucket++) {
      const row = bucket * FIGURE_COUNT;
      const count = figures[row + VALUE_COUNT];
      if (count === 0 || figures[row + VALUES] < 0) continue;
      this.write(out, figures[row + VALUES], count);
      rows.push(row);
      ends.push(out.length);
    }
    const written = out.written();
    const positions = this.#scratch.append(ends.map((end, i) => written.subarray(ends[i - 1] ?? 0, end)));
    if (positions === null) return;
    for (let i = 0; i < rows.length; i++) {
      this.#letGo(figures[rows[i] + VALUES], figures[rows[i] + VALUE_COUNT]);
      figures[rows[i] + VALUES] = -1 - positions[i];
    }
    this.#asideCursor = bucket < bucketCount ? bucket : 0;
    if (this.#arena.valueCount === 0) this.#arena = new ValueArena();
    if (this.#heldDigestCount === 0) this.#digests.length = 0;
  }

  #readAside(place: number): ByteReader {
    return new ByteReader(this.#scratch!.read(-1 - place));
  }

  #bringBack(place: number, count: number): number {
    const image = this.#readAside(place);
    return count > EXACT_VALUE_LIMIT ? this.#holdDigest(Digest.read(image)) : this.#hold(image, count);
  }

  #bringAllBack(figures: Float64Array, bucketCount: number): void {
    for (let bucket = 0; bucket < bucketCount; bucket++) {
      const row = bucket * FIGURE_COUNT;
      const place = figures[row + VALUES];
      if (place < 0) figures[row + VALUES] = this.#bringBack(place, figures[row + VALUE_COUNT]);
    }
    this.close();
  }

  #letGo(place: number, count: number): void {
    if (count > EXACT_VALUE_LIMIT) {
      this.#digests[place] = null;
      this.#heldDigestCount -= 1;
    } else this.#arena.release(place, count);
  }

  #turnToDigest(place: number): number {
    this.#arena.copyTo(exactValues, 0, place, EXACT_VALUE_LIMIT);
    this.#release(place, EXACT_VALUE_LIMIT);
    const digest = new Digest();
    for (let i = 0; i < EXACT_VALUE_LIMIT; i++) digest.add(exactValues[i]);
    this.#digestCount += 1;
    return this.#holdDigest(digest);
  }

  #release(place: number, count: number): void {
    this.#arena.release(place, count);
    this.#exactValueCount -= count;
  }

  #hold(image: ByteReader, count: number): number {
    let head = 0;
    for (let i = 0; i < count; i++) head = this.#arena.push(head, i, image.f64());
    return head;
  }

  #holdDigest(digest: Digest): number {
    this.#heldDigestCount += 1;
    return this.#digests.push(digest) - 1;
  }
}
