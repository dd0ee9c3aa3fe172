/**
 * A slot and its segments: restored at any point it is the same to the last bit; what is written stays in
 * proportion.
 */

import { expect, test } from 'vitest';
import { ByteWriter } from '../../engine/bytes.js';
import { STATS_ASIDE_GROWTH, STATS_IMAGE_STEP_BYTES } from '../../engine/limits.js';
import { SegmentError } from '../../engine/segments.js';
import { DIGEST_BYTES } from '../../engine/stats/digest.js';
import { CLASS_COUNTS, SAVED_FIGURE_COUNT, VALUE_COUNT } from '../../engine/stats/figures.js';
import { NO_BUCKET, type Slot } from '../../engine/stats/slot.js';
import { StoredSlot } from '../../engine/stats/stored-slot.js';
import { Random, Zipf } from '../../src/demo/random.js';
import { MemoryScratch } from '../memory-scratch.js';
import { SegmentTable } from '../segment-table.js';

const PREFIX = 'slot/';

function restore(table: SegmentTable): StoredSlot {
  const stored = new StoredSlot(PREFIX);
  for (const { name, bytes } of table.list(PREFIX)) stored.replay(name, bytes);
  stored.finishReplay();
  return stored;
}

/** All that a slot holds, bucket by bucket. */
function contents(slot: Slot): Uint8Array {
  const out = new ByteWriter();
  for (let bucket = 0; bucket < slot.bucketCount; bucket++) slot.writeImage(bucket, out);
  return out.finish();
}

/** Whether two slots are the same; comparing megabytes with toEqual takes its time. */
function isSame(a: Slot, b: Slot): boolean {
  return Buffer.compare(contents(a), contents(b)) === 0;
}

/** A table that weighs what it is given. */
class WeighingTable extends SegmentTable {
  putBytes = 0;
  largestPutBytes = 0;
  deleteCount = 0;

  override put(name: string, bytes: Uint8Array): void {
    this.putBytes += bytes.length;
    this.largestPutBytes = Math.max(this.largestPutBytes, bytes.length);
    super.put(name, bytes);
  }

  override delete(name: string): void {
    expect(this.get(name)).not.toBeNull();
    this.deleteCount += 1;
    super.delete(name);
  }
}

/** Traffic of few busy and many quiet projects, some of it without function or value. */
class Traffic {
  readonly #random: Random;
  readonly #zipf: Zipf;

  constructor(seed: number, projectCount: number) {
    this.#random = new Random(seed);
    this.#zipf = new Zipf(projectCount, 1);
  }

  /** Gives the same event to all of them. */
  applyTo(...stored: readonly StoredSlot[]): void {
    const random = this.#random;
    const project = `:project-${this.#zipf.draw(random)}`;
    const ofFunction = random.chance(0.8) ? `9${project}-function-${random.below(3)}` : null;
    const outcome = random.pick([0, 2, 2, 2, 3, 12, 13]);
    const value = random.chance(0.9) ? Math.round(100 * Math.exp(3 + random.normal())) / 100 : Number.NaN;
    for (const one of stored) one.apply(project, ofFunction, outcome, value);
  }

  chance(probability: number): boolean {
    return this.#random.chance(probability);
  }

  below(count: number): number {
    return this.#random.below(count);
  }
}

test('a slot is the same after a restart at any save, whatever is set aside when, and goes on the same', () => {
  for (let seed = 1; seed <= 25; seed++) {
    const scratch = new MemoryScratch();
    const traffic = new Traffic(seed, 1 + (seed % 5) * 40);
    const table = new SegmentTable();
    const undisturbed = new StoredSlot(PREFIX);
    let stored = new StoredSlot(PREFIX);
    for (let save = 0; save < 25; save++) {
      for (let left = traffic.below(200); left > 0; left--) {
        traffic.applyTo(undisturbed, stored);
        if (traffic.chance(0.02)) stored.slot.setAside(scratch, traffic.below(5_000));
      }
      stored.save(table);
      expect(stored.isDirty).toBe(false);
      if (traffic.chance(0.4)) stored = restore(table);
    }
    expect(restore(table).slot.byteCount).toBeGreaterThan(0);
    if (!isSame(restore(table).slot, undisturbed.slot)) expect.fail(`seed ${seed}: restored is not saved`);
    if (!isSame(stored.slot, undisturbed.slot)) expect.fail(`seed ${seed}: went on otherwise`);
    expect(scratch.appendedBytes).toBeGreaterThan(0);
  }
});

test('what is set aside leaves the memory, comes back for late entries, and its file stays in proportion', () => {
  const traffic = new Traffic(2, 300);
  const scratch = new MemoryScratch();
  const stored = new StoredSlot(PREFIX);
  const undisturbed = new StoredSlot(PREFIX);
  for (let i = 0; i < 50_000; i++) traffic.applyTo(stored, undisturbed);
  const { slot } = stored;
  const heldBytes = slot.values.heldBytes;
  expect(slot.values.digestCount).toBeGreaterThan(5);
  scratch.hasRoom = false;
  slot.setAside(scratch, Number.POSITIVE_INFINITY);
  expect([slot.values.heldBytes, slot.values.asideBytes], 'no file').toEqual([heldBytes, 0]);
  scratch.hasRoom = true;
  slot.setAside(scratch, 10_000);
  const firstBytes = slot.values.asideBytes;
  expect(firstBytes).toBeGreaterThanOrEqual(10_000);
  scratch.hasRoom = false;
  expect(slot.setAside(scratch, 10_000)).toBe(false);
  expect(slot.values.asideBytes, 'no room').toBe(firstBytes);
  scratch.hasRoom = true;
  for (let step = 0; step < 100; step++) slot.setAside(scratch, 10_000);
  expect(slot.values.heldBytes).toBeLessThan(heldBytes / 1_000);
  expect(isSame(slot, undisturbed.slot)).toBe(true);
  let movingCount = 0;
  for (let round = 0; round < 600; round++) {
    for (let i = 0; i < 100; i++) traffic.applyTo(stored, undisturbed);
    for (let step = 0; step < 3; step++) slot.setAside(scratch, 200_000);
    expect(slot.values.asideBytes).toBeLessThan((STATS_ASIDE_GROWTH + 3) * slot.values.imageByteCount);
    if (scratch.openCount === 2) movingCount += 1;
    if (round % 50 === 0) expect(isSame(slot, undisturbed.slot)).toBe(true);
  }
  expect([scratch.files.length > 3, movingCount > 3, scratch.openCount <= 2]).toEqual([true, true, true]);
  expect(isSame(slot, undisturbed.slot)).toBe(true);
  slot.clear();
  expect([scratch.openCount, slot.values.heldBytes < heldBytes / 1_000]).toEqual([0, true]);
});

test('a large slot is written again in steps; a restart amid them loses nothing', () => {
  const traffic = new Traffic(1, 800);
  const table = new WeighingTable();
  let stored = new StoredSlot(PREFIX);
  const undisturbed = new StoredSlot(PREFIX);
  let eventCost = 0;
  let turnCount = 0;
  for (let save = 0; save < 120; save++) {
    for (let i = 0; i < 3000; i++) traffic.applyTo(undisturbed, stored);
    eventCost += 17 * 3000;
    const deleteCount = table.deleteCount;
    stored.save(table);
    if (table.deleteCount > deleteCount) turnCount += 1;
    if (save % 7 === 0 && !isSame(restore(table).slot, undisturbed.slot)) expect.fail(`after save ${save}`);
    if (save % 25 === 24) stored = restore(table);
  }
  // It did take several steps, and several turns.
  expect(undisturbed.slot.imageByteCount).toBeGreaterThan(4 * STATS_IMAGE_STEP_BYTES);
  expect(turnCount).toBeGreaterThan(1);
  expect(isSame(restore(table).slot, undisturbed.slot)).toBe(true);
  // A step of images, one more than it holds, and the events.
  expect(table.largestPutBytes).toBeLessThan(STATS_IMAGE_STEP_BYTES + DIGEST_BYTES + 17 * 3000 + 4000);
  // Events once, images at most as much, and names, which are few.
  expect(table.putBytes).toBeLessThan(2.2 * eventCost);
  expect(table.byteCount).toBeLessThan(3 * undisturbed.slot.imageByteCount);
});

test('a save of more events than the slot weighs, amid a turn, loses none', () => {
  const table = new WeighingTable();
  const stored = new StoredSlot(PREFIX);
  const applyNext = (eventCount: number): void => {
    for (let i = 0; i < eventCount; i++) stored.apply(`:project-${i % 3000}`, null, 2, Number.NaN);
    stored.save(table);
  };
  // A few buckets more than a step holds, saved often: the turn begins, and is not done at once.
  while (table.largestPutBytes <= STATS_IMAGE_STEP_BYTES) applyNext(3000);
  expect(table.deleteCount).toBe(0);
  const slotBytes = stored.slot.imageByteCount;
  expect(slotBytes).toBeGreaterThan(STATS_IMAGE_STEP_BYTES);
  applyNext(slotBytes / 8);
  expect(table.deleteCount).toBeGreaterThan(0);
  expect(isSame(restore(table).slot, stored.slot)).toBe(true);
});

test('a small slot is one segment after every save', () => {
  const traffic = new Traffic(2, 1);
  const table = new SegmentTable();
  const stored = new StoredSlot(PREFIX);
  for (let save = 0; save < 5; save++) {
    traffic.applyTo(stored);
    stored.save(table);
    expect(table.names).toEqual([`slot/000000000${save}`]);
  }
  stored.save(table);
  expect(table.names).toEqual(['slot/0000000004']);
  expect(isSame(restore(table).slot, stored.slot)).toBe(true);
});

/** Several segments, the events and images of a turn under way among them. */
function severalSegments(): SegmentTable {
  const traffic = new Traffic(3, 6000);
  const table = new SegmentTable();
  const stored = new StoredSlot(PREFIX);
  for (let save = 0; save < 24; save++) {
    for (let i = 0; i < 2000; i++) traffic.applyTo(stored);
    stored.save(table);
  }
  expect(table.names.length).toBeGreaterThan(4);
  return table;
}

test('a lost segment is noticed', () => {
  const table = severalSegments();
  for (const lost of table.names.slice(0, -1)) {
    const rest = table.copy();
    rest.delete(lost);
    expect(() => restore(rest), lost).toThrow(SegmentError);
  }
});

test('a segment cut short, too long or misnamed is refused', () => {
  const table = severalSegments();
  const last = table.names.at(-1)!;
  const bytes = table.get(last)!;
  const check = (changed: Uint8Array, name = last): void => {
    const damaged = table.copy();
    damaged.delete(last);
    damaged.put(name, changed);
    expect(() => restore(damaged)).toThrow(SegmentError);
  };
  for (const length of [0, 3, 4, 11, bytes.length >> 1, bytes.length - 1]) check(bytes.slice(0, length));
  check(Buffer.concat([bytes, Buffer.from('x')]));
  check(bytes, `${PREFIX}nonsense`);
  check(bytes, `${last}0`);
  // An event in a bucket that does not exist.
  const foreign = new ByteWriter();
  for (const field of [1_000_000, 0, 1, 1_000_000, 0]) foreign.u32(field);
  foreign.u8(2);
  foreign.f64(1);
  foreign.u32(0);
  check(foreign.finish());
});

test('two buckets of one name, or a bucket without, are refused', () => {
  const check = (keys: readonly string[], bucketCount: number): void => {
    const out = new ByteWriter();
    out.u32(bucketCount);
    out.u32(keys.length);
    for (const key of keys) {
      out.u8(0);
      out.string(key);
    }
    out.u32(0);
    out.u32(0);
    const table = new SegmentTable([[`${PREFIX}0000000000`, out.finish()]]);
    if (keys.length === bucketCount && new Set(keys).size === bucketCount) {
      expect(restore(table).slot.bucketCount).toBe(bucketCount);
    } else {
      expect(() => restore(table)).toThrow(SegmentError);
    }
  };
  check([':a', ':b'], 2);
  check([':a', ':a'], 2);
  check([':a', ':b'], 3);
});

test('an image that lacks a value of the events before it is refused', () => {
  const check = (imageValueCount: number): void => {
    const out = new ByteWriter();
    for (const field of [1, 1]) out.u32(field);
    out.u8(0);
    out.string(':a');
    out.u32(1);
    for (const field of [0, NO_BUCKET]) out.u32(field);
    out.u8(2);
    out.f64(5);
    for (const field of [1, 0]) out.u32(field);
    out.u8(0);
    out.string(':a');
    const sum = CLASS_COUNTS + 5;
    const isZero = (i: number) => (i > CLASS_COUNTS && i < sum) || i === sum + 1;
    for (let i = 0; i < SAVED_FIGURE_COUNT; i++)
      out.f64(i === VALUE_COUNT ? imageValueCount : i === sum ? 2 ** -64 : isZero(i) ? 0 : 1);
    for (let i = 0; i < imageValueCount; i++) out.f64(5);
    const table = new SegmentTable([[`${PREFIX}0000000000`, out.finish()]]);
    if (imageValueCount > 0) expect(restore(table).slot.values.exactValueCount).toBe(1);
    else expect(() => restore(table)).toThrow(SegmentError);
  };
  check(1);
  check(0);
});
