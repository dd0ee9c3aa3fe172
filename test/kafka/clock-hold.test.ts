/** Kafka's records and a clock that is behind, from a real broker through the pipeline into shards. */

import { afterEach, expect, test } from 'vitest';
import { EdgeShard } from '../../engine/shard.js';
import { Holds } from '../../ingest/holds.js';
import { KafkaLogSource } from '../../ingest/kafka/kafka-log-source.js';
import { Pipeline } from '../../ingest/pipeline.js';
import { TimeHolds } from '../../ingest/time-holds.js';
import { eventually } from '../eventually.js';
import { SegmentTable } from '../segment-table.js';
import { describeKafka } from './broker/kafka-suite.js';
import { CLOCK, connectionTo, LogLines, QUICK, rigForEachTest, uniqueName } from './rig.js';

const HOUR_MS = 3_600_000;

describeKafka('Kafka with a wrong clock', () => {
  const suite = rigForEachTest();
  let source: KafkaLogSource;

  afterEach(async () => {
    await source?.stop();
  });

  test('two hours behind: 200 of 200 good records wait, other partitions go on, and the right clock applies them', async () => {
    const topic = uniqueName('clock');
    await suite.rig.createTopic(topic, 2);
    const shards = [new EdgeShard(new SegmentTable()), new EdgeShard(new SegmentTable())];
    let clockMs = Date.now() - 2 * HOUR_MS;
    let letterCount = 0;
    const log = new LogLines();
    // The retry is a matter of this time: it runs a hundred times as fast.
    const holds = new Holds({
      nowMs: () => 100 * CLOCK.nowMs(),
      onHeld: (held) => log.error(held, 'held'),
      onReleased: (held) => log.info(held, 'released'),
    });
    const pipeline = new Pipeline({
      edgeTopic: topic,
      relayTopic: 'none',
      shardOf: ({ partition }) => shards[partition],
      deadLetters: {
        write: async (letters) => {
          letterCount += letters.length;
        },
      },
      tiers: { tierByProject: new Map(), defaultTier: 'ENTERPRISE' },
      judgedBy: 'clock',
      timeHolds: new TimeHolds(holds, () => clockMs * 1000),
      nowUs: () => clockMs * 1000,
      yieldTurn: () => new Promise((resolve) => setImmediate(resolve)),
      onGap: () => undefined,
    });
    const fatal: Error[] = [];
    source = new KafkaLogSource({
      connection: connectionTo(suite.broker.brokers),
      groupId: topic,
      cluster: null,
      topics: [topic],
      holds,
      lastMemberId: null,
      onJoined: () => undefined,
      logger: log,
      clock: CLOCK,
      timing: QUICK,
      onFatal: (error) => fatal.push(error),
    });
    const entry = (timestampMs: number) => JSON.stringify({ project: 'p', timestamp: timestampMs * 1000 });
    await suite.rig.produce(topic, 0, new Array<string>(200).fill(entry(Date.now())));
    await suite.rig.produce(topic, 1, new Array<string>(200).fill(entry(clockMs)));
    await source.start(pipeline);
    await eventually(() => shards[1].applied === 200 && source.status().held.length === 1);
    expect(source.status().held).toMatchObject([{ topic, partition: 0, offset: 0, reason: 'clock' }]);
    await suite.rig.produce(topic, 1, [entry(clockMs)]);
    await eventually(() => shards[1].applied === 201);
    expect([shards[0].received, shards[0].nextOffset, letterCount]).toEqual([0, null, 0]);
    clockMs = Date.now();
    await eventually(() => shards[0].applied === 200);
    expect([source.status().held, letterCount, fatal]).toEqual([[], 0, []]);
    expect([log.count('held'), log.count('released')]).toEqual([1, 1]);
  });
});
