/**
 * The pipeline over real shards: each record counts once and whole, and its dead letters before its offset
 * does.
 */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { AssertionError } from '../../engine/assert.js';
import { EdgeShard, RelayShard } from '../../engine/shard.js';
import { LONGEST_RETENTION_US } from '../../engine/tier.js';
import type { DeadLetter, DeadLetterSink } from '../../ingest/dead-letters.js';
import { Gaps } from '../../ingest/gaps.js';
import { HELD_ELEMENTS, KEPT_GAPS, SLICE_ELEMENTS } from '../../ingest/limits.js';
import type { LogRecord, OffsetGap, PartitionKey } from '../../ingest/log-source.js';
import { Pipeline, type PipelinePorts } from '../../ingest/pipeline.js';
import { NOW_US } from '../decode/fixtures.js';
import { queryLogs } from '../queries.js';
import { SegmentTable } from '../segment-table.js';

const EDGE: PartitionKey = { topic: 'edge', partition: 0 };
const RELAY: PartitionKey = { topic: 'relay', partition: 0 };

/** Keeps letters in memory; a write takes some turns, and what it has written by then is durable. */
class LetterBox implements DeadLetterSink {
  readonly durable: DeadLetter[] = [];
  writeCount = 0;

  async write(letters: readonly DeadLetter[]): Promise<void> {
    this.writeCount++;
    for (let turn = 0; turn < 3; turn++) await nextTurn();
    this.durable.push(...letters);
  }
}

function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

class Rig {
  readonly shards = new Map<string, EdgeShard | RelayShard>();
  readonly letterBox = new LetterBox();
  readonly gaps = new Gaps();
  /** Looked at between any two slices. */
  atYield: () => void = () => {};
  yieldCount = 0;
  readonly pipeline: Pipeline;

  constructor(judgedBy: PipelinePorts['judgedBy'] = 'clock') {
    this.pipeline = new Pipeline({
      edgeTopic: EDGE.topic,
      relayTopic: RELAY.topic,
      shardOf: (key) => this.shard(key),
      deadLetters: this.letterBox,
      tiers: { tierByProject: new Map(), defaultTier: 'ENTERPRISE' },
      judgedBy,
      timeHolds: null,
      nowUs: () => NOW_US,
      yieldTurn: () => {
        this.yieldCount++;
        this.atYield();
        return nextTurn();
      },
      onGap: (gap) => this.gaps.add(gap),
    });
  }

  shard({ topic, partition }: PartitionKey): EdgeShard | RelayShard {
    const name = `${topic}/${partition}`;
    let shard = this.shards.get(name);
    if (shard === undefined) {
      shard = topic === EDGE.topic ? new EdgeShard(new SegmentTable()) : new RelayShard();
      this.shards.set(name, shard);
    }
    return shard;
  }

  /** Ids of the rows of project p. */
  rowIds(key = EDGE): string[] {
    const { rows } = this.shard(key) as EdgeShard;
    const parameters = { project: 'p', retentionUs: LONGEST_RETENTION_US, startUs: null, endUs: null };
    return queryLogs([rows], parameters, NOW_US)
      .map((row) => JSON.parse(Buffer.from(row).toString()).id)
      .sort();
  }
}

const always = () => true;

/** `values` become records from `firstOffset` on. */
function recordsOf(values: readonly string[], firstOffset = 0): LogRecord[] {
  return values.map((value, i) => ({
    offset: firstOffset + i,
    timestampMs: NOW_US / 1000,
    value: Buffer.from(value),
    projectTier: null,
  }));
}

/**
 * An array value of `count` entries of project p with ids from `name`, and of `badCount` entries without a
 * project.
 */
function batchValue(name: string, count: number, badCount = 0): string {
  const good = Array.from({ length: count }, (_, i) => ({ id: `${name}.${i}`, project: 'p' }));
  return JSON.stringify([...good, ...Array.from({ length: badCount }, () => ({}))]);
}

test('entries, counters and offset', async () => {
  const rig = new Rig();
  const records = recordsOf([batchValue('a', 2), 'x', batchValue('b', 1, 2), '[]'], 5);
  await rig.pipeline.apply({ ...EDGE, records }, always);
  const shard = rig.shard(EDGE);
  expect(rig.rowIds()).toEqual(['a.0', 'a.1', 'b.0']);
  expect([shard.nextOffset, shard.received, shard.applied]).toEqual([9, 6, 3]);
  expect([...shard.rejectedByReason]).toEqual([
    ['not-json', 1],
    ['missing-project', 2],
  ]);
  const letters = rig.letterBox.durable.map(({ offset, index, reason }) => `${offset}.${index} ${reason}`);
  expect(letters).toEqual(['6.0 not-json', '7.1 missing-project', '7.2 missing-project']);
});

test('the relay topic has relay entries', async () => {
  const rig = new Rig();
  const records = recordsOf(['{"metadata":{"project_ref":"p"}}', '{"project":"p"}']);
  await rig.pipeline.apply({ ...RELAY, records }, always);
  expect([rig.shard(RELAY).applied, rig.shard(RELAY).received]).toEqual([1, 2]);
});

test('records before the next offset are skipped, and a repeated batch changes nothing', async () => {
  const rig = new Rig();
  const batch = { ...EDGE, records: recordsOf([batchValue('a', 1), 'x', batchValue('b', 1)]) };
  await rig.pipeline.apply({ ...EDGE, records: batch.records.slice(0, 2) }, always);
  await rig.pipeline.apply(batch, always);
  await rig.pipeline.apply(batch, always);
  expect(rig.rowIds()).toEqual(['a.0', 'b.0']);
  expect([rig.shard(EDGE).received, rig.letterBox.durable.length]).toEqual([3, 1]);
});

test('offsets need not be dense, and a batch may end behind its last record', async () => {
  const rig = new Rig();
  const [first, second] = recordsOf([batchValue('a', 1), batchValue('b', 1)]);
  await rig.pipeline.apply({ ...EDGE, records: [first, { ...second, offset: 10 }], nextOffset: 15 }, always);
  expect([rig.rowIds(), rig.shard(EDGE).nextOffset]).toEqual([['a.0', 'b.0'], 15]);
  await rig.pipeline.apply({ ...EDGE, records: [], nextOffset: 20 }, always);
  await rig.pipeline.apply({ ...EDGE, records: [], nextOffset: 18 }, always);
  expect([rig.shard(EDGE).nextOffset, rig.shard(EDGE).received]).toEqual([20, 2]);
});

test('what the source could not unpack is a dead letter', async () => {
  const rig = new Rig();
  const [record] = recordsOf(['squeezed']);
  await rig.pipeline.apply({ ...EDGE, records: [{ ...record, unreadable: 'unknown-codec' }] }, always);
  expect([...rig.shard(EDGE).rejectedByReason]).toEqual([['unknown-codec', 1]]);
  expect(rig.letterBox.durable).toMatchObject([{ reason: 'unknown-codec', value: Buffer.from('squeezed') }]);
});

test('a batch that is no longer current is left unread, between two records', async () => {
  const rig = new Rig();
  const values = Array.from({ length: 200 }, (_, i) => batchValue(`r${i}`, 1, i < 100 ? 0 : i % 3));
  let asked = 0;
  await rig.pipeline.apply({ ...EDGE, records: recordsOf(values) }, () => ++asked < 12);
  const shard = rig.shard(EDGE);
  const applied = shard.nextOffset ?? 0;
  expect(applied).toBeGreaterThan(0);
  expect(applied).toBeLessThan(200);
  expect(shard.applied).toBe(applied);
  // The next owner reads on from there.
  await rig.pipeline.apply({ ...EDGE, records: recordsOf(values) }, always);
  expect([shard.nextOffset, shard.applied, shard.received]).toEqual([200, 200, 200 + 100]);
});

test('one durable write for many poison records', async () => {
  const rig = new Rig();
  const values = Array.from({ length: HELD_ELEMENTS }, () => 'poison');
  await rig.pipeline.apply({ ...EDGE, records: recordsOf(values) }, always);
  expect([rig.letterBox.writeCount, rig.letterBox.durable.length]).toEqual([1, HELD_ELEMENTS]);
  await rig.pipeline.apply(
    { ...EDGE, records: recordsOf([...values, ...values, ...values], HELD_ELEMENTS) },
    always,
  );
  expect(rig.letterBox.writeCount).toBeLessThanOrEqual(5);
});

/** The most elements that became visible from one yield to the next, and how often the pipeline yielded. */
async function largestStep(values: readonly string[]): Promise<{ largest: number; yieldCount: number }> {
  const rig = new Rig();
  let last = 0;
  let largest = 0;
  rig.atYield = () => {
    largest = Math.max(largest, rig.shard(EDGE).received - last);
    last = rig.shard(EDGE).received;
  };
  await rig.pipeline.apply({ ...EDGE, records: recordsOf(values) }, always);
  return { largest, yieldCount: rig.yieldCount };
}

test('work is sliced, also what was held back for its dead letters', async () => {
  const good = Array.from({ length: 40 * SLICE_ELEMENTS }, (_, i) => `{"id":"${i}","project":"p"}`);
  expect(await largestStep(good)).toEqual({ largest: SLICE_ELEMENTS, yieldCount: 40 });
  const poison = Array.from({ length: 200 }, (_, i) => batchValue(`${i}`, 1, 1));
  expect((await largestStep(poison)).largest).toBe(SLICE_ELEMENTS - 1);
  // A record is never divided.
  expect((await largestStep(['7', batchValue('a', 300), '7'])).largest).toBe(300);
});

test('partitions take turns, and one partition takes one batch at a time', async () => {
  const rig = new Rig();
  const values = Array.from({ length: 300 }, (_, i) => batchValue(`r${i}`, 1, i % 2));
  const other = { ...EDGE, partition: 1 };
  const first = rig.pipeline.apply({ ...EDGE, records: recordsOf(values) }, always);
  const second = rig.pipeline.apply({ ...other, records: recordsOf(values) }, always);
  await expect(rig.pipeline.apply({ ...EDGE, records: [] }, always)).rejects.toThrow(AssertionError);
  expect(() => rig.pipeline.setIdentity(EDGE, { clusterId: 'c', topicId: 't' })).toThrow(AssertionError);
  await Promise.all([first, second]);
  expect([rig.shard(EDGE).applied, rig.shard(other).applied]).toEqual([300, 300]);
  await rig.pipeline.apply({ ...EDGE, records: [] }, always);
});

test('our own bugs are not passed over: falling offsets, topics nobody asked for', async () => {
  const rig = new Rig();
  const [a, b] = recordsOf([batchValue('a', 1), batchValue('b', 1)]);
  await expect(rig.pipeline.apply({ ...EDGE, records: [b, a, b] }, always)).rejects.toThrow(AssertionError);
  const foreign = { topic: 'other', partition: 0, records: [a] };
  await expect(rig.pipeline.apply(foreign, always)).rejects.toThrow(AssertionError);
});

test('a failing dead-letter sink leaves the offset where it was', async () => {
  const rig = new Rig();
  rig.letterBox.write = () => Promise.reject(new Error('disk full'));
  const records = recordsOf(['x', batchValue('a', 1)]);
  await expect(rig.pipeline.apply({ ...EDGE, records }, always)).rejects.toThrow('disk full');
  expect([rig.shard(EDGE).nextOffset, rig.shard(EDGE).received]).toEqual([null, 0]);
});

test('identity and gaps', () => {
  const rig = new Rig();
  expect([rig.pipeline.nextOffset(EDGE), rig.pipeline.identity(EDGE)]).toEqual([null, null]);
  rig.pipeline.setIdentity(EDGE, { clusterId: 'c', topicId: 't' });
  expect(rig.pipeline.identity(EDGE)).toEqual({ clusterId: 'c', topicId: 't' });
  const gap = (resumedOffset: number): OffsetGap => ({
    ...EDGE,
    reason: 'log-start-moved',
    expectedOffset: 0,
    resumedOffset,
  });
  for (let i = 0; i < KEPT_GAPS + 5; i++) rig.pipeline.reportGap(gap(i));
  expect([rig.gaps.openCount, rig.gaps.open.length]).toEqual([KEPT_GAPS + 5, KEPT_GAPS]);
  expect(rig.gaps.open.at(-1)).toEqual(gap(KEPT_GAPS + 4));
  expect(rig.pipeline.nextOffset(EDGE)).toBe(KEPT_GAPS + 4);
  rig.pipeline.reportGap({ ...gap(2), reason: 'topic-recreated' });
  expect(rig.pipeline.nextOffset(EDGE)).toBe(2);
});

test('too old and too far ahead, as seen from now or from the arrival', async () => {
  const arrivalUs = NOW_US - 2 * LONGEST_RETENTION_US;
  const record = (timestampUs: number, offset: number) => ({
    offset,
    timestampMs: arrivalUs / 1000,
    value: Buffer.from(`{"project":"p","timestamp":${timestampUs}}`),
    projectTier: null,
  });
  const records = [record(arrivalUs, 0), record(NOW_US, 1), record(arrivalUs - LONGEST_RETENTION_US - 1, 2)];
  const byClock = new Rig('clock');
  await byClock.pipeline.apply({ ...EDGE, records }, always);
  expect([...byClock.shard(EDGE).rejectedByReason]).toEqual([['too-old', 2]]);
  const byArrival = new Rig('arrival');
  await byArrival.pipeline.apply({ ...EDGE, records }, always);
  expect([...byArrival.shard(EDGE).rejectedByReason]).toEqual([
    ['too-far-ahead', 1],
    ['too-old', 1],
  ]);
});

test('at the end of every turn each shard stands between two records, with its letters durable', async () => {
  const element = fc.constantFrom(
    '{"project":"p"}',
    '{"project":"p"}',
    '{}',
    '7',
    '{"project":"p","timestamp":"x"}',
    'bad',
  );
  const value = fc.oneof(
    { weight: 6, arbitrary: element },
    {
      weight: 2,
      arbitrary: fc.array(element, { maxLength: 60 }).map((elements) => `[${elements.join(',')}]`),
    },
    { weight: 1, arbitrary: fc.constantFrom('', '[', '[]', `[${'{"project":"p"},'.repeat(300)}7]`) },
  );
  const run = fc.record({
    values: fc.array(value, { maxLength: 120 }),
    step: fc.integer({ min: 1, max: 3 }),
    cuts: fc.array(fc.nat(120), { maxLength: 3 }),
    revokedAfter: fc.option(fc.nat(30)),
  });
  await fc.assert(
    fc.asyncProperty(run, async ({ values, step, cuts, revokedAfter }) => {
      const records = recordsOf(values).map((record) => ({ ...record, offset: record.offset * step }));
      // What the shard has to show when it stands before an offset, from decoding one record after another.
      const expected = new Map<number, { applied: number; letters: number }>([
        [0, { applied: 0, letters: 0 }],
      ]);
      const reference = new Rig();
      for (const record of records) {
        await reference.pipeline.apply({ ...EDGE, records: [record] }, always);
        const { applied, received } = reference.shard(EDGE);
        expected.set(record.offset + 1, { applied, letters: received - applied });
      }
      const rig = new Rig();
      const shard = rig.shard(EDGE);
      const checkBetweenRecords = () => {
        const state = expected.get(shard.nextOffset ?? 0);
        expect({ applied: shard.applied, letters: shard.received - shard.applied }).toEqual(state);
        const counted = rig.letterBox.durable.filter(({ offset }) => offset < (shard.nextOffset ?? 0));
        const origins = new Set(counted.map(({ offset, index }) => `${offset}.${index}`));
        expect(origins.size).toBe(state?.letters);
      };
      rig.atYield = checkBetweenRecords;
      let asked = 0;
      const isCurrent = () => revokedAfter === null || asked++ < revokedAfter;
      const bounds = [0, ...cuts.filter((cut) => cut < records.length).sort((a, b) => a - b), records.length];
      for (let i = 1; i < bounds.length; i++) {
        await rig.pipeline.apply({ ...EDGE, records: records.slice(bounds[i - 1], bounds[i]) }, isCurrent);
        checkBetweenRecords();
        if (!isCurrent()) break;
      }
      await rig.pipeline.apply({ ...EDGE, records }, always);
      checkBetweenRecords();
      expect(rig.shard(EDGE).received).toBe(reference.shard(EDGE).received);
      expect(rig.rowIds()).toEqual(reference.rowIds());
    }),
    { seed: 4, numRuns: 60 },
  );
});
