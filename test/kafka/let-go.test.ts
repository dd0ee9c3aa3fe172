/** What another member has taken over goes also while ingest is paused: it may be what there is no room for. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EdgeShard } from '../../engine/shard.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { Marks } from '../../ingest/record-marks.js';
import { IngestThread } from '../../src/ingest-thread/ingest-thread.js';
import { monotonicUs, wallClockUs } from '../../src/system-clock.js';
import { SegmentTable } from '../segment-table.js';
import { type Broker, startBroker } from './broker/broker.js';
import { describeKafka } from './broker/kafka-suite.js';
import { numbered, Rig, uniqueName } from './rig.js';

describeKafka('what is let go', () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-let-go-'));
  let broker: Broker;
  let rig: Rig;
  beforeAll(async () => {
    broker = await startBroker({ version: '4.1' });
    rig = new Rig(broker.brokers);
    await rig.connect();
  });
  afterAll(async () => {
    await rig?.close();
    await broker?.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  test('goes while records of other partitions wait', async () => {
    const topic = uniqueName('edge');
    await rig.createTopic(topic, 1);
    await rig.produce(topic, 0, numbered('waits-', 10));
    const shard = new EdgeShard(new SegmentTable());
    const marks = new Marks([]);
    const stored = { nextOffset: 3, identity: null, marks: [] };
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    let noteWaiting: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => {
      noteWaiting = resolve;
    });
    const dropped: PartitionKey[] = [];
    await new Promise<void>((resolve, reject) => {
      const thread = new IngestThread(
        {
          connection: { brokers: broker.brokers, clientId: 'logring', tls: null, sasl: null },
          groupId: topic,
          cluster: null,
          directory,
          edgeTopic: topic,
          relayTopic: '',
          deadLetterTopic: null,
          tierByProject: new Map(),
          defaultTier: 'FREE',
          urlFromPath: false,
          positions: [{ topic, partition: 7, ...stored }],
          estimatedUs: wallClockUs(),
        },
        {
          shardOf: () => shard as never,
          obtain: () => Promise.resolve(null),
          drop: async (key) => {
            dropped.push(key);
            // The first time it is to stay after all.
            if (dropped.length === 1) {
              thread.letGo(key);
              return stored;
            }
            open();
            thread.stop().then(resolve, reject);
            return null;
          },
          marksOf: () => marks,
          onGap: reject,
          onStatus: () => undefined,
          onDeadLetters: () => undefined,
          logger: { info: () => undefined, warn: () => undefined, error: () => undefined },
          monotonicUs,
          processUs: monotonicUs,
          meter: { applied: () => undefined } as never,
          yieldTurn: () => Promise.resolve(),
          mayApply: () => {
            noteWaiting();
            return gate;
          },
          onFatal: reject,
        },
      );
      waiting.then(() => thread.letGo({ topic, partition: 7 }), reject);
    });
    expect(dropped).toEqual([
      { topic, partition: 7 },
      { topic, partition: 7 },
    ]);
  });
});
