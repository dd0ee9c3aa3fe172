/**
 * The rows view against a naive twin: order, window edges, retention of both tiers, late rows, restarts,
 * expiry.
 */

import { expect, test } from 'vitest';
import { ByteReader } from '../../engine/bytes.js';
import type { EdgeEntry } from '../../engine/entry.js';
import { BLOCK_TARGET_BYTES, LOG_ROW_LIMIT, SPILLED_BUSY_RUN_BYTES } from '../../engine/limits.js';
import { BlockIndex } from '../../engine/rows/block.js';
import { USUAL_SIZES } from '../../engine/rows/compaction.js';
import { indexName } from '../../engine/rows/fresh-run.js';
import { collectLogs, type LogsParameters, mergeLogs } from '../../engine/rows/partial.js';
import { RowsView } from '../../engine/rows/rows-view.js';
import { SegmentError } from '../../engine/segments.js';
import { finished } from '../../engine/steps.js';
import { RETENTION_US, TIER_CLASSES } from '../../engine/tier.js';
import { US_PER_DAY, US_PER_HOUR, US_PER_SECOND } from '../../engine/time.js';
import { Random } from '../../src/demo/random.js';
import { queryLogs } from '../queries.js';
import { SegmentTable, TableCompaction } from '../segment-table.js';

/** So small that compactions spill, and blocks are many. */
const COMPACTION_SIZES = { chunkBytes: 20_000, blockBytes: 300 };
const NOW_US = Date.parse('2026-11-21T07:30:00Z') * 1000;

function entry(overrides: Partial<EdgeEntry> & { text?: string }): EdgeEntry {
  const { text = 'row', ...fields } = overrides;
  return {
    timestampUs: NOW_US,
    project: 'p',
    tierClass: '90d',
    idHash: 0,
    row: Buffer.from(text),
    url: null,
    areas: 0,
    outcome: 0,
    ...fields,
  };
}

function ask(views: RowsView[], parameters: Partial<LogsParameters> = {}, nowUs = NOW_US): string[] {
  const whole = { project: 'p', retentionUs: RETENTION_US['90d'], startUs: null, endUs: null, ...parameters };
  return queryLogs(views, whole, nowUs).map((row) => Buffer.from(row).toString());
}

function viewOf(...entries: EdgeEntry[]): RowsView {
  const view = new RowsView(new SegmentTable());
  for (const one of entries) view.apply(one);
  return view;
}

/** The twin: every entry in an array. */
function naiveLogs(entries: readonly EdgeEntry[], parameters: LogsParameters, nowUs: number): string[] {
  return entries
    .filter(
      (one) =>
        one.project === parameters.project &&
        one.timestampUs >= nowUs - parameters.retentionUs &&
        one.timestampUs >= nowUs - RETENTION_US[one.tierClass] &&
        (parameters.startUs === null || one.timestampUs >= parameters.startUs) &&
        (parameters.endUs === null || one.timestampUs <= parameters.endUs),
    )
    .sort(
      (a, b) =>
        b.timestampUs - a.timestampUs ||
        a.idHash - b.idHash ||
        Buffer.compare(Buffer.from(a.row), Buffer.from(b.row)),
    )
    .slice(0, LOG_ROW_LIMIT)
    .map((one) => Buffer.from(one.row).toString());
}

test('rows come newest first; equal times by id hash, then by bytes, however they arrived', () => {
  const entries = [
    entry({ text: 'b', idHash: 5 }),
    entry({ text: 'late', timestampUs: NOW_US - 1 }),
    entry({ text: 'a', idHash: 5 }),
    entry({ text: 'c', idHash: 4_000_000_000 }),
    entry({ text: 'first', idHash: 1 }),
  ];
  const expected = ['first', 'a', 'b', 'c', 'late'];
  expect(ask([viewOf(...entries)])).toEqual(expected);
  expect(ask([viewOf(...entries.toReversed())])).toEqual(expected);
  expect(ask([viewOf(...entries.slice(0, 2)), viewOf(...entries.slice(2))])).toEqual(expected);
});

test('both bounds are inclusive inside, and retention reaches exactly to now minus its length', () => {
  const at = (offsetUs: number) => entry({ text: String(offsetUs), timestampUs: NOW_US + offsetUs });
  const view = viewOf(...[-2, -1, 0, 1, 2].map(at));
  expect(ask([view], { startUs: NOW_US - 1, endUs: NOW_US + 1 })).toEqual(['1', '0', '-1']);
  expect(ask([view], { startUs: NOW_US + 1, endUs: NOW_US })).toEqual([]);
  const old = viewOf(
    ...[-1, 0, 1].map((us) => entry({ text: String(us), timestampUs: NOW_US - US_PER_DAY + us })),
  );
  expect(ask([old], { retentionUs: US_PER_DAY })).toEqual(['1', '0']);
});

test('a row of a ring that keeps a day is not shown to a caller who may look back further', () => {
  const old = { timestampUs: NOW_US - US_PER_DAY - 1 };
  const view = viewOf(entry({ text: 'short', tierClass: '1d', ...old }), entry({ text: 'long', ...old }));
  expect(ask([view])).toEqual(['long']);
});

test('at most a hundred rows, the newest ones, over partitions and shards', () => {
  const entries = Array.from({ length: 250 }, (_, i) =>
    entry({ text: String(i), timestampUs: NOW_US - i * 60 * US_PER_SECOND }),
  );
  const views = [
    viewOf(...entries.filter((_, i) => i % 3 > 0)),
    viewOf(...entries.filter((_, i) => i % 3 === 0)),
  ];
  expect(ask(views)).toEqual(Array.from({ length: 100 }, (_, i) => String(i)));
});

test('a partition expires when its end is no younger than the retention', () => {
  const hour = Math.floor(NOW_US / US_PER_HOUR) * US_PER_HOUR;
  const view = viewOf(entry({ tierClass: '1d', timestampUs: hour }));
  const gone = hour + US_PER_HOUR + US_PER_DAY;
  view.expire(gone - 1);
  expect(view.figures()[0].values[0]).toBe(1);
  view.expire(gone);
  expect(view.figures()[0].values[0]).toBe(0);
});

test('rows that only the clock takes for expired are in no answer, and stay; runs are sealed by the clock', () => {
  const view = new RowsView(new SegmentTable());
  for (let i = 0; i < 1_000; i++) view.apply(entry({ project: `p${i}`, tierClass: '1d', text: 'kept' }));
  const aheadUs = NOW_US + 100 * US_PER_DAY;
  expect(view.expire(aheadUs, NOW_US)).toBe(true);
  expect(ask([view], { project: 'p7' }, aheadUs)).toEqual([]);
  expect(ask([view], { project: 'p7' })).toEqual(['kept']);
});

test('a run that was opened by a clock months ahead is sealed by the right one', () => {
  const view = new RowsView(new SegmentTable());
  view.expire(NOW_US + 100 * US_PER_DAY, NOW_US);
  view.apply(entry({ timestampUs: NOW_US }));
  const laterUs = NOW_US + 3 * US_PER_HOUR;
  expect([view.expire(laterUs), view.expire(laterUs + US_PER_HOUR)]).toEqual([false, true]);
});

test('a project whose name begins with a byte order mark stays another one through restarts and compactions', () => {
  const table = new SegmentTable();
  let view = new RowsView(table);
  view.apply(entry({ project: '\ufeffshop', text: 'theirs' }));
  view.apply(entry({ project: 'shop', text: 'ours' }));
  const check = () => {
    expect(ask([view], { project: 'shop' })).toEqual(['ours']);
    expect(ask([view], { project: '\ufeffshop' })).toEqual(['theirs']);
  };
  view.save(table);
  view = new RowsView(table);
  finished(view.load(table));
  check();
  const laterUs = NOW_US + 3 * US_PER_HOUR;
  view.expire(laterUs);
  view.save(table);
  const compaction = TableCompaction.begin(view, table, laterUs, USUAL_SIZES);
  expect(compaction?.advance(Infinity)).toBe(true);
  view.save(table);
  check();
  view = new RowsView(table);
  finished(view.load(table));
  check();
});

test('when memory is short, hours that are over leave it early; rows that come late are still taken', () => {
  const table = new SegmentTable();
  const view = new RowsView(table);
  const lastHourUs = NOW_US - US_PER_HOUR;
  // What a row takes goes, what a project takes stays.
  for (let i = 0; i < 1_000; i++) {
    view.apply(entry({ project: `p${i % 50}`, timestampUs: lastHourUs, text: 'old' }));
    view.apply(entry({ project: `p${i % 50}`, timestampUs: NOW_US, text: 'new' }));
  }
  view.expire(NOW_US);
  view.save(table);
  expect(TableCompaction.begin(view, table, NOW_US, USUAL_SIZES)).toBeNull();
  const heldBytes = view.heldBytes;
  expect([view.spill(), view.spill()]).toEqual([true, false]);
  view.save(table);
  expect(TableCompaction.begin(view, table, NOW_US, USUAL_SIZES)?.advance(Infinity)).toBe(true);
  view.save(table);
  expect(view.heldBytes).toBeLessThan(0.7 * heldBytes);
  view.apply(entry({ project: 'p7', timestampUs: lastHourUs, text: 'late', idHash: 1 }));
  expect(ask([view], { project: 'p7' }).slice(19, 22)).toEqual(['new', 'old', 'old']);
  expect(ask([view], { project: 'p7' }).at(-1)).toBe('late');
});

test('a large hour long past is sealed a minute after the last row of a backfill, a small one waits for more', () => {
  const view = new RowsView(new SegmentTable());
  const pastUs = NOW_US - 10 * US_PER_HOUR;
  const after = (seconds: number): boolean => {
    const isClosed = view.expire(NOW_US + seconds * US_PER_SECOND);
    view.save(new SegmentTable());
    return isClosed;
  };
  view.expire(NOW_US);
  for (let i = 0; i < 1_000; i++) view.apply(entry({ project: `p${i}`, timestampUs: pastUs }));
  view.apply(entry({ timestampUs: pastUs + US_PER_HOUR }));
  expect([after(0), after(59)]).toEqual([false, false]);
  view.apply(entry({ project: 'p7', timestampUs: pastUs }));
  expect([after(60), after(119), after(120), after(121)]).toEqual([false, false, true, false]);
  expect(after(3_600)).toBe(true);
});

test('a missing block is an error and not an answer', () => {
  const table = new SegmentTable();
  const view = new RowsView(table);
  for (let i = 0; i < 3; i++) {
    view.apply(entry({ text: 'x'.repeat(BLOCK_TARGET_BYTES), timestampUs: NOW_US + i }));
    view.save(table);
  }
  const index = table.names.find((name) => name.startsWith('rows/index/') && name.endsWith('/00000001'))!;
  const withoutIndex = table.copy();
  withoutIndex.delete(index);
  expect(() => finished(new RowsView(withoutIndex).load(withoutIndex))).toThrow(SegmentError);
  const withoutFile = table.copy();
  withoutFile.remove(table.files[0]);
  expect(() => finished(new RowsView(withoutFile).load(withoutFile))).toThrow(SegmentError);
  const whole = table.copy();
  const restored = new RowsView(whole);
  finished(restored.load(whole));
  whole.remove(table.files[0]);
  expect(() => ask([restored])).toThrow(SegmentError);
});

test('of an hour that is saved ever again few segments of indexes stay, and a load takes them up', () => {
  const table = new SegmentTable();
  const random = new Random(3);
  let view = new RowsView(table);
  const newest: string[] = [];
  for (let save = 0, blockCount = 0; save < 300; save++) {
    for (let more = random.chance(0.95) ? 1 : random.between(2, 40); more > 0; more--) {
      view.apply(
        entry({ text: `${blockCount}`.padEnd(BLOCK_TARGET_BYTES), timestampUs: NOW_US + blockCount }),
      );
      newest.unshift(`${blockCount}`);
      blockCount++;
    }
    view.save(table);
    const segmentCount = table.names.filter((name) => name.startsWith('rows/index/')).length;
    expect(segmentCount).toBeLessThanOrEqual(Math.floor(blockCount / 16) + 15);
    if (random.chance(0.9)) continue;
    view = new RowsView(table);
    finished(view.load(table));
    const answer = ask([view], {}, NOW_US + blockCount).map((text) => text.trim());
    expect(answer).toEqual(newest.slice(0, LOG_ROW_LIMIT));
  }
});

test('a store of before, with an index for each block, is loaded; its last indexes become one with the next', () => {
  const table = new SegmentTable();
  const texts: string[] = [];
  const saveBlocks = (view: RowsView, count: number) => {
    for (let i = 0; i < count; i++) {
      const text = `${texts.length}`.padEnd(BLOCK_TARGET_BYTES);
      view.apply(entry({ text, timestampUs: NOW_US + texts.length }));
      view.save(table);
      texts.unshift(text);
    }
  };
  const indexNames = () => table.names.filter((name) => name.startsWith('rows/index/'));
  saveBlocks(new RowsView(table), 40);
  const [file] = table.files;
  for (const name of indexNames()) {
    const bytes = table.get(name)!;
    const reader = new ByteReader(bytes);
    for (let block = Number(name.slice(-8)); reader.remaining > 0; block++) {
      const start = bytes.length - reader.remaining;
      new BlockIndex(reader);
      table.put(indexName(file, block), bytes.slice(start, bytes.length - reader.remaining));
    }
  }
  expect(indexNames().length).toBe(40);
  const view = new RowsView(table);
  finished(view.load(table));
  expect(ask([view], {}, NOW_US + 40)).toEqual(texts);
  saveBlocks(view, 16);
  expect(indexNames().length).toBe(40 + 16 - 15);
  const again = new RowsView(table);
  finished(again.load(table));
  expect(ask([again], {}, NOW_US + 60)).toEqual(texts);
});

/** Counts the blocks that are read. */
class CountingTable extends SegmentTable {
  blocksRead = 0;

  override block(file: string, index: number): Uint8Array {
    this.blocksRead += 1;
    return super.block(file, index);
  }
}

class FailingTable extends SegmentTable {
  isFailing = false;
  readCount = 0;

  override block(file: string, index: number): Uint8Array {
    this.readCount += 1;
    if (this.isFailing) throw new SegmentError('the disk fails');
    return super.block(file, index);
  }
}

test('an entry that comes again is taken, also where the first one can no longer be read', () => {
  const table = new FailingTable();
  const view = new RowsView(table);
  const once = entry({ text: 'once'.padEnd(BLOCK_TARGET_BYTES) });
  view.apply(once);
  view.apply(entry({ text: 'behind', timestampUs: NOW_US - 1 }));
  view.save(table);
  table.isFailing = true;
  view.apply(once);
  expect(() => ask([view])).toThrow(/the disk fails/);
  table.isFailing = false;
  expect(ask([view]).map((text) => text.trim())).toEqual(['once', 'once', 'behind']);
});

test('a run that cannot be read is tried again once a minute, however often rows are asked for', () => {
  const table = new FailingTable();
  const written = new RowsView(table);
  written.apply(entry({ text: 'kept', timestampUs: NOW_US - US_PER_DAY }));
  written.save(table);
  written.expire(NOW_US + US_PER_DAY);
  written.save(table);
  TableCompaction.begin(written, table, NOW_US + US_PER_DAY, USUAL_SIZES)!.advance(Infinity);
  written.save(table);
  table.isFailing = true;
  const view = new RowsView(table);
  finished(view.load(table));
  const refused = (nowUs: number) => expect(() => ask([view], {}, nowUs)).toThrow(/the disk fails/);
  refused(NOW_US);
  const { readCount } = table;
  for (const seconds of [0, 1, 59]) refused(NOW_US + seconds * US_PER_SECOND);
  expect(table.readCount).toBe(readCount);
  refused(NOW_US + 60 * US_PER_SECOND);
  expect(table.readCount).toBeGreaterThan(readCount);
  table.isFailing = false;
  // A clock that is set back does not put it off.
  expect(ask([view], {}, NOW_US - US_PER_HOUR)).toEqual(['kept']);
});

test('the newest rows anywhere in 90 days cost a handful of blocks, for any project and any window', () => {
  const table = new CountingTable();
  const view = new RowsView(table);
  const days = 60;
  const startUs = Math.floor(NOW_US / US_PER_DAY - days) * US_PER_DAY;
  const row = 'x'.repeat(1_000);
  for (let hour = 0; hour < days * 24; hour++) {
    const at = (i: number) => ({ timestampUs: startUs + hour * US_PER_HOUR + i * US_PER_SECOND, text: row });
    for (let i = 0; i < 30; i++)
      view.apply(entry({ project: i % 3 === 0 ? `other-${i}` : 'busy', ...at(i) }));
    view.apply(entry({ project: 'hourly', ...at(31) }));
    if (hour === 700) view.apply(entry({ project: 'once', ...at(32) }));
    view.expire(startUs + (hour + 1) * US_PER_HOUR);
    view.save(table);
    while (
      TableCompaction.begin(view, table, startUs + (hour + 1) * US_PER_HOUR, USUAL_SIZES)?.advance(Infinity)
    ) {
      view.save(table);
    }
  }
  const check = (project: string, startDay: number | null, endDay: number | null, blockCount: number) => {
    table.blocksRead = 0;
    const dayUs = (day: number | null) => (day === null ? null : startUs + day * US_PER_DAY - 1);
    const retentionUs = RETENTION_US['90d'];
    const parameters = { project, retentionUs, startUs: dayUs(startDay), endUs: dayUs(endDay) };
    const count = mergeLogs([collectLogs(view, parameters, NOW_US)]).rows.length;
    expect(table.blocksRead, `${project} ${startDay} ${endDay}`).toBeLessThanOrEqual(blockCount);
    return count;
  };
  for (const startDay of [null, 2, 29]) {
    expect(check('busy', startDay, 31, 10)).toBe(100);
    expect(check('hourly', startDay, 31, 15)).toBe(startDay === 29 ? 48 : 100);
    expect(check('once', startDay, 31, 1)).toBe(1);
    expect(check('absent', startDay, 31, 0)).toBe(0);
  }
  expect(check('once', 30, 58, 0)).toBe(0);
  expect(check('once', null, 20, 0)).toBe(0);
  expect(check('once', 29, 30, 1)).toBe(1);
  // One run a day; the last hours and the open ones apart.
  expect(view.figures()[2].values[3]).toBeLessThan(days + 30);
});

function randomEntry(random: Random, nowUs: number): EdgeEntry {
  const spreadUs = random.pick([1, 10 * US_PER_SECOND, 3 * US_PER_HOUR, 8 * US_PER_DAY]);
  const timestampUs =
    nowUs - random.between(0, spreadUs) + random.pick([0, 0, random.between(0, US_PER_HOUR)]);
  return entry({
    timestampUs,
    project: random.pick(['p', 'p', 'q', 'r']),
    tierClass: random.pick([...TIER_CLASSES]),
    idHash: random.between(0, 3),
    text: `${random.between(0, 9)}`.repeat(random.pick([1, 3, 3000])),
  });
}

test.each(Array.from({ length: 40 }, (_, seed) => seed))('view and twin agree: seed %i', (seed) => {
  const random = new Random(seed);
  const tables = [new SegmentTable(), new SegmentTable()];
  let views = tables.map((table) => new RowsView(table));
  const save = () => {
    for (const [i, view] of views.entries()) view.save(tables[i]);
  };
  let entries: EdgeEntry[] = [];
  let nowUs = NOW_US;
  let compactions: (TableCompaction | null)[] = [null, null];
  for (let step = 0; step < 400; step++) {
    const one = randomEntry(random, nowUs);
    views[random.between(0, 1)].apply(one);
    entries.push(one);
    if (random.between(0, 20) === 0) save();
    if (random.between(0, 30) === 0) for (const view of views) view.closeLarge(1, SPILLED_BUSY_RUN_BYTES);
    if (random.between(0, 10) === 0) {
      const stepCount = random.pick([1, 5, 10_000]);
      compactions = compactions.map((running, i) => {
        const compaction = running ?? TableCompaction.begin(views[i], tables[i], nowUs, COMPACTION_SIZES);
        return compaction?.advance(stepCount) === false ? compaction : null;
      });
    }
    if (random.between(0, 40) === 0) {
      save();
      compactions = [null, null];
      for (const table of tables) table.forgetAside();
      views = tables.map((of) => {
        const view = new RowsView(of);
        finished(view.load(of));
        return view;
      });
    }
    if (random.between(0, 30) === 0) {
      nowUs += random.between(0, 12 * US_PER_HOUR);
      for (const view of views) view.expire(nowUs);
      entries = entries.filter(({ timestampUs, tierClass }) => {
        const end = (Math.floor(timestampUs / US_PER_HOUR) + 1) * US_PER_HOUR;
        return end > nowUs - RETENTION_US[tierClass];
      });
    }
    if (random.between(0, 5) === 0) {
      const bound = () => random.pick([null, random.pick(entries)?.timestampUs ?? null, nowUs]);
      const parameters = {
        project: random.pick(['p', 'q', 'absent']),
        retentionUs: RETENTION_US[random.pick([...TIER_CLASSES])],
        startUs: bound(),
        endUs: bound(),
      };
      expect(ask(views, parameters, nowUs)).toEqual(naiveLogs(entries, parameters, nowUs));
    }
  }
});
