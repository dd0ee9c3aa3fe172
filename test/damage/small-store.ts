/**
 * A small store that has one of everything, made the way the service makes it: runs of every kind, an hour
 * that is open, usage in memory and in files, statistics, dead letters, an import, and records of the
 * embedded log that are not in the state yet.
 */

import { createTraffic, type Traffic } from '../../bench/generator/traffic.js';
import { EdgeShard } from '../../engine/shard.js';
import { finished } from '../../engine/steps.js';
import { US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND } from '../../engine/time.js';
import type { StoredRecord } from '../../ingest/embedded-log/durable-log.js';
import { NOT_BEGUN } from '../../ingest/embedded-log/import-state.js';
import { Gaps } from '../../ingest/gaps.js';
import { Pipeline } from '../../ingest/pipeline.js';
import { Marks } from '../../ingest/record-marks.js';
import { Shards } from '../../src/service/shards.js';
import { encodeWhole, WHOLE_SEGMENT } from '../../src/service/whole-answers.js';
import { DeadLetterStore } from '../../src/store/dead-letter-store.js';
import { UNTOLD } from '../../src/store/disk/disk-room.js';
import { CHECKPOINT_LEAST_BYTES } from '../../src/store/limits.js';
import { LogTable } from '../../src/store/log-table.js';
import { Store } from '../../src/store/store.js';
import { SYSTEM_PARTS } from '../../src/store/store-back-ends.js';

export const EDGE_TOPIC = 'edge';
export const RELAY_TOPIC = 'relay';
/** When the store is looked at. */
export const NOW_US = Date.parse('2026-11-20T10:30:00Z') * 1000;
export const CACHE_BYTES = 1 << 20;

export interface SmallStoreSize {
  readonly entriesAnHour: number;
  /** In so many commits an hour's entries come. */
  readonly commitsAnHour: number;
  /** Each so manieth row fills a block, so that runs have several, and takes next to nothing on disk. */
  readonly fatEvery: number;
  /** Whether there is an alarm that nobody has acknowledged. */
  readonly hasGap: boolean;
  /** See CHECKPOINT_LEAST_BYTES: smaller, and there are checkpoints. */
  readonly checkpointLeastBytes: number;
}

export const SMALL: SmallStoreSize = {
  entriesAnHour: 12,
  commitsAnHour: 3,
  fatEvery: 3,
  hasGap: true,
  checkpointLeastBytes: 20_000,
};
/** Has no checkpoint yet. */
export const YOUNG: SmallStoreSize = { ...SMALL, checkpointLeastBytes: CHECKPOINT_LEAST_BYTES };
/** Has runs with a dictionary. */
export const LARGER: SmallStoreSize = {
  entriesAnHour: 20,
  commitsAnHour: 1,
  fatEvery: 1,
  hasGap: false,
  checkpointLeastBytes: CHECKPOINT_LEAST_BYTES,
};

/** Hours before NOW_US with traffic: two of a day that is over, and the last four. */
const BUSY_HOURS = [34, 33, 3, 2, 1, 0];
const TIERS = ['FREE', 'ENTERPRISE', 'PRO'];
const FAT_MESSAGE = 'x'.repeat(17_000);
const TRAFFIC = { seed: 7, projectCount: 3, maxFunctionCount: 2, tierOf: (index: number) => TIERS[index] };
export const PROJECTS = createTraffic(TRAFFIC).projects.map(({ ref }) => ref);
/** So small that what is unread stands in several chunks. */
const LOG_CHUNK_BYTES = 500;
const NEVER_TURNS = () => Promise.resolve();

export async function writeSmallStore(directory: string, size: SmallStoreSize): Promise<void> {
  const { checkpointLeastBytes } = size;
  const parts = { ...SYSTEM_PARTS, checkpointLeastBytes };
  const store = await Store.open(directory, CACHE_BYTES, UNTOLD, parts);
  const topics = { edgeTopic: EDGE_TOPIC, relayTopic: RELAY_TOPIC };
  const shards = new Shards(store, topics, { sealFromBytes: 1 });
  const log = new LogTable(store, LOG_CHUNK_BYTES);
  const pipeline = smallPipeline(store, shards);
  const traffic = createTraffic(TRAFFIC);
  for (const hoursAgo of BUSY_HOURS) {
    const startUs = NOW_US - hoursAgo * US_PER_HOUR;
    // Later than it is asked, and what has expired would be missing.
    const nowUs = Math.min(startUs + US_PER_MINUTE, NOW_US);
    const hours = [EDGE_TOPIC, RELAY_TOPIC].map((topic) => ({
      topic,
      records: hourOf(topic, traffic, startUs, size, log.endOffset(topic)),
    }));
    for (let part = 0; part < size.commitsAnHour; part++) {
      for (const { topic, records } of hours) {
        const some = partOf(records, part, size.commitsAnHour);
        await log.append(topic, some);
        const read = some.map((stored) => ({ ...stored, projectTier: null }));
        await pipeline.apply({ topic, partition: 0, records: read }, () => true);
      }
      if (part + 1 < size.commitsAnHour) await commit(store, shards, nowUs);
    }
    await settle(store, shards, nowUs);
    await forget(log, shards);
  }
  if (size.hasGap) await saveBeside(store);
  await store.checkpointed();
  for (const topic of [EDGE_TOPIC, RELAY_TOPIC]) await appendUnread(log, topic, traffic);
  // What a close breaks off of one is of no use to anybody, and so is what is damaged of it.
  await store.checkpointed();
  await store.close();
}

export function smallPipeline(store: Store, shards: Shards): Pipeline {
  return new Pipeline({
    edgeTopic: EDGE_TOPIC,
    relayTopic: RELAY_TOPIC,
    shardOf: (key) => shards.of(key),
    deadLetters: new DeadLetterStore(store, () => NOW_US / 1000),
    tiers: { tierByProject: new Map(), defaultTier: 'ENTERPRISE' },
    judgedBy: 'arrival',
    timeHolds: null,
    nowUs: () => NOW_US,
    yieldTurn: NEVER_TURNS,
    onGap: (gap) => {
      throw new Error(`the embedded log has a gap: ${gap.reason}`);
    },
  });
}

async function commit(store: Store, shards: Shards, nowUs: number): Promise<void> {
  await store.commit((writerOf) => {
    for (const { topic, partition, shard } of shards.all()) shard.save(writerOf(`${topic}/${partition}`));
  }, nowUs);
}

function partOf<T>(list: readonly T[], part: number, count: number): T[] {
  const at = (end: number): number => Math.floor((list.length * end) / count);
  return list.slice(at(part), at(part + 1));
}

/** Seals, commits and compacts as the service does by and by, until nothing is due. */
export async function settle(store: Store, shards: Shards, nowUs: number): Promise<void> {
  shards.expire(nowUs - US_PER_HOUR);
  await commit(store, shards, nowUs);
  shards.expire(nowUs);
  await commit(store, shards, nowUs);
  for (const { topic, partition, shard } of shards.all()) {
    if (!(shard instanceof EdgeShard)) continue;
    for (;;) {
      const plan = shard.rows.planCompaction(nowUs);
      if (plan === null) break;
      finished(shard.rows.finishCompaction(plan, await store.compact(`${topic}/${partition}`, plan)));
      await commit(store, shards, nowUs);
    }
    for (let plan = shard.usage.planSeal(); plan !== null; plan = shard.usage.planSeal()) {
      shard.usage.finishSeal(plan, await store.sealPart(`${topic}/${partition}`, plan));
      await commit(store, shards, nowUs);
    }
  }
}

async function forget(log: LogTable, shards: Shards): Promise<void> {
  for (const { topic, shard } of shards.all()) await log.truncateBefore(topic, shard.nextOffset ?? 0);
}

/** An hour's records, and one that can't be used. */
function hourOf(
  topic: string,
  traffic: Traffic,
  startUs: number,
  { entriesAnHour, fatEvery }: SmallStoreSize,
  firstOffset: number,
): StoredRecord[] {
  const stepUs = Math.floor((20 * US_PER_MINUTE) / entriesAnHour);
  const values = Array.from({ length: entriesAnHour }, (_, i) => {
    const timestampUs = startUs - 20 * US_PER_MINUTE + i * stepUs;
    const whole = topic === EDGE_TOPIC ? traffic.edge(timestampUs) : traffic.relay(timestampUs);
    return leastOf(whole, i % fatEvery === fatEvery - 1 ? FAT_MESSAGE : null);
  });
  values.push('{"timestamp":"when"}');
  return values.map((text, i) => record(firstOffset + i, startUs, text));
}

function record(offset: number, timestampUs: number, text: string): StoredRecord {
  return { offset, timestampMs: timestampUs / 1000, value: Buffer.from(text) };
}

/** What the answers need of an entry. */
function leastOf(text: string, message: string | null): string {
  const { id, timestamp, project, project_tier, metadata } = JSON.parse(text);
  const { request, response, project_ref, function_id, execution_time_ms } = metadata;
  return JSON.stringify({
    id,
    timestamp,
    event_message: message ?? id.slice(0, 8),
    project,
    project_tier,
    metadata: {
      project_ref,
      function_id,
      execution_time_ms,
      request: { url: request.url },
      response: { status_code: response.status_code },
    },
  });
}

async function saveBeside(store: Store): Promise<void> {
  const key = { topic: EDGE_TOPIC, partition: 0 };
  const gaps = new Gaps();
  gaps.add({ ...key, reason: 'log-truncated', expectedOffset: 2, resumedOffset: 1 });
  const marks = new Marks();
  for (const offset of [0, 1]) marks.note({ offset, timestampMs: 1, checksum: 7 });
  await store.commit((writerOf) => {
    gaps.save(key, writerOf(`${EDGE_TOPIC}/0`));
    marks.save(writerOf(`${EDGE_TOPIC}/0`));
    writerOf(`${EDGE_TOPIC}/0`).put(WHOLE_SEGMENT, encodeWhole(NOW_US, 1));
  });
}

/**
 * Durable in the log when the process was killed, and not applied; the first of them is a part of an import.
 */
async function appendUnread(log: LogTable, topic: string, traffic: Traffic): Promise<void> {
  const records = [1, 2].map((i) => {
    const timestampUs = NOW_US - i * US_PER_SECOND;
    const text = topic === EDGE_TOPIC ? traffic.edge(timestampUs) : traffic.relay(timestampUs);
    return record(log.endOffset(topic) + i - 1, timestampUs, leastOf(text, null));
  });
  const imported = { ...NOT_BEGUN, accepted: 1, nextByte: 77, atMs: 1 };
  const rejected = [{ index: 1, reason: 'missing-project' as const }];
  const post = { postedMs: NOW_US / 1000, bodyDigest: 'b'.repeat(64), accepted: 1, rejected };
  await log.append(topic, records, {
    imports: new Map([['first-line', imported]]),
    posts: new Map([['a'.repeat(64), post]]),
  });
}
