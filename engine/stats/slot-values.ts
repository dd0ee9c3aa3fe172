/**
 * The values of a slot's buckets. What a bucket has is found by a place, a number that it keeps beside the
 * count of its values:
 *
 *     place ──▶ up to EXACT_VALUE_LIMIT values: runs in the value arena (0 or above: their head)
 *           ├─▶ more: a digest (0 or above: its index)
 *           └─▶ set aside: either of them in a scratch file (below 0), until a value is added
 *
 * What is brought back stays in the file. Once that is most of it, what counts moves to another file, a step
 * at a time.
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
  /** Places in that list which are null. */
  readonly #freeDigests: number[] = [];
  #digestCount = 0;
  #exactValueCount = 0;
  /** Two at most, while what counts moves from one to the other. */
  readonly #files: [AsideFile | null, AsideFile | null] = [null, null];
  /** What is set aside goes there. */
  #current: 0 | 1 = 0;
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
    return this.#arena.byteCount + (this.#digests.length - this.#freeDigests.length) * DIGEST_BYTES;
  }

  /** What writing all of them takes, at most. */
  get imageByteCount(): number {
    return 8 * this.#exactValueCount + this.#digestCount * DIGEST_BYTES;
  }

  /** Of scratch files, with what has been brought back from them since. */
  get asideBytes(): number {
    return this.#files.reduce((sum, aside) => sum + (aside?.file.byteCount ?? 0), 0);
  }

  /** Forgets all values, and keeps the room in memory. */
  clear(): void {
    this.#arena.clear();
    this.#digests.length = 0;
    this.#freeDigests.length = 0;
    this.#digestCount = 0;
    this.#exactValueCount = 0;
    this.#asideCursor = 0;
    this.close();
  }

  /** Gives back the scratch files. */
  close(): void {
    for (const which of [0, 1] as const) this.#closeFile(which);
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
    return place < 0 ? Digest.read(new ByteReader(this.#pieceAt(place))) : this.#digests[place];
  }

  /** Copies exact values to out[at…]. */
  copyTo(out: Float64Array, at: number, place: number, count: number): void {
    assert(count <= EXACT_VALUE_LIMIT, 'the values of a digest are not kept');
    if (place >= 0) {
      this.#arena.copyTo(out, at, place, count);
      return;
    }
    const image = new ByteReader(this.#pieceAt(place));
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
   * Sets aside values of buckets, of which `figures` has the rows, `stepBytes` or a little more at a time.
   * Once all have been, their memory goes. Answers whether it got on; without room it does nothing.
   */
  setAside(figures: Float64Array, bucketCount: number, scratch: ScratchSpace, stepBytes: number): boolean {
    if (this.asideBytes > STATS_ASIDE_GROWTH * this.imageByteCount) this.#beginMoving();
    this.#files[this.#current] ??= openAside(scratch);
    const aside = this.#files[this.#current];
    if (aside === null) return false;
    const out = asideWriter;
    out.clear();
    const rows: number[] = [];
    const ends: number[] = [];
    let bucket = this.#asideCursor;
    for (; bucket < bucketCount && out.length < stepBytes; bucket++) {
      const row = bucket * FIGURE_COUNT;
      const place = figures[row + VALUES];
      const count = figures[row + VALUE_COUNT];
      if (count === 0 || (place < 0 && fileOf(place) === this.#current)) continue;
      if (place < 0) out.bytes(this.#pieceAt(place));
      else this.write(out, place, count);
      rows.push(row);
      ends.push(out.length);
    }
    const written = out.written();
    const positions = aside.file.append(ends.map((end, i) => written.subarray(ends[i - 1] ?? 0, end)));
    if (positions === null) return false;
    for (let i = 0; i < rows.length; i++) {
      this.#letGo(figures[rows[i] + VALUES], figures[rows[i] + VALUE_COUNT]);
      figures[rows[i] + VALUES] = placeIn(this.#current, positions[i]);
      aside.pieceCount += 1;
    }
    this.#asideCursor = bucket < bucketCount ? bucket : 0;
    if (this.#arena.valueCount === 0) this.#arena = new ValueArena();
    return rows.length > 0;
  }

  /** Does nothing while what counts is still moving. */
  #beginMoving(): void {
    const other = this.#current === 0 ? 1 : 0;
    if (this.#files[other] !== null) return;
    if (this.#files[this.#current]?.pieceCount === 0) this.#closeFile(this.#current);
    this.#current = other;
    this.#asideCursor = 0;
  }

  #pieceAt(place: number): Uint8Array {
    return this.#files[fileOf(place)]!.file.read(positionOf(place));
  }

  #bringBack(place: number, count: number): number {
    const image = new ByteReader(this.#pieceAt(place));
    const held = count > EXACT_VALUE_LIMIT ? this.#holdDigest(Digest.read(image)) : this.#hold(image, count);
    this.#forgetPiece(place);
    return held;
  }

  #forgetPiece(place: number): void {
    const which = fileOf(place);
    const aside = this.#files[which]!;
    aside.pieceCount -= 1;
    if (aside.pieceCount === 0 && which !== this.#current) this.#closeFile(which);
  }

  #closeFile(which: 0 | 1): void {
    this.#files[which]?.file.close();
    this.#files[which] = null;
  }

  /** What was at a place is elsewhere now. */
  #letGo(place: number, count: number): void {
    if (place < 0) this.#forgetPiece(place);
    else if (count > EXACT_VALUE_LIMIT) {
      this.#digests[place] = null;
      this.#freeDigests.push(place);
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
    for (let i = 0; i < count; i++) {
      const value = image.f64();
      if (!Number.isFinite(value)) throw new SegmentError('a value of a bucket is not a number');
      head = this.#arena.push(head, i, value);
    }
    return head;
  }

  #holdDigest(digest: Digest): number {
    const free = this.#freeDigests.pop();
    if (free === undefined) return this.#digests.push(digest) - 1;
    this.#digests[free] = digest;
    return free;
  }
}

interface AsideFile {
  readonly file: ScratchFile;
  /** Places that lead to it. */
  pieceCount: number;
}

function openAside(scratch: ScratchSpace): AsideFile | null {
  const file = scratch.open();
  return file === null ? null : { file, pieceCount: 0 };
}

function placeIn(which: 0 | 1, position: number): number {
  return -1 - (2 * position + which);
}

function fileOf(place: number): 0 | 1 {
  return ((-1 - place) % 2) as 0 | 1;
}

function positionOf(place: number): number {
  return Math.floor((-1 - place) / 2);
}
