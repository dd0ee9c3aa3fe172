/**
 * The buckets of one time slot: one for each project and for each function of it that had an entry then. A
 * bucket is a number; its key, figures and values lie in arrays of the slot, so that it all goes at once when
 * the slot does.
 *
 *     key ──▶ bucket ──▶ figures row ──▶ values (slot-values.ts)
 */

import type { ByteReader, ByteWriter } from '../bytes.js';
import { nameBytes, sharedName } from '../names.js';
import type { ScratchSpace } from '../scratch.js';
import { SegmentError } from '../segments.js';
import { readKey, writeKey } from './bucket-key.js';
import type { Digest } from './digest.js';
import {
  assertSound,
  clearFigures,
  countOutcome,
  countValue,
  FIGURE_COUNT,
  SAVED_FIGURE_COUNT,
  VALUE_COUNT,
  VALUES,
} from './figures.js';
import { SlotValues } from './slot-values.js';

/** Stands for the function's bucket of an entry that names no function. */
export const NO_BUCKET = 0xffff_ffff;

const INITIAL_BUCKET_COUNT = 4;
/** Of a bucket without values, beside its key: number, figures, and the key's encoding and length. */
const IMAGE_BYTES = 4 + 8 * SAVED_FIGURE_COUNT + 1 + 4;
/** Of a bucket in memory, beside its figures, values and key: its places in the map and the list of keys. */
const BUCKET_OVERHEAD_BYTES = 64;
/** Of a slot without buckets: its objects. */
const SLOT_OVERHEAD_BYTES = 1024;

const UNNAMED = '';
/** Changes to all slots of this process, numbered: no two states of slots have the same newest change. */
let changeCount = 0;

export class Slot {
  readonly #bucketByKey = new Map<string, number>();
  /** By bucket. No key is empty: UNNAMED marks a bucket that loading has met but not learnt the name of. */
  readonly #keys: string[] = [];
  #figures = new Float64Array(INITIAL_BUCKET_COUNT * FIGURE_COUNT);
  /** VALUES of a bucket is its place here. Others only read it. */
  readonly values = new SlotValues();
  #keyLength = 0;
  #keyBytes = 0;
  /**
   * A slot that lives longer and has all keys of this one, or null: its strings serve for both, and it counts
   * them.
   */
  #namesake: Slot | null = null;
  #newestChange = 0;

  /** Tells this state of the slot from all others of any slot. */
  get newestChange(): number {
    return this.#newestChange;
  }

  /** Becomes another slot, in the same memory. */
  clear(): void {
    this.#bucketByKey.clear();
    this.#keys.length = 0;
    this.values.clear();
    this.#keyLength = 0;
    this.#keyBytes = 0;
    this.#namesake = null;
    this.#newestChange = ++changeCount;
  }

  /** From now on keys are that slot's strings, as far as it has them. */
  shareKeysOf(longer: Slot | null): void {
    this.#namesake = longer;
  }

  /** To be called when nobody asks for it any more. */
  close(): void {
    this.values.close();
  }

  get bucketCount(): number {
    return this.#keys.length;
  }

  /** An estimate of the memory that the slot takes. */
  get byteCount(): number {
    return (
      SLOT_OVERHEAD_BYTES +
      this.#figures.byteLength +
      this.values.heldBytes +
      this.#keys.length * BUCKET_OVERHEAD_BYTES +
      this.#keyBytes
    );
  }

  /** What writing the images of all buckets takes, at most, as long as keys are ASCII. */
  get imageByteCount(): number {
    return this.#keys.length * IMAGE_BYTES + this.#keyLength + this.values.imageByteCount;
  }

  /** The bucket's rows in `figures` start here. */
  rowOf(bucket: number): number {
    return bucket * FIGURE_COUNT;
  }

  /** Rows of figures, to be read only. Another array after the next entry. */
  get figures(): Float64Array {
    return this.#figures;
  }

  /** The bucket of that key, or -1. */
  find(key: string): number {
    return this.#bucketByKey.get(key) ?? -1;
  }

  keyOf(bucket: number): string {
    return this.#keys[bucket];
  }

  /** The bucket of that key, which is made if it does not exist. */
  bucketOf(key: string): number {
    const known = this.#bucketByKey.get(key);
    if (known !== undefined) return known;
    const bucket = this.#keys.length;
    this.reserve(bucket + 1);
    this.name(bucket, key);
    return bucket;
  }

  /** Makes sure of that many buckets, new ones being empty and without a name. */
  reserve(bucketCount: number): void {
    if (bucketCount * FIGURE_COUNT > this.#figures.length) this.#growFigures(bucketCount);
    for (let bucket = this.#keys.length; bucket < bucketCount; bucket++) {
      clearFigures(this.#figures, bucket * FIGURE_COUNT);
      this.#keys.push(UNNAMED);
    }
  }

  /**
   * Gives a reserved bucket its key. Naming it twice, or two buckets alike, is not state that we saved.
   */
  name(bucket: number, key: string): void {
    const known = this.#bucketByKey.get(key);
    if (known === bucket) return;
    if (known !== undefined || this.#keys[bucket] !== UNNAMED) {
      throw new SegmentError('the buckets in the segments of a slot have contradictory names');
    }
    const longer = this.#namesake?.find(key) ?? -1;
    const name = longer < 0 ? this.#countedKey(key) : this.#namesake!.keyOf(longer);
    this.#keys[bucket] = name;
    this.#bucketByKey.set(name, bucket);
    this.#keyLength += key.length;
  }

  #countedKey(key: string): string {
    this.#keyBytes += nameBytes(key);
    return sharedName(key);
  }

  assertNamed(): void {
    if (this.#keys.includes(UNNAMED))
      throw new SegmentError('a bucket in the segments of a slot has no name');
  }

  /** Counts one entry, in its project's bucket and its function's or NO_BUCKET. NaN is no value. */
  count(projectBucket: number, functionBucket: number, outcome: number, value: number): void {
    this.#newestChange = ++changeCount;
    this.#countIn(projectBucket, outcome, value);
    if (functionBucket !== NO_BUCKET) this.#countIn(functionBucket, outcome, value);
  }

  #countIn(bucket: number, outcome: number, value: number): void {
    const figures = this.#figures;
    const row = bucket * FIGURE_COUNT;
    countOutcome(figures, row, outcome);
    if (Number.isNaN(value)) return;
    figures[row + VALUES] = this.values.add(figures[row + VALUES], figures[row + VALUE_COUNT], value);
    countValue(figures, row, value);
  }

  /** The bucket's digest, or null while its values are exact. */
  digestOf(bucket: number): Digest | null {
    const row = bucket * FIGURE_COUNT;
    return this.values.digestAt(this.#figures[row + VALUES], this.#figures[row + VALUE_COUNT]);
  }

  /** Copies the values of a bucket without digest to out[at…]; returns where they end. */
  copyValues(bucket: number, out: Float64Array, at: number): number {
    const row = bucket * FIGURE_COUNT;
    const valueCount = this.#figures[row + VALUE_COUNT];
    this.values.copyTo(out, at, this.#figures[row + VALUES], valueCount);
    return at + valueCount;
  }

  /** See SlotValues.setAside. Changes nothing that can be asked for. */
  setAside(scratch: ScratchSpace, stepBytes: number): boolean {
    return this.values.setAside(this.#figures, this.bucketCount, scratch, stepBytes);
  }

  /** Writes all of one bucket, number and name included. */
  writeImage(bucket: number, out: ByteWriter): void {
    out.u32(bucket);
    writeKey(out, this.#keys[bucket]);
    const row = bucket * FIGURE_COUNT;
    for (let i = 0; i < SAVED_FIGURE_COUNT; i++) out.f64(this.#figures[row + i]);
    this.values.write(out, this.#figures[row + VALUES], this.#figures[row + VALUE_COUNT]);
  }

  /** Puts a written bucket in the place of what is there of it. Throws a SegmentError. */
  readImage(segment: ByteReader): void {
    const bucket = segment.u32();
    if (bucket >= this.#keys.length) throw new SegmentError('an image in a segment belongs to no bucket');
    this.name(bucket, readKey(segment));
    this.#newestChange = ++changeCount;
    const row = bucket * FIGURE_COUNT;
    const figures = this.#figures;
    const hadCount = figures[row + VALUE_COUNT];
    for (let i = 0; i < SAVED_FIGURE_COUNT; i++) figures[row + i] = segment.f64();
    assertSound(figures, row);
    const valueCount = figures[row + VALUE_COUNT];
    if (valueCount < hadCount)
      throw new SegmentError('an image in a segment is older than the events before it');
    figures[row + VALUES] = this.values.read(segment, valueCount, figures[row + VALUES], hadCount);
  }

  #growFigures(bucketCount: number): void {
    const rowCount = Math.max(bucketCount, Math.ceil((1.5 * this.#figures.length) / FIGURE_COUNT));
    const grown = new Float64Array(rowCount * FIGURE_COUNT);
    grown.set(this.#figures);
    this.#figures = grown;
  }
}
