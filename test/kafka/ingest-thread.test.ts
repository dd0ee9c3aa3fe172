/** The ingest thread and the serving thread beside each other: what is late, and what waits, on the one side. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EdgeShard } from '../../engine/shard.js';
import type { LogSourceStatus, PartitionKey } from '../../ingest/log-source.js';
import { Marks } from '../../ingest/record-marks.js';
import { IngestThread, type IngestThreadPorts } from '../../src/ingest-thread/ingest-thread.js';
import type { StoredPosition } from '../../src/ingest-thread/protocol.js';
import { monotonicUs, wallClockUs } from '../../src/system-clock.js';
import { SegmentTable } from '../segment-table.js';
import { type Broker, startBroker } from './broker/broker.js';
import { describeKafka } from './broker/kafka-suite.js';
import { numbered, Rig, uniqueName } from './rig.js';

/** How late each message is taken. */
const LATE_US = 60_000_000;

describeKafka('the ingest thread', () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-ingest-thread-'));
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

  function start(
    topic: string,
    reject: (error: unknown) => void,
    ports: Partial<IngestThreadPorts>,
    positions: readonly StoredPosition[] = [],
  ): IngestThread {
    const shard = new EdgeShard(new SegmentTable());
    const marks = new Marks([]);
    return new IngestThread(
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
        positions,
        estimatedUs: wallClockUs(),
      },
      {
        shardOf: () => shard as never,
        obtain: () => Promise.resolve(null),
        drop: () => Promise.resolve(null),
        marksOf: () => marks,
        onGap: reject,
        onStatus: () => undefined,
        onDeadLetters: () => undefined,
        logger: { info: () => undefined, warn: () => undefined, error: () => undefined },
        monotonicUs,
        processUs: monotonicUs,
        meter: { applied: () => undefined } as never,
        yieldTurn: () => Promise.resolve(),
        mayApply: () => Promise.resolve(),
        onFatal: reject,
        ...ports,
      },
    );
  }

  test('a status that is taken late tells as of when a partition was whole, not as of when it was taken', async () => {
    const topic = uniqueName('edge');
    await rig.createTopic(topic, 1);
    const lateUs = () => monotonicUs() + LATE_US;
    const startUs = monotonicUs();
    let thread: IngestThread | null = null;
    const status = await new Promise<LogSourceStatus>((resolve, reject) => {
      thread = start(topic, reject, {
        onStatus: (said) => {
          if (said.assigned.some(({ wholeAsOfMs }) => wholeAsOfMs !== null)) resolve(said);
        },
        monotonicUs: lateUs,
        processUs: lateUs,
      });
    });
    const [{ wholeAsOfMs }] = status.assigned;
    expect(wholeAsOfMs! * 1000).toBeGreaterThanOrEqual(startUs);
    expect(wholeAsOfMs! * 1000).toBeLessThanOrEqual(monotonicUs());
    await thread!.stop();
  });

  test('what another member has taken over goes while records of other partitions wait', async () => {
    const topic = uniqueName('edge');
    await rig.createTopic(topic, 1);
    await rig.produce(topic, 0, numbered('waits-', 10));
    const stored = { nextOffset: 3, identity: null, marks: [] };
    const key = { topic, partition: 7 };
    let open: () => void = () => undefined;
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const dropped: PartitionKey[] = [];
    let isLetGo = false;
    await new Promise<void>((resolve, reject) => {
      const thread = start(
        topic,
        reject,
        {
          mayApply: () => {
            if (!isLetGo) thread.letGo(key);
            isLetGo = true;
            return gate;
          },
          drop: async (of) => {
            dropped.push(of);
            // The first time it is to stay after all.
            if (dropped.length === 1) {
              thread.letGo(key);
              return stored;
            }
            open();
            thread.stop().then(resolve, reject);
            return null;
          },
        },
        [{ ...key, ...stored }],
      );
    });
    expect(dropped).toEqual([key, key]);
  });
});
