/** A serving thread that is busy gets the statuses of its ingest thread late: answers are no newer because of that. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EdgeShard } from '../../engine/shard.js';
import type { LogSourceStatus } from '../../ingest/log-source.js';
import { Marks } from '../../ingest/record-marks.js';
import { IngestThread } from '../../src/ingest-thread/ingest-thread.js';
import { monotonicUs, wallClockUs } from '../../src/system-clock.js';
import { SegmentTable } from '../segment-table.js';
import { type Broker, startBroker } from './broker/broker.js';
import { describeKafka } from './broker/kafka-suite.js';
import { Rig, uniqueName } from './rig.js';

/** How late each message is taken. */
const LATE_US = 60_000_000;

describeKafka('a status that comes late', () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-status-'));
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

  test('tells as of when a partition was whole, not as of when it was taken', async () => {
    const topic = uniqueName('edge');
    await rig.createTopic(topic, 1);
    const shard = new EdgeShard(new SegmentTable());
    const marks = new Marks([]);
    const lateUs = () => monotonicUs() + LATE_US;
    const startUs = monotonicUs();
    let thread: IngestThread | null = null;
    const status = await new Promise<LogSourceStatus>((resolve, reject) => {
      thread = new IngestThread(
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
          positions: [],
          estimatedUs: wallClockUs(),
        },
        {
          shardOf: () => shard as never,
          obtain: () => Promise.resolve(null),
          drop: () => Promise.resolve(null),
          marksOf: () => marks,
          onGap: reject,
          onStatus: (said) => {
            if (said.assigned.some(({ wholeAsOfMs }) => wholeAsOfMs !== null)) resolve(said);
          },
          onDeadLetters: () => undefined,
          logger: {
            info: () => undefined,
            warn: () => undefined,
            error: () => undefined,
          },
          monotonicUs: lateUs,
          processUs: lateUs,
          meter: { applied: () => undefined } as never,
          yieldTurn: () => Promise.resolve(),
          mayApply: () => Promise.resolve(),
          onFatal: reject,
        },
      );
    });
    const [{ wholeAsOfMs }] = status.assigned;
    expect(wholeAsOfMs! * 1000).toBeGreaterThanOrEqual(startUs);
    expect(wholeAsOfMs! * 1000).toBeLessThanOrEqual(monotonicUs());
    await thread!.stop();
  });
});
