/** Which marks are kept of the records of a partition: the newest, and older ones ever further apart. */

import { expect, test } from 'vitest';
import { KEPT_MARKS, MARK_SPREAD } from '../../ingest/limits.js';
import { Marks, markOf } from '../../ingest/record-marks.js';
import { Random } from '../../src/demo/random.js';
import { SegmentTable } from '../segment-table.js';

const markAt = (offset: number) => ({ offset, timestampMs: offset, checksum: offset });
const offsetsOf = (marks: Marks) => marks.oldestFirst.map(({ offset }) => offset);

test('wherever a log was cut, a mark lies not much further back than what is lost', () => {
  const random = new Random(1);
  const marks = new Marks();
  const widestStep = 100;
  let newest = 0;
  for (let round = 0; round < 20_000; round++) {
    newest += 1 + random.below(widestStep);
    marks.note(markAt(newest));
    if (round % 500 !== 0) continue;
    const offsets = offsetsOf(marks);
    expect(offsets.length).toBeLessThanOrEqual(KEPT_MARKS);
    expect(offsets.at(-1)).toBe(newest);
    for (let lost = widestStep; lost < newest - offsets[0]; lost *= 2) {
      const kept = offsets.findLast((offset) => offset <= newest - lost)!;
      expect(newest - kept).toBeLessThanOrEqual(MARK_SPREAD * (lost + widestStep));
    }
  }
});

test('marks reach back a hundred million records', () => {
  const marks = new Marks();
  for (let offset = 0; offset <= 400_000_000; offset += 4_000) marks.note(markAt(offset));
  expect(400_000_000 - offsetsOf(marks)[0]).toBeGreaterThan(100_000_000);
});

test('what lies behind an offset that reading went back to is forgotten', () => {
  const marks = new Marks();
  for (const offset of [1, 5, 9]) marks.note(markAt(offset));
  marks.moveTo(5);
  expect(offsetsOf(marks)).toEqual([1]);
});

test('a save is loaded as it was, and made again only when something has changed', () => {
  const table = new SegmentTable();
  const marks = new Marks();
  marks.save(table);
  expect(offsetsOf(Marks.load(table))).toEqual([]);
  for (const offset of [1, 5, 900_000_000_000]) marks.note(markAt(offset));
  marks.save(table);
  expect(Marks.load(table).oldestFirst).toEqual(marks.oldestFirst);
});

test('a record that could not be unpacked has no mark; one without a value has', () => {
  const record = { offset: 1, timestampMs: 2, value: null, projectTier: null };
  expect(markOf({ ...record, unreadable: 'too-large' })).toBe(null);
  expect(markOf(record)).toEqual({ offset: 1, timestampMs: 2, checksum: 0 });
});
