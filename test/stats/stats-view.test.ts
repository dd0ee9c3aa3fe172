/**
 * The statistics view against its naive twin: random histories with late and future entries, saves, crashes,
 * expiry.
 */

import { expect, test } from 'vitest';
import type { RelayEntry } from '../../engine/entry.js';
import { EXACT_VALUE_LIMIT } from '../../engine/limits.js';
import { SegmentError } from '../../engine/segments.js';
import type { InvocationStatsRow } from '../../engine/stats/bucket-merge.js';
import type { InvocationStatsParameters } from '../../engine/stats/partial.js';
import { LEVELS } from '../../engine/stats/series.js';
import { SeriesMerge } from '../../engine/stats/series-merge.js';
import { StatsView } from '../../engine/stats/stats-view.js';
import { finished } from '../../engine/steps.js';
import { slotIndex, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND } from '../../engine/time.js';
import { Random } from '../../src/demo/random.js';
import { MemoryScratch } from '../memory-scratch.js';
import { queryStats } from '../queries.js';
import { SegmentTable } from '../segment-table.js';
import { rankError } from './distributions.js';
import { type NaiveBucket, NaiveStats } from './naive-stats.js';

const NOW_US = Date.parse('2026-11-21T07:30:00Z') * 1000;
/** Some series are forgotten and asked for again. */
const MEMO_BYTES = 100_000;
const INTERVALS = ['5min', '15min', '1hr', '1day', '7day', 'whatever'];
/** Pairs of project and function that a careless separator would mix up. */
const PROJECTS = ['a', 'a:b', '1:a', ':a', 'ä\ud800'];
const FUNCTIONS = ['b', ':b', '', 'a', 'f\0'];

function entry(overrides: Partial<RelayEntry> = {}): RelayEntry {
  return {
    timestampUs: NOW_US,
    project: 'a',
    functionId: null,
    statusCode: 200,
    executionTimeMs: 1,
    ...overrides,
  };
}

/**
 * One for each list of views: a history asks through the same one again and again, over restarts of its
 * views.
 */
const queries = new WeakMap<readonly StatsView[], SeriesMerge<InvocationStatsRow>>();

function answer(
  views: readonly StatsView[],
  parameters: InvocationStatsParameters,
  nowUs: number,
): InvocationStatsRow[] {
  const stats = queries.get(views) ?? new SeriesMerge((row: InvocationStatsRow) => row, MEMO_BYTES);
  queries.set(views, stats);
  return queryStats(stats, views, parameters, nowUs);
}

function ask(
  views: StatsView | readonly StatsView[],
  parameters: Partial<InvocationStatsParameters> = {},
  nowUs = NOW_US,
): InvocationStatsRow[] {
  const whole = { project: 'a', functionId: null, interval: '5min', ...parameters };
  return answer(views instanceof StatsView ? [views] : views, whole, nowUs);
}

function viewOf(...entries: readonly RelayEntry[]): StatsView {
  const view = new StatsView();
  for (const one of entries) view.apply(one);
  return view;
}

/** How many exact values the slots of those times hold at a level, in memory or set aside, and how many digests. */
function valuesAt(view: StatsView, level: number, ...timesUs: readonly number[]) {
  const slots = timesUs.map((timeUs) => view.slotAt(level, slotIndex(timeUs, LEVELS[level].unitUs))!.values);
  return {
    exact: slots.reduce((sum, { exactValueCount }) => sum + exactValueCount, 0),
    digests: slots.reduce((sum, { digestCount }) => sum + digestCount, 0),
  };
}

function restored(table: SegmentTable): StatsView {
  const view = new StatsView();
  finished(view.load(table));
  return view;
}

/** What is wrong with a row, or null. */
function rowProblem(row: InvocationStatsRow, bucket: NaiveBucket): string | null {
  const { startUs, entries, sortedMs } = bucket;
  const count = sortedMs.length;
  const mean = sortedMs.reduce((sum, value) => sum + value, 0) / count;
  const codes = entries.map(({ statusCode }) => statusCode);
  const expected = {
    bucketStartUs: startUs,
    count: entries.length,
    errorCount: codes.filter((code) => code >= 400).length,
    classCounts: [1, 2, 3, 4, 5].map(
      (first) => codes.filter((code) => Math.floor(code / 100) === first).length,
    ),
    minMs: count === 0 ? null : sortedMs[0],
    maxMs: count === 0 ? null : sortedMs[count - 1],
  };
  const { meanMs, p95Ms, p99Ms, ...rest } = row;
  if (JSON.stringify(rest) !== JSON.stringify(expected)) {
    return `got ${JSON.stringify(rest)}, expected ${JSON.stringify(expected)}`;
  }
  if (count === 0) return meanMs === null && p95Ms === null && p99Ms === null ? null : 'times out of nothing';
  if (!(Math.abs(meanMs! - mean) <= 1e-12 * Math.abs(mean))) return `mean ${meanMs}, expected ${mean}`;
  const isExact = count <= EXACT_VALUE_LIMIT;
  const error95 = rankError(sortedMs, 95, p95Ms!);
  const error99 = rankError(sortedMs, 99, p99Ms!);
  if (error95 > (isExact ? 0 : 0.005)) return `p95 ${p95Ms} of ${count} is off by ${error95}`;
  if (error99 > (isExact ? 0 : 0.002)) return `p99 ${p99Ms} of ${count} is off by ${error99}`;
  return null;
}

/** Compares every answer of the views with the twin's. */
function compareAll(views: readonly StatsView[], twin: NaiveStats, nowUs: number, label: string): void {
  for (const interval of INTERVALS) {
    for (const project of PROJECTS) {
      for (const functionId of [null, ...FUNCTIONS]) {
        const rows = answer(views, { project, functionId, interval }, nowUs);
        const buckets = twin.query({ project, functionId, interval }, nowUs);
        const where = `${label}, ${interval} of ${JSON.stringify([project, functionId])}`;
        expect(rows.length, where).toBe(buckets.length);
        rows.forEach((row, i) => {
          const problem = rowProblem(row, buckets[i]);
          if (problem !== null) expect.fail(`${where}: ${problem}`);
        });
      }
    }
  }
}

function randomEntry(random: Random, nowUs: number): RelayEntry {
  const backUs = random.pick([
    US_PER_SECOND,
    US_PER_MINUTE,
    6 * US_PER_MINUTE,
    US_PER_HOUR,
    US_PER_DAY,
    9 * US_PER_DAY,
  ]);
  const aheadUs = random.chance(0.1) ? random.below(US_PER_HOUR) : 0;
  // Half of them within a bucket that grows large.
  const isBusy = random.chance(0.5);
  return {
    timestampUs: isBusy ? nowUs - random.below(US_PER_SECOND) : nowUs - random.below(backUs) + aheadUs,
    project: isBusy ? PROJECTS[0] : random.pick(PROJECTS),
    functionId: isBusy ? FUNCTIONS[0] : random.pick([null, ...FUNCTIONS]),
    statusCode: random.pick([0, 99, 101, 200, 200, 204, 302, 399, 400, 404, 500, 599, 600]),
    executionTimeMs: random.pick([
      Number.NaN,
      -0,
      0,
      random.below(20),
      random.float() * 1000,
      Math.exp(3 * random.normal()),
    ]),
  };
}

/**
 * One history over two shards. `kept` never restarts; `views` are what the store gives back after stops (a
 * save, then a start) and crashes (a start from the last save, then the entries since once more), and set
 * values aside now and then. Returns how many bytes.
 */
function history(seed: number): number {
  const random = new Random(seed);
  const tables = [new SegmentTable(), new SegmentTable()];
  const kept = [new StatsView(), new StatsView()];
  const scratch = new MemoryScratch();
  const made = (): StatsView =>
    new StatsView(scratch, { asideFromBytes: 100, asideStepBytes: 1_000, loadBytes: 20_000 });
  const fromStore = (shard: number): StatsView => {
    const view = made();
    finished(view.load(tables[shard]));
    return view;
  };
  const views = [made(), made()];
  const twin = new NaiveStats();
  /** By shard, what a crash would have to repeat: entries, and moments of expiry. */
  const sinceSave: (RelayEntry | number)[][] = [[], []];
  let nowUs = NOW_US + random.below(US_PER_DAY);
  const save = (shard: number): void => {
    views[shard].save(tables[shard]);
    sinceSave[shard] = [];
  };
  for (let step = 0; step < 60; step++) {
    const shard = random.below(2);
    for (let left = random.below(80); left > 0; left--) {
      const one = randomEntry(random, nowUs);
      twin.apply(one);
      kept[shard].apply(one);
      views[shard].apply(one);
      sinceSave[shard].push(one);
    }
    switch (random.below(6)) {
      case 0:
      case 1:
        save(shard);
        break;
      case 2:
        save(shard);
        views[shard] = fromStore(shard);
        break;
      case 3:
        views[shard] = fromStore(shard);
        for (const one of sinceSave[shard]) {
          if (typeof one === 'number') views[shard].expire(one);
          else views[shard].apply(one);
        }
        break;
      case 4:
        nowUs += random.pick([-US_PER_MINUTE, US_PER_SECOND, 5 * US_PER_MINUTE, US_PER_HOUR, US_PER_DAY]);
        break;
      default:
        twin.expire(nowUs);
        for (const i of [0, 1]) {
          kept[i].expire(nowUs);
          views[i].expire(nowUs);
          sinceSave[i].push(nowUs);
        }
    }
    for (let left = random.below(4); left > 0; left--) {
      if (random.chance(0.5)) views[shard].spill();
      else views[shard].spill({ isNearPause: true });
    }
    if (step % 20 === 19) compareAll(views, twin, nowUs, `seed ${seed}, step ${step}`);
  }
  for (const interval of INTERVALS) {
    for (const project of PROJECTS) {
      const parameters = { project, functionId: null, interval };
      const rows = answer(views, parameters, nowUs);
      expect(rows, `seed ${seed}: evolved otherwise`).toEqual(answer(kept, parameters, nowUs));
    }
  }
  return scratch.appendedBytes;
}

test('random histories answer as the naive twin does', () => {
  let asideBytes = 0;
  for (let seed = 1; seed <= 16; seed++) asideBytes += history(seed);
  expect(asideBytes).toBeGreaterThan(100_000);
});

test('an entry counts for its project and its function, in every interval', () => {
  const view = viewOf(
    entry({ functionId: 'f', statusCode: 500, executionTimeMs: 4 }),
    entry({ functionId: 'g' }),
    entry(),
  );
  for (const interval of INTERVALS) {
    expect(ask(view, { interval }).map(({ count }) => count)).toEqual([3]);
    expect(
      ask(view, { interval, functionId: 'f' }).map((row) => [row.count, row.errorCount, row.p95Ms]),
    ).toEqual([[1, 1, 4]]);
    expect(ask(view, { interval, functionId: 'x' })).toEqual([]);
    expect(ask(view, { interval, project: 'b' })).toEqual([]);
  }
});

test('a bucket without numeric times has counts and no times', () => {
  const view = viewOf(entry({ executionTimeMs: Number.NaN, statusCode: 503 }));
  expect(ask(view)).toEqual([
    {
      bucketStartUs: NOW_US,
      count: 1,
      errorCount: 1,
      classCounts: [0, 0, 0, 0, 1],
      minMs: null,
      maxMs: null,
      meanMs: null,
      p95Ms: null,
      p99Ms: null,
    },
  ]);
});

test('percentiles are elements of the data by nearest rank, up to the limit', () => {
  const check = (count: number, p95Ms: number, p99Ms: number): void => {
    // 1 … count, each once, in an order that is neither.
    const values = Array.from({ length: count }, (_, i) => 1 + ((i * 7) % count));
    const entries = values.map((executionTimeMs) => entry({ executionTimeMs }));
    const views = [new StatsView(), new StatsView(), new StatsView()];
    entries.forEach((one, i) => {
      views[i % 3].apply(one);
    });
    for (const shards of [[viewOf(...entries)], views]) {
      expect(ask(shards).map((row) => [row.p95Ms, row.p99Ms])).toEqual([[p95Ms, p99Ms]]);
    }
  };
  check(1, 1, 1);
  check(2, 2, 2);
  check(20, 19, 20);
  check(100, 95, 99);
  check(101, 96, 100);
  check(200, 190, 198);
  check(512, 487, 507);
});

test('a negative zero is a zero, so that the order of equal values cannot be seen', () => {
  const zeros = [entry({ executionTimeMs: -0 }), entry({ executionTimeMs: 0 })];
  for (const entries of [zeros, zeros.toReversed(), [zeros[0]]]) {
    const [row] = ask(viewOf(...entries));
    const times = [row.minMs, row.maxMs, row.meanMs, row.p95Ms, row.p99Ms];
    expect(times.map((time) => Object.is(time, 0))).toEqual([true, true, true, true, true]);
  }
});

test('entries at the edges of slot and series, to the microsecond', () => {
  const firstUs = NOW_US - 5 * US_PER_MINUTE;
  const check = (timestampUs: number, startUs: number | null): void => {
    const rows = ask(viewOf(entry({ timestampUs })), {}, NOW_US + 1);
    expect(rows.map((row) => row.bucketStartUs)).toEqual(startUs === null ? [] : [startUs]);
  };
  check(firstUs - 1, null);
  check(firstUs, firstUs);
  check(firstUs + US_PER_SECOND - 1, firstUs);
  check(firstUs + US_PER_SECOND, firstUs + US_PER_SECOND);
  // Future within the bucket of now: counted. Past it: only once now is there.
  check(NOW_US + US_PER_SECOND - 1, NOW_US);
  check(NOW_US + US_PER_SECOND, null);
  const future = viewOf(entry({ timestampUs: NOW_US + US_PER_SECOND }));
  expect(ask(future, {}, NOW_US + US_PER_SECOND).length).toBe(1);
});

test('expiry forgets what no series reaches, each level by its own window, in the store too', () => {
  const table = new SegmentTable();
  const view = viewOf(entry());
  view.save(table);
  const check = (nowUs: number, expected: string): void => {
    view.expire(nowUs);
    view.save(table);
    expect(table.names.map((name) => name.split('/')[1]).join(' ')).toBe(expected);
  };
  check(NOW_US, 'day hour minute second');
  check(NOW_US + 5 * US_PER_MINUTE + US_PER_SECOND - 1, 'day hour minute second');
  check(NOW_US + 5 * US_PER_MINUTE + US_PER_SECOND, 'day hour minute');
  check(NOW_US + US_PER_HOUR + US_PER_MINUTE - 1, 'day hour minute');
  check(NOW_US + US_PER_HOUR + US_PER_MINUTE, 'day hour');
  check(NOW_US + US_PER_DAY + US_PER_HOUR / 2, 'day');
  check(NOW_US + 8 * US_PER_DAY, '');
  expect(view.figures().map(({ values: [slotCount] }) => slotCount)).toEqual([0, 0, 0, 0]);
});

test('values of slots that are over are set aside; newer ones, and those not saved, stay', () => {
  const table = new SegmentTable();
  const scratch = new MemoryScratch();
  const view = new StatsView(scratch, { asideFromBytes: 100 });
  const minutes = [3, 2, 1, 0].map((ago) => NOW_US - ago * US_PER_MINUTE);
  for (const timestampUs of minutes)
    for (let i = 0; i < 100; i++) view.apply(entry({ timestampUs, executionTimeMs: i }));
  const spilled = (): number[] => {
    for (let i = 0; i < 20; i++) expect(view.spill()).toBe(false);
    return [scratch.files.length, view.heldBytes];
  };
  const [, heldBytes] = spilled();
  view.expire(NOW_US);
  expect(spilled(), 'nothing is saved').toEqual([0, heldBytes]);
  view.save(table);
  const [fileCount, lessBytes] = spilled();
  // Three seconds and two minutes; of the day and the hour there is one only.
  expect(fileCount).toBe(5);
  expect(lessBytes).toBeLessThan(heldBytes);
  const answers = INTERVALS.map((interval) => ask(view, { interval }));
  expect(answers).toEqual(INTERVALS.map((interval) => ask(restored(table), { interval })));
  view.expire(NOW_US + US_PER_HOUR + US_PER_MINUTE);
  expect(scratch.openCount).toBe(0);
});

test('near a pause slots that are not over are set aside too, saved or not, and count on as before', () => {
  const scratch = new MemoryScratch();
  const view = new StatsView(scratch, { asideFromBytes: 100 });
  const twin = new StatsView();
  const both = (from: number, to: number): void => {
    for (let i = from; i < to; i++)
      for (const either of [view, twin]) either.apply(entry({ executionTimeMs: i, functionId: `f${i % 7}` }));
  };
  const same = (): void => {
    for (const interval of INTERVALS) expect(ask(view, { interval })).toEqual(ask(twin, { interval }));
  };
  both(0, 2_000);
  view.expire(NOW_US);
  const heldBytes = view.heldBytes;
  for (let i = 0; i < 20; i++) view.spill();
  expect(view.heldBytes, 'nothing is over').toBe(heldBytes);
  for (let i = 0; i < 20; i++) view.spill({ isNearPause: true });
  // Without values there are keys and figures, and the events that wait for the next save.
  expect(LEVELS.reduce((sum, _, level) => sum + valuesAt(view, level, NOW_US).exact, 0)).toBeGreaterThan(0);
  expect(view.heldBytes).toBeLessThan(heldBytes - 4 * 8 * 2_000);
  same();
  both(2_000, 2_500);
  same();
  const tables = [new SegmentTable(), new SegmentTable()];
  view.save(tables[0]);
  twin.save(tables[1]);
  for (const interval of INTERVALS)
    expect(ask(restored(tables[0]), { interval })).toEqual(ask(restored(tables[1]), { interval }));
});

test('a start holds no more than it may: values that were read go aside before the next slot is read', () => {
  const table = new SegmentTable();
  const view = new StatsView();
  const hours = 20;
  for (let ago = 0; ago < hours; ago++)
    for (let i = 0; i < 2_000; i++) {
      const timestampUs = NOW_US - ago * US_PER_HOUR;
      view.apply(entry({ timestampUs, executionTimeMs: i, functionId: `f${i % 10}` }));
    }
  view.expire(NOW_US);
  view.save(table);
  const allBytes = view.heldBytes;
  const loadBytes = allBytes / 4;
  const scratch = new MemoryScratch();
  const loaded = new StatsView(scratch, { asideFromBytes: 100, loadBytes });
  let mostBytes = 0;
  const loading = loaded.load({
    get: (name) => table.get(name),
    block: (file, index) => table.block(file, index),
    blockCount: (file) => table.blockCount(file),
    *list(prefix) {
      for (const segment of table.list(prefix)) {
        mostBytes = Math.max(mostBytes, loaded.heldBytes);
        yield segment;
      }
    },
  });
  finished(loading);
  // The slot that is read comes on top: the largest is a day, or two of them, at one level of four.
  expect(mostBytes).toBeLessThan(loadBytes + allBytes / 4);
  expect(scratch.openCount).toBeGreaterThan(0);
  for (const interval of INTERVALS) expect(ask(loaded, { interval })).toEqual(ask(view, { interval }));
});

test('what cannot be read back fails the question, and spoils no other', () => {
  const table = new SegmentTable();
  const scratch = new MemoryScratch();
  const view = new StatsView(scratch, { asideFromBytes: 100 });
  const timestampUs = NOW_US - 10 * US_PER_MINUTE;
  for (let i = 0; i < 100; i++) view.apply(entry({ timestampUs, executionTimeMs: i }));
  view.apply(entry({ timestampUs, project: 'b', executionTimeMs: 5 }));
  view.save(table);
  view.expire(NOW_US);
  for (let i = 0; i < 10; i++) view.spill();
  scratch.isReadable = false;
  for (const project of ['a', 'b'])
    expect(() => ask(view, { project, interval: '1hr' })).toThrow(SegmentError);
  scratch.isReadable = true;
  const found = ['b', 'nobody', 'a'].map((project) => ask(view, { project, interval: '1hr' })[0]?.count);
  expect(found).toEqual([1, undefined, 100]);
});

test('what only the clock takes for past is kept, but when memory is short what came meanwhile goes', () => {
  const table = new SegmentTable();
  const aheadUs = NOW_US + US_PER_HOUR / 2;
  // Before the trusted time, and while the clock is half an hour ahead of it: a minute ago by the clock, and
  // longer ago.
  const view = viewOf(
    entry(),
    entry({ timestampUs: aheadUs - 20 * US_PER_MINUTE }),
    entry({ timestampUs: aheadUs - US_PER_MINUTE }),
  );
  view.save(table);
  const seconds = (): number | null => view.figures()[0].values[0];
  view.expire(aheadUs, NOW_US);
  expect(seconds()).toBe(3);
  const before = INTERVALS.map((interval) => ask(view, { interval }));
  expect(ask(view, { interval: '5min' }, aheadUs).length).toBe(1);
  view.spill();
  expect(seconds()).toBe(3);
  view.spill({ isNearPause: true });
  view.save(table);
  expect(seconds()).toBe(2);
  for (const one of [view, restored(table)])
    expect(INTERVALS.map((interval) => ask(one, { interval }))).toEqual(before);
});

test('a slot that expired and came back starts empty', () => {
  const table = new SegmentTable();
  const view = viewOf(entry({ executionTimeMs: 1 }));
  view.save(table);
  view.expire(NOW_US + US_PER_HOUR);
  view.apply(entry({ executionTimeMs: 2 }));
  view.save(table);
  for (const one of [view, restored(table)]) {
    expect(ask(one).map((row) => [row.count, row.maxMs])).toEqual([[1, 2]]);
    expect(ask(one, { interval: '1hr' }).map((row) => [row.count, row.minMs])).toEqual([[2, 1]]);
  }
});

test('a save without changes writes nothing, and touches only what changed', () => {
  const table = new SegmentTable();
  const view = viewOf(entry(), entry({ timestampUs: NOW_US + US_PER_SECOND }));
  view.save(table);
  // Two seconds of one minute, hour and day.
  expect(table.names.length).toBe(5);
  const before = table.names;
  view.save(table);
  expect(table.names).toEqual(before);
  view.apply(entry());
  view.save(table);
  expect(table.names.filter((name) => before.includes(name)).length).toBe(1);
});

test('times before 1970 and half surrogate pairs are saved and found again', () => {
  const table = new SegmentTable();
  const twins = [
    entry({ project: '\ud800', timestampUs: -1 }),
    entry({ project: '\udc00', timestampUs: -1 }),
  ];
  const view = viewOf(...twins, entry({ project: '\ufffd', timestampUs: -1 }));
  view.save(table);
  for (const interval of ['5min', '7day']) {
    const rows = ask(restored(table), { project: '\udc00', interval }, -1);
    expect(rows.map((row) => [row.bucketStartUs, row.count])).toEqual([
      [interval === '5min' ? -US_PER_SECOND : -US_PER_DAY, 1],
    ]);
  }
});

test('a foreign segment among them is refused', () => {
  const check = (name: string): void => {
    const table = new SegmentTable();
    viewOf(entry()).save(table);
    const bytes = table.get(table.names[0])!;
    table.put(name, bytes);
    expect(() => restored(table)).toThrow(SegmentError);
  };
  check('stats/week/000000000000/0000000000');
  check('stats/hour/00000000000x/0000000000');
  check('stats/hour/000000000060/0000000000');
  check('stats/hour/3600/0000000000');
  check('stats/hour/000000003600/0');
});

test('the figures for the operator count what is held', () => {
  const entries = Array.from({ length: 600 }, (_, i) =>
    entry({ functionId: 'f', executionTimeMs: i, timestampUs: NOW_US + (i < 300 ? 0 : US_PER_SECOND) }),
  );
  const view = viewOf(...entries, entry({ project: 'b' }));
  const figures = view.figures();
  expect(figures.map(({ label, values }) => [label, ...values.slice(0, 2)])).toEqual([
    ['second', 2, 5],
    ['minute', 1, 3],
    ['hour', 1, 3],
    ['day', 1, 3],
  ]);
  expect(valuesAt(view, 0, NOW_US, NOW_US + US_PER_SECOND)).toEqual({ exact: 1201, digests: 0 });
  for (const level of [1, 2, 3]) expect(valuesAt(view, level, NOW_US)).toEqual({ exact: 1, digests: 2 });
  for (const { values } of figures) {
    expect(values[2]).toBeGreaterThan(10_000);
    expect(values[2]).toBeLessThan(50_000);
  }
});
