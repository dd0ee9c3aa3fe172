/**
 * A partition most of whose records look too far ahead holds: over real shards, with a clock that the test
 * sets.
 */

import { expect, test } from 'vitest';
import { MAX_FUTURE_US } from '../../engine/limits.js';
import { EdgeShard } from '../../engine/shard.js';
import { US_PER_HOUR } from '../../engine/time.js';
import type { DeadLetter } from '../../ingest/dead-letters.js';
import { Holds } from '../../ingest/holds.js';
import { HOLD_RETRY_MS, TIME_WINDOW_RECORDS } from '../../ingest/limits.js';
import type { LogRecord } from '../../ingest/log-source.js';
import { Pipeline } from '../../ingest/pipeline.js';
import { TimeHolds } from '../../ingest/time-holds.js';
import { NOW_US } from '../decode/fixtures.js';
import { SegmentTable } from '../segment-table.js';

const KEY = { topic: 'edge', partition: 0 };

/**
 * A log whose records are right (o), ahead of the true time by MAX_FUTURE_US and more (x), or useless (-).
 */
class Rig {
  readonly shard = new EdgeShard(new SegmentTable());
  readonly letters: DeadLetter[] = [];
  readonly said: string[] = [];
  ranMs = 0;
  /** The clock, off the true time. */
  clockUs = 0;
  readonly holds = new Holds({
    nowMs: () => this.ranMs,
    onHeld: ({ offset }) => this.said.push(`held at ${offset}`),
    onReleased: () => this.said.push('goes on'),
  });
  #log: LogRecord[] = [];
  readonly #pipeline = new Pipeline({
    edgeTopic: 'edge',
    relayTopic: 'relay',
    shardOf: () => this.shard,
    deadLetters: { write: async (letters) => void this.letters.push(...letters) },
    tiers: { tierByProject: new Map(), defaultTier: 'ENTERPRISE' },
    judgedBy: 'clock',
    timeHolds: new TimeHolds(this.holds, () => NOW_US + this.clockUs),
    nowUs: () => NOW_US + this.clockUs,
    yieldTurn: async () => undefined,
    onGap: () => undefined,
  });

  /** Further records: `3o 2x` is ooo, then xx. */
  add(text: string): void {
    for (const [, count, kind] of text.matchAll(/([0-9]+)([ox-])/g)) {
      for (let i = 0; i < Number(count); i++) {
        const timestampUs = NOW_US + (kind === 'x' ? MAX_FUTURE_US + 1 : 0);
        const value = kind === '-' ? '{}' : JSON.stringify({ project: 'p', timestamp: timestampUs });
        this.#log.push({
          offset: this.#log.length,
          timestampMs: NOW_US / 1000,
          value: Buffer.from(value),
          projectTier: null,
        });
      }
    }
  }

  /** Reads on from where the shard is. What there is then: `3 applied, 2 dead`. */
  async read(text = '', batchRecords = Infinity): Promise<string> {
    this.add(text);
    for (;;) {
      const from = this.shard.nextOffset ?? 0;
      const records = this.#log.slice(from, from + batchRecords);
      if (records.length === 0) break;
      const nextOffset = from + records.length;
      await this.#pipeline.apply({ ...KEY, records, nextOffset }, () => true);
      if ((this.shard.nextOffset ?? 0) < nextOffset) break;
    }
    expect(this.letters.length).toBe(this.shard.received - this.shard.applied);
    return `${this.shard.applied} applied, ${this.letters.length} dead, ${this.holds.open.length} held`;
  }
}

test('by a clock two hours behind no good record becomes a dead letter; put right, all are applied', async () => {
  for (const batchRecords of [Infinity, 7, 1]) {
    const rig = new Rig();
    rig.clockUs = -2 * US_PER_HOUR;
    expect(await rig.read('200o', batchRecords)).toBe('0 applied, 0 dead, 1 held');
    expect(rig.shard.nextOffset).toBe(null);
    expect(rig.holds.open[0].sentence).toMatch(/records are more than an hour ahead of the clock, 2026-/);
    // It stays so, and is told once.
    expect(await rig.read('', batchRecords)).toBe('0 applied, 0 dead, 1 held');
    expect(rig.holds.isDue(KEY)).toBe(false);
    rig.ranMs += HOLD_RETRY_MS;
    expect(rig.holds.isDue(KEY)).toBe(true);
    rig.clockUs = 0;
    expect(await rig.read('', batchRecords)).toBe('200 applied, 0 dead, 0 held');
    expect(rig.said).toEqual(['held at 0', 'goes on']);
  }
});

test('nothing of the window that holds becomes a dead letter; what stands before it is applied', async () => {
  const rig = new Rig();
  expect(await rig.read('300o 2x 60o 200x')).toBe('360 applied, 2 dead, 1 held');
  expect(rig.said).toEqual(['held at 362']);
});

test('some that are too far ahead are dead letters as ever, and so is whatever else cannot be used', async () => {
  const rig = new Rig();
  expect(await rig.read('49x 51o 200-')).toBe('51 applied, 249 dead, 0 held');
  // Half of the last ones, never more.
  for (let i = 0; i < 50; i++) await rig.read('2x 2o');
  expect(rig.said).toEqual([]);
});

test('an acknowledgment makes dead letters of the run, and of that run alone', async () => {
  const rig = new Rig();
  await rig.read('100o 150x');
  expect(rig.said).toEqual(['held at 100']);
  rig.holds.acknowledge(rig.holds.open);
  expect(await rig.read()).toBe('100 applied, 150 dead, 0 held');
  expect(await rig.read('10x')).toBe('100 applied, 160 dead, 0 held');
  expect(await rig.read(`${TIME_WINDOW_RECORDS}o`)).toBe('200 applied, 160 dead, 0 held');
  expect(rig.said).toEqual(['held at 100', 'goes on']);
  expect(await rig.read('100x')).toBe('200 applied, 160 dead, 1 held');
});

test('records that come one by one hold once most of the last ones are too far ahead', async () => {
  const rig = new Rig();
  expect(await rig.read('100o 200x', 1)).toBe('100 applied, 50 dead, 1 held');
});
