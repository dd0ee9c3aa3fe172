/** How the service is, for its console: read from the parts' own figures when it is asked for. */

import { partitionId } from '../../ingest/partition-id.js';
import type { PartitionFigures, ServiceStatus } from '../console/service-status.js';
import type { Readiness } from './readiness.js';
import type { SelfReportPorts } from './self-report.js';
import type { Shards } from './shards.js';
import { viewFigures } from './view-figures.js';

/** O(runs, parts and their blocks, slots): a handful of milliseconds at worst. */
export function serviceStatus(ports: SelfReportPorts, readiness: Readiness, nowUs: number): ServiceStatus {
  const { config, platform, shards, store, memory, cluster, sourceStatus } = ports;
  const results = ports.resultCache?.figures() ?? null;
  return {
    nowUs,
    version: platform.version,
    logSource: config.KAFKA_BROKERS === undefined ? 'embedded log' : 'Kafka',
    problems: readiness.reasons,
    notes: readiness.notes,
    members: cluster?.members(sourceStatus().assigned) ?? null,
    partitions: partitionsOf(ports),
    views: viewFigures(shards).map(({ kind, lines }) => ({
      name: kind.name,
      title: kind.title,
      label: kind.label,
      figures: kind.figures.map(({ name, title, unit }) => ({ name, title, unit })),
      lines,
    })),
    resultCache:
      results === null
        ? null
        : { entries: results.entries, bytes: results.bytes, hits: results.hits, misses: results.misses },
    blockCache: { bytes: store.cache.heldBytes, hits: store.cache.hits, misses: store.cache.misses },
    deadLetters: { counts: deadLetterCounts(shards), samples: ports.deadLetterSamples.all() },
    missing: missingCounts(shards),
    store: { usedBytes: store.usedBytes(), damagedFiles: store.damage.fileCount },
    gaps: ports.gaps.open,
    memory: { budgetBytes: memory.budgetBytes, parts: memory.readings() },
  };
}

/** Those that this process reads, has read, or should read, by topic and number. */
function partitionsOf({ shards, sourceStatus }: SelfReportPorts): PartitionFigures[] {
  const { assigned, unassigned, held } = sourceStatus();
  const sources = new Map(assigned.map((one) => [partitionId(one), one]));
  const heldIds = new Set(held.map(partitionId));
  const named = new Map<string, PartitionFigures>();
  for (const { topic, partition } of [...assigned, ...unassigned, ...shards.all()]) {
    const id = partitionId({ topic, partition });
    const source = sources.get(id);
    const shard = shards.known({ topic, partition });
    named.set(id, {
      topic,
      partition,
      isRead: source !== undefined,
      isHeld: heldIds.has(id),
      nextOffset: shard?.nextOffset ?? null,
      endOffset: source?.endOffset ?? null,
      received: shard?.received ?? 0,
    });
  }
  return [...named.values()].sort(
    (a, b) => (a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : 0) || a.partition - b.partition,
  );
}

function missingCounts(shards: Shards): ServiceStatus['missing'] {
  const counts = { url: 0, status: 0, time: 0 };
  for (const { shard } of shards.all()) {
    counts.url += shard.missing.url ?? 0;
    counts.status += shard.missing.status ?? 0;
    counts.time += shard.missing.time ?? 0;
  }
  return counts;
}

/** The most frequent first. */
function deadLetterCounts(shards: Shards): ServiceStatus['deadLetters']['counts'] {
  const counts = new Map<string, { topic: string; reason: string; count: number }>();
  for (const { topic, shard } of shards.all()) {
    for (const [reason, count] of shard.rejectedByReason) {
      const name = `${topic} ${reason}`;
      counts.set(name, { topic, reason, count: count + (counts.get(name)?.count ?? 0) });
    }
  }
  return [...counts.values()].sort((a, b) => b.count - a.count);
}
