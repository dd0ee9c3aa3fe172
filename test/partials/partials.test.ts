/**
 * Partial answers as other processes get them: written and read, of any number of shards, in any order, they
 * merge to what one shard with all entries answers. Bytes that are something else are an error.
 */

import { expect, test } from 'vitest';
import { ByteReader, type ByteWriter } from '../../engine/bytes.js';
import type { EdgeEntry, RelayEntry } from '../../engine/entry.js';
import { EventCountsView } from '../../engine/event-counts/event-counts-view.js';
import {
  collectEventCounts,
  eventQuestionOf,
  mergeEventCounts,
  readEventCounts,
  writeEventCounts,
} from '../../engine/event-counts/partial.js';
import { EVENT_INTERVALS } from '../../engine/event-counts/windows.js';
import { EXACT_VALUE_LIMIT } from '../../engine/limits.js';
import { type Detail, PartialError } from '../../engine/partial-format.js';
import { LASTING_ROW_BYTES } from '../../engine/rows/block.js';
import { LikelyRows, lackingRows, likelyRowCount } from '../../engine/rows/lacking-rows.js';
import { collectLogs, mergeLogs, RowDidNotCome, readLogs, writeLogs } from '../../engine/rows/partial.js';
import { RowsView } from '../../engine/rows/rows-view.js';
import { ValuesDidNotCome } from '../../engine/stats/bucket-merge.js';
import {
  collectStats,
  combineStats,
  lackingValues,
  questionOf,
  readStats,
  type StatsPartial,
  writeStats,
} from '../../engine/stats/partial.js';
import { SeriesMerge } from '../../engine/stats/series-merge.js';
import { StatsView } from '../../engine/stats/stats-view.js';
import { RETENTION_US } from '../../engine/tier.js';
import { US_PER_DAY, US_PER_HOUR, US_PER_SECOND } from '../../engine/time.js';
import { type ApiCountsAsk, USAGE_INTERVALS } from '../../engine/usage/api-counts.js';
import { ExpressionEvaluation } from '../../engine/usage/expressions/expression-evaluation.js';
import { mergeCounts, readCounts, writeCounts } from '../../engine/usage/partial.js';
import { UsageView } from '../../engine/usage/usage-view.js';
import { Random } from '../../src/demo/random.js';
import { reachOf, writtenStats } from '../queries.js';
import { SegmentTable } from '../segment-table.js';
import { rankError } from '../stats/distributions.js';
import { finishEvaluation } from '../usage/naive-usage.js';
import { writtenBy } from '../written.js';

const NOW_US = Date.parse('2026-11-21T07:30:15Z') * 1000;
const SHARD_COUNTS = [1, 2, 5, 16];
const ENTRY_COUNT = 3000;
const EXPRESSIONS = ['proj-1', 'proj-[12]', '.', 'nowhere'];

type Bytes = Uint8Array<ArrayBufferLike>;

/** What partial answers of one endpoint are made of, and what comes of them, as text. */
interface Kind<Entry, Shard> {
  readonly shardOf: (entries: readonly Entry[]) => Shard;
  readonly questions: readonly {
    readonly write: (shard: Shard) => Bytes;
    readonly merge: (written: readonly Bytes[]) => string;
  }[];
}

function edgeEntries(random: Random): EdgeEntry[] {
  return Array.from({ length: ENTRY_COUNT }, (_, i) => {
    const project = `proj-${random.below(3)}`;
    const agoUs = [random.below(US_PER_HOUR), random.below(8 * US_PER_DAY), 0][random.below(3)];
    // Rows with equal times, and with equal hashes, and some that are the same.
    const timestampUs = NOW_US - Math.floor(agoUs / US_PER_SECOND) * US_PER_SECOND;
    const row = Buffer.from(`{"id":${i % 100 === 0 ? 0 : i},"timestamp":${timestampUs}}`);
    const url = random.below(9) === 0 ? null : Buffer.from(`https://${project}.example/rest/v1/${i % 50}`);
    return {
      timestampUs,
      project,
      tierClass: '90d',
      idHash: random.below(4),
      row,
      url,
      areas: random.below(16),
      outcome: random.below(3),
    };
  });
}

function relayEntries(random: Random): RelayEntry[] {
  return Array.from({ length: ENTRY_COUNT }, () => ({
    timestampUs: NOW_US - [random.below(200) * US_PER_SECOND, random.below(US_PER_DAY)][random.below(2)],
    project: `proj-${random.below(2)}`,
    functionId: ['f', 'g', 'ä\ud800', null][random.below(4)],
    statusCode: [0, 200, 404, 503, 99][random.below(5)],
    // Whole numbers: their sums are exact whatever the order.
    executionTimeMs: random.below(20) === 0 ? Number.NaN : random.below(2000),
  }));
}

const logsKind: Kind<EdgeEntry, RowsView> = {
  shardOf: (entries) => {
    const view = new RowsView(new SegmentTable());
    for (const entry of entries) view.apply(entry);
    return view;
  },
  questions: [
    { project: 'proj-0', startUs: null, endUs: null },
    { project: 'proj-1', startUs: NOW_US - 3 * US_PER_DAY, endUs: NOW_US - US_PER_HOUR },
    { project: 'nowhere', startUs: null, endUs: null },
  ].map((bounds) => {
    const parameters = { ...bounds, retentionUs: RETENTION_US['90d'] };
    return {
      write: (view) =>
        writtenBy((out) => writeLogs(out, collectLogs(view, parameters, NOW_US), parameters, NOW_US)),
      merge: (written) => {
        const partials = written.map((bytes) => readLogs(bytes, parameters, NOW_US));
        return Buffer.concat(mergeLogs(partials).rows.map((row) => row.slice())).toString();
      },
    };
  }),
};

const statsKind: Kind<RelayEntry, StatsView> = {
  shardOf: (entries) => {
    const view = new StatsView();
    for (const entry of entries) view.apply(entry);
    return view;
  },
  questions: ['5min', '15min', '1hr', '1day', '7day'].flatMap((interval) =>
    [null, 'f', 'ä\ud800', 'nowhere'].map((functionId) => {
      const question = questionOf({ project: 'proj-1', functionId, interval }, NOW_US);
      return {
        write: (view: StatsView) => writtenBy((out) => writeStats(out, collectStats(view, question))),
        merge: (written: readonly Bytes[]) =>
          JSON.stringify(new SeriesMerge((row) => row).merge(written.map((one) => readStats(one, question)))),
      };
    }),
  ),
};

function countsOf(view: UsageView, expression: string, ask: ApiCountsAsk) {
  const evaluation = new ExpressionEvaluation([view], expression, [ask]);
  finishEvaluation(evaluation, expression, 1 << 20, 1 << 20);
  const [counts] = evaluation.collect(ask);
  evaluation.close();
  return counts;
}

const countsKind: Kind<EdgeEntry, UsageView> = {
  shardOf: (entries) => {
    const view = new UsageView();
    for (const entry of entries) view.apply(entry);
    return view;
  },
  questions: USAGE_INTERVALS.flatMap((interval) =>
    EXPRESSIONS.map((expression) => {
      const ask = { interval, nowUs: NOW_US };
      return {
        write: (view: UsageView) =>
          writtenBy((out) => writeCounts(out, countsOf(view, expression, ask), expression)),
        merge: (written: readonly Bytes[]) =>
          JSON.stringify(mergeCounts(written.map((one) => readCounts(one, expression, ask)))),
      };
    }),
  ),
};

const eventsKind: Kind<EdgeEntry, EventCountsView> = {
  shardOf: (entries) => {
    const view = new EventCountsView();
    for (const entry of entries) view.apply(entry);
    return view;
  },
  questions: EVENT_INTERVALS.flatMap((interval) =>
    ['proj-0', 'proj-2', 'nowhere'].map((project) => {
      const question = eventQuestionOf({ project, interval, retentionUs: RETENTION_US['90d'] }, NOW_US);
      return {
        write: (view: EventCountsView) =>
          writtenBy((out) => writeEventCounts(out, collectEventCounts([view], question))),
        merge: (written: readonly Bytes[]) =>
          JSON.stringify(mergeEventCounts(written.map((one) => readEventCounts(one, question)))),
      };
    }),
  ),
};

/** Questions that were answered with something. */
function checkMerges<Entry, Shard>(
  kind: Kind<Entry, Shard>,
  entries: readonly Entry[],
  random: Random,
): number {
  const whole = kind.shardOf(entries);
  const expected = kind.questions.map(({ write, merge }) => merge([write(whole)]));
  for (const shardCount of SHARD_COUNTS) {
    const parts: Entry[][] = Array.from({ length: shardCount }, () => []);
    for (const entry of entries) parts[random.below(shardCount)].push(entry);
    const shards = parts.map((part) => kind.shardOf(part));
    kind.questions.forEach(({ write, merge }, i) => {
      const written = shards.map(write);
      expect(merge(written), `question ${i} of ${shardCount} shards`).toBe(expected[i]);
      expect(merge(shuffled(written, random)), 'in another order').toBe(expected[i]);
    });
  }
  return expected.filter((text) => text.length > 2).length;
}

function shuffled<Item>(items: readonly Item[], random: Random): Item[] {
  const left = [...items];
  return items.map(() => left.splice(random.below(left.length), 1)[0]);
}

test('rows of any number of shards merge to those of one', () => {
  for (const seed of [1, 2, 3]) {
    const random = new Random(seed);
    expect(checkMerges(logsKind, edgeEntries(random), random)).toBe(2);
  }
});

test('statistics of any number of shards merge to those of one', () => {
  for (const seed of [1, 2, 3]) {
    const random = new Random(seed);
    const entries = relayEntries(random);
    // Few enough that every value is known.
    const few = entries.filter((_, i) => i % (ENTRY_COUNT / EXACT_VALUE_LIMIT) < 1);
    expect(checkMerges(statsKind, few, random)).toBeGreaterThan(10);
  }
});

test('counts of any number of shards merge to those of one', () => {
  const random = new Random(1);
  expect(checkMerges(countsKind, edgeEntries(random), random)).toBeGreaterThan(6);
});

test('event counts of any number of shards merge to those of one', () => {
  const random = new Random(1);
  expect(checkMerges(eventsKind, edgeEntries(random), random)).toBe(6);
});

test('percentiles of written digests stay within the bound, and all other figures are exact', () => {
  const random = new Random(7);
  const question = questionOf({ project: 'p', functionId: null, interval: '7day' }, NOW_US);
  const values = Array.from({ length: 40_000 }, () => Math.floor(Math.exp(random.float() * 10)));
  const shards = SHARD_COUNTS.slice(1).map((count) => Array.from({ length: count }, () => new StatsView()));
  const entry = { timestampUs: NOW_US, project: 'p', functionId: null, statusCode: 500 };
  for (const views of shards)
    for (const [i, executionTimeMs] of values.entries())
      views[i % views.length].apply({ ...entry, executionTimeMs });
  for (const views of shards) {
    const read = views.map((view) =>
      readStats(
        writtenBy((out) => writeStats(out, collectStats(view, question))),
        question,
      ),
    );
    const [row] = new SeriesMerge((one) => one).merge(read);
    const sorted = Float64Array.from(values).sort();
    expect([row.count, row.errorCount, row.minMs, row.maxMs]).toEqual([
      values.length,
      values.length,
      sorted[0],
      sorted[sorted.length - 1],
    ]);
    expect(row.meanMs).toBe(values.reduce((sum, value) => sum + value, 0) / values.length);
    expect(rankError(sorted, 95, row.p95Ms!)).toBeLessThanOrEqual(0.005);
    expect(rankError(sorted, 99, row.p99Ms!)).toBeLessThanOrEqual(0.002);
  }
});

const WEEK = questionOf({ project: 'p', functionId: null, interval: '7day' }, NOW_US);

function applyTime(view: StatsView, executionTimeMs: number, daysAgo = 0): void {
  const entry = { project: 'p', functionId: null, statusCode: 200, executionTimeMs };
  view.apply({ ...entry, timestampUs: NOW_US - daysAgo * US_PER_DAY });
}

const statsText = (partials: readonly StatsPartial[]) =>
  JSON.stringify(new SeriesMerge((row) => row).merge(partials));

test('values that did not come with the highest are told, and percentiles are the same once they have', () => {
  const random = new Random(13);
  const lacked = { withOwn: 0, without: 0 };
  for (let round = 0; round < 80; round++) {
    const views = Array.from({ length: 1 + random.below(9) }, () => new StatsView());
    // As high in all shards, or higher in the last; few values, exact ones, digests, both.
    const isEven = random.chance(0.4);
    const valueCount = random.pick([5, 700, 8_000, 20_000]);
    for (let i = 0; i < valueCount; i++) {
      const at = random.chance(0.2) ? views.length - 1 : random.below(views.length);
      const isSlow = !isEven && at === views.length - 1;
      // Many are equal.
      const timeMs = random.below(random.pick([5, 300, 100_000])) + (isSlow ? 90_000 : 0);
      applyTime(views[at], timeMs, random.below(3));
    }
    const own = views.map((view) => collectStats(view, WEEK));
    const expected = statsText(own);
    const isOwn = (i: number) => round % 2 === 0 && i < views.length / 2;
    const merged = own.map((partial, i) => (isOwn(i) ? partial : writtenStats(partial, 0)));
    const lacking = lackingValues(merged, 1e6);
    if (lacking !== null) {
      lacked[round % 2 === 0 ? 'withOwn' : 'without']++;
      expect(() => statsText(merged)).toThrow(ValuesDidNotCome);
      for (const [i, detail] of lacking.details.entries())
        if (detail !== null) merged[i] = writtenStats(own[i], detail.count);
    }
    expect(lackingValues(merged, 1e6)).toBeNull();
    expect(statsText(merged), `round ${round}`).toBe(expected);
  }
  expect(Math.min(lacked.withOwn, lacked.without)).toBeGreaterThan(3);
});

test('hostile highest values are an error, lack something, or merge', () => {
  const random = new Random(15);
  const [exact, digested] = [400, 20_000].map((valueCount) => {
    const view = new StatsView();
    for (let i = 0; i < valueCount; i++) applyTime(view, random.below(100_000), random.below(3));
    return collectStats(view, WEEK);
  });
  const outcomes = { refused: 0, lacking: 0, merged: 0 };
  for (const partial of [exact, digested]) {
    const written = writtenBy((out) => writeStats(out, partial, 0));
    for (let i = 0; i < 2_000; i++) {
      let read: StatsPartial;
      try {
        read = readStats(spoilt(written, random), WEEK);
      } catch (error) {
        expect(error).toBeInstanceOf(PartialError);
        outcomes.refused++;
        continue;
      }
      if (lackingValues([exact, read], 1e6) !== null) outcomes.lacking++;
      else {
        expectSoundStats(statsText([exact, read]));
        outcomes.merged++;
      }
    }
  }
  expect(Math.min(outcomes.refused, outcomes.merged)).toBeGreaterThan(50);
});

test('of many values only the highest are sent', () => {
  const random = new Random(14);
  for (const [valueCount, mostBytes] of [
    [EXACT_VALUE_LIMIT, 600],
    [100_000, 5_000],
  ]) {
    const view = new StatsView();
    for (let i = 0; i < valueCount; i++) applyTime(view, 100_000 * random.float());
    const written = (count: number) =>
      writtenBy((out) => writeStats(out, collectStats(view, WEEK), count)).length;
    expect(written(0)).toBeLessThan(mostBytes);
    expect(written(Number.POSITIVE_INFINITY)).toBeGreaterThan(2 * written(0));
  }
});

function formOf(bytes: Bytes): string {
  return new ByteReader(bytes).string();
}

function inForm(form: string, writeContent: (out: ByteWriter) => void): Bytes {
  return writtenBy((out) => {
    out.string(form);
    writeContent(out);
  });
}

/** Bytes that no honest process has written, from a seed. */
function spoilt(written: Bytes, random: Random): Bytes {
  const form = formOf(written);
  const bytes = Buffer.from(written);
  const start = 4 + form.length;
  const content = bytes.subarray(start);
  switch (random.below(4)) {
    case 0:
      return bytes.subarray(0, random.below(bytes.length));
    case 1:
      bytes[random.below(bytes.length)] ^= 1 << random.below(8);
      return bytes;
    case 2:
      for (let left = 1 + random.below(3); left > 0 && content.length > 0; left--)
        content[random.below(content.length)] = random.below(256);
      return inForm(form, (out) => out.bytes(content));
    default:
      return inForm(form, (out) => {
        out.bytes(content.subarray(0, random.below(content.length + 1)));
        for (let left = random.below(20); left > 0; left--) out.u8(random.below(256));
      });
  }
}

/** How many of the spoilt ones were refused; some can be read. */
function checkSpoilt<Entry, Shard>(
  kind: Kind<Entry, Shard>,
  entries: readonly Entry[],
): { refused: number; read: number } {
  const random = new Random(11);
  const shard = kind.shardOf(entries);
  const outcomes = { refused: 0, read: 0 };
  for (const { write, merge } of kind.questions) {
    const written = write(shard);
    for (let i = 0; i < 300; i++) {
      const bytes = spoilt(written, random);
      try {
        merge([bytes]);
        outcomes.read += 1;
      } catch (error) {
        expect(error).toBeInstanceOf(PartialError);
        outcomes.refused += 1;
      }
    }
  }
  return outcomes;
}

test('hostile bytes are an error or another answer, never a crash; what is cut off is an error', () => {
  const random = new Random(5);
  const edge = edgeEntries(random).slice(0, 300);
  const relay = relayEntries(random).slice(0, 300);
  for (const { refused, read } of [
    checkSpoilt(logsKind, edge),
    checkSpoilt(statsKind, relay),
    checkSpoilt(countsKind, edge),
    checkSpoilt(eventsKind, edge),
  ]) {
    expect(refused).toBeGreaterThan(100);
    expect(read).toBeGreaterThan(0);
  }
  const parameters = { project: 'proj-0', startUs: null, endUs: null, retentionUs: RETENTION_US['90d'] };
  const whole = writtenBy((out) =>
    writeLogs(out, collectLogs(logsKind.shardOf(edge), parameters, NOW_US), parameters, NOW_US),
  );
  for (let at = 0; at < whole.length; at++)
    expect(() => readLogs(whole.subarray(0, at), parameters, NOW_US), `${at} bytes`).toThrow(PartialError);
});

test('names that are read do not change with the memory that they were read from', () => {
  const memory = Buffer.alloc(10);
  memory.writeUInt32LE(6);
  for (let i = 0; i < 20_000; i++) {
    const name = String(i).padStart(6, '0');
    memory.write(name, 4);
    expect(new ByteReader(memory).string()).toBe(name);
  }
});

test('a large row that is read does not change with the memory that it was read from', () => {
  const view = logsKind.shardOf([
    { ...edgeEntries(new Random(1))[0], project: 'proj-0', row: Buffer.alloc(LASTING_ROW_BYTES, 'r') },
  ]);
  const parameters = { project: 'proj-0', startUs: null, endUs: null, retentionUs: RETENTION_US['90d'] };
  const memory = Buffer.from(
    writtenBy((out) => writeLogs(out, collectLogs(view, parameters, NOW_US), parameters, NOW_US)),
  );
  const { rows } = mergeLogs([readLogs(memory, parameters, NOW_US)]);
  const before = rows.map((row) => Buffer.from(row).toString());
  memory.fill(0);
  expect(before).toHaveLength(1);
  expect(rows.map((row) => Buffer.from(row).toString())).toEqual(before);
});

/** All numbers of a row are finite, or null where the bucket has no execution time. */
function expectSoundStats(json: string): void {
  for (const row of JSON.parse(json) as Record<string, number | null>[]) {
    expect(row.minMs === null, json).toBe(row.maxMs === null);
    for (const name of ['meanMs', 'p95Ms', 'p99Ms'])
      expect(row[name] === null, json).toBe(row.minMs === null);
    expect(Number.isSafeInteger(row.count), json).toBe(true);
  }
}

test('numbers that no entries make are refused, wherever they stand in written statistics', () => {
  const shard = statsKind.shardOf(relayEntries(new Random(6)).slice(0, 60));
  let refused = 0;
  for (const { write, merge } of statsKind.questions.slice(0, 8)) {
    const written = write(shard);
    const form = formOf(written);
    const content = written.subarray(4 + form.length);
    for (let at = 0; at + 8 <= content.length; at++) {
      for (const poison of [Number.NaN, Number.NEGATIVE_INFINITY]) {
        const poisoned = Uint8Array.from(content);
        new DataView(poisoned.buffer).setFloat64(at, poison, true);
        try {
          expectSoundStats(merge([inForm(form, (out) => out.bytes(poisoned))]));
        } catch (error) {
          expect(error).toBeInstanceOf(PartialError);
          refused += 1;
        }
      }
    }
  }
  expect(refused).toBeGreaterThan(1000);
});

test('a partial answer to another question is refused', () => {
  const stats = statsKind.shardOf([]);
  const question = questionOf({ project: 'p', functionId: 'f', interval: '1hr' }, NOW_US);
  const written = writtenBy((out) => writeStats(out, collectStats(stats, question)));
  for (const other of [
    questionOf({ project: 'p', functionId: 'g', interval: '1hr' }, NOW_US),
    questionOf({ project: 'p', functionId: null, interval: '1hr' }, NOW_US),
    questionOf({ project: 'p', functionId: 'f', interval: '15min' }, NOW_US),
    questionOf({ project: 'p', functionId: 'f', interval: '1hr' }, NOW_US + US_PER_HOUR),
  ])
    expect(() => readStats(written, other)).toThrow(PartialError);
  const ask = { interval: 'hourly', nowUs: NOW_US } as const;
  const counts = writtenBy((out) => writeCounts(out, countsOf(countsKind.shardOf([]), 'a', ask), 'a'));
  for (const other of [
    { interval: 'daily', nowUs: NOW_US },
    { interval: 'hourly', nowUs: NOW_US + 1 },
  ] as const)
    expect(() => readCounts(counts, 'a', other)).toThrow(PartialError);
  expect(() => readCounts(counts, 'b', ask)).toThrow(PartialError);
  expect(() => readCounts(written, 'a', ask)).toThrow(PartialError);
  const logs = { project: 'p', startUs: null, endUs: 5, retentionUs: RETENTION_US['7d'] };
  const rows = writtenBy((out) =>
    writeLogs(out, collectLogs(logsKind.shardOf([]), logs, NOW_US), logs, NOW_US),
  );
  for (const other of [
    { ...logs, project: 'q' },
    { ...logs, startUs: 0 },
    { ...logs, endUs: null },
    { ...logs, retentionUs: RETENTION_US['1d'] },
  ])
    expect(() => readLogs(rows, other, NOW_US)).toThrow(PartialError);
  expect(() => readLogs(rows, logs, NOW_US + 1)).toThrow(PartialError);
});

test('rows and bodies that did not come with the first are told, and merge once they have', () => {
  const random = new Random(11);
  let lackedRows = 0;
  let lackedBodies = 0;
  for (let round = 0; round < 30; round++) {
    const viewCount = 1 + random.below(4);
    const parts: EdgeEntry[][] = Array.from({ length: viewCount }, () => []);
    // Rounds with few times have many rows of one place.
    const times = random.pick([3, 1_000_000]);
    for (let i = 0; i < 300; i++) {
      const timestampUs = NOW_US - random.below(times) * US_PER_SECOND;
      const length = random.pick([10, 10, 10, 40_000]);
      const row = Buffer.from(`{"id":${i},"timestamp":${timestampUs},"x":"${'x'.repeat(length)}"}`);
      const entry = { timestampUs, project: 'p', tierClass: '90d' as const, idHash: random.below(3), row };
      const of = random.chance(0.7) ? 0 : random.below(viewCount);
      parts[of].push({ ...entry, url: null, areas: 0, outcome: 0 });
    }
    const views = parts.map((part) => logsKind.shardOf(part));
    const parameters = { project: 'p', retentionUs: RETENTION_US['90d'], startUs: null, endUs: null };
    const collect = (view: RowsView) => collectLogs(view, parameters, NOW_US);
    const textOf = (rows: readonly Uint8Array[]) => rows.map((row) => Buffer.from(row).toString()).join();
    const expected = textOf(mergeLogs(views.map(collect)).rows);
    const byteLimit = random.pick([5_000, 500_000, Number.POSITIVE_INFINITY]);
    const written = (view: RowsView, detail: Detail) =>
      readLogs(
        writtenBy((out) => writeLogs(out, collect(view), parameters, NOW_US, detail)),
        parameters,
        NOW_US,
      );
    const likely = { count: likelyRowCount(viewCount), byteLimit };
    const partialsWith = (detail: Detail) =>
      views.map((view, i) => (i === 0 && round % 2 === 0 ? collect(view) : written(view, detail)));
    const partials = partialsWith(likely);
    let mostNeeded = 0;
    const note = (most: number) => {
      mostNeeded = most;
    };
    let lacking = lackingRows(partials, byteLimit, note);
    for (let asked = 0; lacking !== null; asked++) {
      lacking.byteCount > 0 ? lackedBodies++ : lackedRows++;
      for (const [i, detail] of lacking.details.entries())
        if (detail !== null) partials[i] = written(views[i], detail);
      lacking = lackingRows(partials, byteLimit, note);
      expect(asked).toBeLessThan(2);
    }
    const { rows, reachUs } = mergeLogs(partials);
    expect(textOf(rows)).toBe(expected);
    expect(reachUs).toBe(reachOf(rows));
    const late = { ...parameters, startUs: NOW_US - 100_000 * US_PER_SECOND };
    const fewer = mergeLogs(views.map((view) => collectLogs(view, late, NOW_US)));
    expect(fewer.reachUs).toBe(reachOf(fewer.rows));
    // With as many of each it is not asked twice.
    const next = { count: mostNeeded + 1, byteLimit: Number.POSITIVE_INFINITY };
    if (mostNeeded > 0) expect(lackingRows(partialsWith(next), byteLimit)).toBeNull();
    // A large row keeps alive nothing but itself.
    for (const row of rows) if (row.length > 20_000) expect(row.buffer.byteLength).toBeLessThan(2 ** 20);
  }
  expect(Math.min(lackedRows, lackedBodies)).toBeGreaterThan(5);
  expect([1, 2, 3, 100].map(likelyRowCount)).toEqual([100, 72, 51, 4]);
});

test.each([400, 2_000])(
  'what a member has of thirty partitions is read as one, %i values in each',
  (valueCount) => {
    const random = new Random(13);
    const views = Array.from({ length: 30 }, (_, v) => {
      const view = new StatsView();
      for (let i = 0; i < valueCount; i++) {
        // Rising, so that what is not in a digest yet is the highest.
        const executionTimeMs = i + random.below(100) / 100 + v;
        view.apply({ timestampUs: NOW_US, project: 'p', functionId: null, statusCode: 200, executionTimeMs });
      }
      return view;
    });
    const question = questionOf({ project: 'p', functionId: null, interval: '1day' }, NOW_US);
    const collected = views.map((view) => collectStats(view, question));
    const textOf = (partials: readonly StatsPartial[]) =>
      JSON.stringify(new SeriesMerge((row) => row).merge(partials));
    for (const own of [[], collected.slice(20)]) {
      const theirs = combineStats(collected.slice(0, 30 - own.length));
      let read = writtenStats(theirs, 0);
      const lacking = lackingValues([...own, read], 0);
      const detail = lacking?.details.at(-1) ?? null;
      if (detail !== null) read = writtenStats(theirs, detail.count);
      expect(textOf([...own, read])).toBe(textOf(collected));
    }
  },
);

test('of a project that was asked about so many rows are asked for as were needed, and a few more', () => {
  const likely = new LikelyRows();
  expect(likely.count('p', 4)).toBe(likelyRowCount(4));
  likely.note('p', 25);
  expect([likely.count('p', 4), likely.count('other', 4)]).toEqual([27, likelyRowCount(4)]);
  likely.note('p', 99);
  expect(likely.count('p', 4)).toBe(100);
  for (let i = 0; i < 200; i++) likely.note('p', 25);
  expect(likely.count('p', 4)).toBe(27);
  for (let i = 0; i < 2000; i++) likely.note(`p${i}`, 1);
  expect(likely.count('p', 4)).toBe(likelyRowCount(4));
  expect(likely.count('p1999', 4)).toBe(3);
});

test('rows of others that were not needed are never taken for rows once newer ones of one process are gone', () => {
  const parameters = { project: 'p', retentionUs: RETENTION_US['90d'], startUs: null, endUs: null };
  const entries = (count: number, fromUs: number): EdgeEntry[] =>
    Array.from({ length: count }, (_, i) => {
      const timestampUs = fromUs - i;
      const row = Buffer.from(`{"timestamp":${timestampUs}}`);
      return { timestampUs, project: 'p', tierClass: '90d', idHash: 1, row, url: null, areas: 0, outcome: 0 };
    });
  const own = collectLogs(logsKind.shardOf(entries(60, NOW_US)), parameters, NOW_US);
  const theirs = logsKind.shardOf(entries(90, NOW_US - 1_000));
  const read = (detail: Detail) =>
    readLogs(
      writtenBy((out) => writeLogs(out, collectLogs(theirs, parameters, NOW_US), parameters, NOW_US, detail)),
      parameters,
      NOW_US,
    );
  // 40 of them are needed, as long as there are 60 newer ones.
  for (const sent of [read({ count: 100, byteLimit: 50 * 30 }), read({ count: 50, byteLimit: 1e6 })]) {
    expect(lackingRows([own, sent], 1e6)).toBeNull();
    expect(mergeLogs([own, sent]).rows).toHaveLength(100);
    expect(() => mergeLogs([sent])).toThrow(RowDidNotCome);
  }
});

test('large rows are merged, however many newer ones come meanwhile', () => {
  const random = new Random(12);
  const parameters = { project: 'p', retentionUs: RETENTION_US['90d'], startUs: null, endUs: null };
  const likely = { count: likelyRowCount(4), byteLimit: 700_000 };
  let newest = 0;
  const entry = (): EdgeEntry => {
    const timestampUs = NOW_US - 1_000_000 + newest++;
    const row = Buffer.from(`{"timestamp":${timestampUs},"x":"${'x'.repeat(40_000)}"}`);
    return { timestampUs, project: 'p', tierClass: '90d', idHash: 1, row, url: null, areas: 0, outcome: 0 };
  };
  for (let round = 0; round < 20; round++) {
    const parts: EdgeEntry[][] = Array.from({ length: 4 }, () => []);
    for (let i = 0; i < 300; i++) random.pick(parts).push(entry());
    const written = (part: readonly EdgeEntry[], detail: Detail) =>
      readLogs(
        writtenBy((out) =>
          writeLogs(out, collectLogs(logsKind.shardOf(part), parameters, NOW_US), parameters, NOW_US, detail),
        ),
        parameters,
        NOW_US,
      );
    const partials = parts.map((part) => written(part, likely));
    let lacking = lackingRows(partials, likely.byteLimit);
    expect(lacking).not.toBeNull();
    for (let asked = 0; lacking !== null; asked++) {
      expect(asked).toBeLessThan(3);
      for (const part of parts) part.push(entry(), entry());
      for (const [i, detail] of lacking.details.entries())
        if (detail !== null) partials[i] = written(parts[i], detail);
      lacking = lackingRows(partials, likely.byteLimit);
    }
    for (const row of mergeLogs(partials).rows) expect(row.length).toBeGreaterThan(40_000);
  }
});
