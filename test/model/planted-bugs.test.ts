/**
 * That the histories can fail: bugs planted around the engine, at least one for each view, must each be
 * found.
 */

import { expect, test } from 'vitest';
import { PAGE_FILTER_BYTES } from '../../engine/limits.js';
import type { CompactionPlan } from '../../engine/rows/compaction.js';
import { SegmentTable } from '../segment-table.js';
import type { SystemStatsRow } from './answers.js';
import { type MakeSystem, seedReport } from './campaign.js';
import { EngineSystem } from './engine-system.js';
import type { CountsQuestion, LogsQuestion, StatsQuestion } from './model.js';
import type { Delivery } from './replay.js';

const HOUR_US = 3_600_000_000;
/** As many as the suite has histories. */
const MOST_SEEDS = 40;

/**
 * A bug is found when some history disagrees, and the report says which and how to run it again. Any seeds will do: where
 * the first ones don't find it the search begins nearer to one that does.
 */
function isFound(bug: string, makeSystem: MakeSystem, firstSeed = 1): void {
  test(`found: ${bug}`, async () => {
    for (let seed = firstSeed; seed < firstSeed + MOST_SEEDS; seed += 1) {
      const report = await seedReport(seed, makeSystem);
      if (report === null) continue;
      expect(report).toContain(`LOGRING_TEST_SEED=${seed}`);
      // Cut down far enough to be read.
      expect(Number(/cut down to (\d+) of/.exec(report)?.[1])).toBeLessThan(60);
      return;
    }
    throw new Error(`not found in ${MOST_SEEDS} histories`);
  });
}

class InclusiveStart extends EngineSystem {
  override logs(question: LogsQuestion, nowUs: number): Uint8Array[] {
    const { afterUs } = question;
    return super.logs({ ...question, afterUs: afterUs === null ? null : afterUs - 1 }, nowUs);
  }
}
isFound('logs.all with >= instead of > at the start', (history) => new InclusiveStart(history));

class LaterRetention extends EngineSystem {
  override logs(question: LogsQuestion, nowUs: number): Uint8Array[] {
    return question.untilUs === null ? super.logs(question, nowUs) : super.logs(question, nowUs + 1);
  }
}
isFound(
  'logs.all with > instead of >= at the end of retention',
  (history) => new LaterRetention(history),
  27,
);

class TiesByArrival extends EngineSystem {
  override logs(question: LogsQuestion, nowUs: number): Uint8Array[] {
    const timeOf = (row: Uint8Array): number => JSON.parse(Buffer.from(row).toString()).timestamp;
    return super
      .logs(question, nowUs)
      .reverse()
      .sort((a, b) => timeOf(b) - timeOf(a));
  }
}
isFound('logs.all with rows of one timestamp in another order', (history) => new TiesByArrival(history));

class NoFirstBucket extends EngineSystem {
  override stats(question: StatsQuestion, nowUs: number): readonly SystemStatsRow[] {
    const backUs = { '5min': HOUR_US / 12, '15min': HOUR_US / 4, '1hr': HOUR_US, '7day': 168 * HOUR_US };
    const startUs = nowUs - (backUs[question.interval as '1hr'] ?? 24 * HOUR_US);
    return super.stats(question, nowUs).filter(({ bucketStartUs }) => bucketStartUs >= startUs);
  }
}
isFound('invocation-stats without the partial first bucket', (history) => new NoFirstBucket(history));

class RankOffByOne extends EngineSystem {
  override stats(question: StatsQuestion, nowUs: number): readonly SystemStatsRow[] {
    // sorted[floor(q·N)] instead of sorted[ceil(q·N) − 1] first differs at 20 values, where it gives the
    // largest.
    return super.stats(question, nowUs).map((row) => (row.count === 20 ? { ...row, p95Ms: row.maxMs } : row));
  }
}
isFound('invocation-stats with a rank one too high', (history) => new RankOffByOne(history), 16);

class RoughMean extends EngineSystem {
  override stats(question: StatsQuestion, nowUs: number): readonly SystemStatsRow[] {
    return super
      .stats(question, nowUs)
      .map((row) => (row.meanMs === null ? row : { ...row, meanMs: row.meanMs * (1 + 2 ** -52) }));
  }
}
isFound('invocation-stats with a mean that is one bit off', (history) => new RoughMean(history));

class LateWindow extends EngineSystem {
  override beginCounts(question: CountsQuestion, nowUs: number) {
    return super.beginCounts(question, nowUs + 1);
  }
}
isFound('api-counts with a window a microsecond late', (history) => new LateWindow(history));

class EagerExpiry extends EngineSystem {
  override expire(nowUs: number): void {
    super.expire(nowUs + HOUR_US);
  }
}
isFound('partitions that expire an hour early', (history) => new EagerExpiry(history));

class DoubleDelivery extends EngineSystem {
  /** The last record of each delivery comes again under a new offset. */
  override async deliver(delivery: Delivery): Promise<void> {
    await super.deliver(delivery);
    const { topic, partition, records } = delivery;
    const offset = this.nextOffset(topic, partition);
    const again = records.slice(-1).map((record) => ({ ...record, offset }));
    await super.deliver({ ...delivery, records: again, nextOffset: offset + 1 });
  }
}
isFound('records that are applied a second time', (history) => new DoubleDelivery(history));

class EarlyUnlink extends EngineSystem {
  protected override compacted(plan: CompactionPlan, table: SegmentTable): void {
    for (const { file } of plan.inputs) table.remove(file);
  }
}
isFound('a compaction that removes its inputs before a commit', (history) => new EarlyUnlink(history), 39);

/** A table on which a compaction loses what a crash would find torn: the last block before the directory. */
class ShortCompaction extends EngineSystem {
  protected override compacted(plan: CompactionPlan, table: SegmentTable): void {
    const blockCount = table.blockCount(plan.output);
    if (blockCount > 2) table.replaceBlock(plan.output, blockCount - 2, table.block(plan.output, 0));
  }
}
isFound(
  'a compaction with a block twice and another not at all',
  (history) => new ShortCompaction(history),
  31,
);

/** A table that loses what the filters of sealed parts say. */
class BlankFilters extends SegmentTable {
  override append(file: string, bytes: Uint8Array): void {
    const isFilters = file.startsWith('usage-') && bytes.length % PAGE_FILTER_BYTES === 0;
    super.append(file, isFilters ? new Uint8Array(bytes.length) : bytes);
  }
}
isFound(
  'filters that rule out pages with what is asked for',
  (history) => new EngineSystem(history, () => new BlankFilters()),
);

/** A table that keeps the segments whose names start with a prefix one save behind. */
class ForgetfulTable extends SegmentTable {
  readonly #prefix: string;
  readonly #seen = new Set<string>();

  constructor(prefix: string) {
    super();
    this.#prefix = prefix;
  }

  override put(name: string, bytes: Uint8Array): void {
    const isLost = name.startsWith(this.#prefix) && this.#seen.has(name);
    this.#seen.add(name);
    if (!isLost) super.put(name, bytes);
  }
}

for (const prefix of ['rows/', 'usage/', 'stats/']) {
  isFound(
    `segments of ${prefix} that are saved once and not again before a crash`,
    (history) => new EngineSystem(history, () => new ForgetfulTable(prefix)),
  );
}
