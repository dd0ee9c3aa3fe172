/** Lists of projects: what they keep over restarts, and when there is none. */

import { expect, test } from 'vitest';
import { HashSet } from '../engine/hash-set.js';
import { LISTED_PROJECTS } from '../engine/limits.js';
import { ProjectList, projectHash } from '../engine/project-list.js';
import { Random } from '../src/demo/random.js';
import { SegmentTable } from './segment-table.js';

function listOf(count: number): ProjectList {
  const list = new ProjectList();
  for (let i = 0; i < count; i++) list.add(`project-${i}`);
  return list;
}

function loaded(table: SegmentTable, nextOffset: number): ProjectList {
  const list = new ProjectList();
  list.load(table, nextOffset);
  return list;
}

test('a set of hashes has what was added, each once', () => {
  const random = new Random(1);
  const set = new HashSet();
  const model = new Set<number>();
  for (let i = 0; i < 20_000; i++) {
    const hash = 1 + random.below(30_000) * 131_072;
    expect(set.add(hash)).toBe(!model.has(hash));
    model.add(hash);
  }
  expect(set.count).toBe(model.size);
  for (let i = 0; i < 30_000; i++) {
    const hash = 1 + i * 131_072;
    expect(set.has(hash)).toBe(model.has(hash));
  }
});

test('saved again and again, it is loaded as it is', () => {
  const table = new SegmentTable();
  const list = new ProjectList();
  for (let i = 0; i < 5_000; i++) {
    list.add(`project-${i % 3_500}`);
    if (i % 700 !== 0) continue;
    list.save(table, i);
    const again = loaded(table, i);
    expect(again.mark).toEqual(list.mark);
    expect(again.from(0, Infinity)).toEqual(list.from(0, Infinity));
  }
  expect(list.mark!.count).toBe(3_500);
  expect([...list.from(0, 2)]).toEqual([projectHash('project-0'), projectHash('project-1')]);
  const other = listOf(3_499);
  other.add('another');
  expect(other.mark!.count).toBe(3_500);
  expect(other.mark).not.toEqual(list.mark);
});

test('where some of it is lost, or it is of another offset, there is none, and what is left of it is removed', () => {
  const table = new SegmentTable();
  listOf(3_000).save(table, 7);
  expect(loaded(table, 7).mark!.count).toBe(3_000);
  for (const name of table.names) {
    const lost = table.copy();
    lost.delete(name);
    expect(loaded(lost, 7).mark, name).toBeNull();
  }
  const list = loaded(table, 8);
  expect(list.mark).toBeNull();
  list.add('one more');
  list.save(table, 9);
  expect(table.names).toEqual([]);
  expect(loaded(new SegmentTable(), 5).mark).toBeNull();
});

test('of too many projects there is none, then or later', () => {
  const table = new SegmentTable();
  const list = listOf(LISTED_PROJECTS);
  list.save(table, 1);
  expect(list.mark!.count).toBe(LISTED_PROJECTS);
  const heldBytes = list.heldBytes;
  expect(heldBytes).toBeLessThanOrEqual(12 * LISTED_PROJECTS);
  list.add('one too many');
  expect(list.mark).toBeNull();
  expect(list.heldBytes).toBeLessThan(1_000);
  list.save(table, 2);
  expect(loaded(table, 2).mark).toBeNull();
});
