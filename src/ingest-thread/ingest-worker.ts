/**
 * The ingest thread: consumes Kafka, decodes, makes dead letters durable, and hands packs to the serving
 * thread.
 */

import { setImmediate as yieldTurn } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../engine/assert.js';
import { BufferPool } from '../../ingest/buffer-pool.js';
import { sampledSink } from '../../ingest/dead-letter-samples.js';
import { WRITTEN_ELSEWHERE } from '../../ingest/dead-letters.js';
import { Holds } from '../../ingest/holds.js';
import type { KafkaClock } from '../../ingest/kafka/clock.js';
import type { KafkaLogger } from '../../ingest/kafka/cluster/client-logger.js';
import { DeadLettersStoppedError, KafkaDeadLetters } from '../../ingest/kafka/dead-letter-topic.js';
import { Absences } from '../../ingest/kafka/group/absences.js';
import type { HeldPosition } from '../../ingest/kafka/group/member-data.js';
import { KafkaLogSource } from '../../ingest/kafka/kafka-log-source.js';
import type { LogSink, PartitionKey } from '../../ingest/log-source.js';
import { Pipeline } from '../../ingest/pipeline.js';
import { TimeHolds } from '../../ingest/time-holds.js';
import { monotonicUs, wallClockUs } from '../system-clock.js';
import { giveWayToServing } from '../thread-priority.js';
import './heap-ballast.js';
import { partitionId } from '../../ingest/partition-id.js';
import { IN_FLIGHT_BYTES, INGEST_THREAD_NICENESS, STATUS_EVERY_MS } from './limits.js';
import { readMember, writeMember } from './member-file.js';
import { PackShard } from './pack-shard.js';
import {
  type FromIngest,
  type IngestOrder,
  type LogLevel,
  NOTHING_STORED,
  type StoredState,
  type ToIngest,
} from './protocol.js';

giveWayToServing(INGEST_THREAD_NICENESS);

const order = workerData as IngestOrder;
const port = parentPort!;

function say(message: FromIngest): void {
  port.postMessage(message);
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

const logger: KafkaLogger = {
  info: (fields, message) => log('info', fields, message),
  warn: (fields, message) => log('warn', fields, message),
  error: (fields, message) => log('error', fields, message),
};

function log(level: LogLevel, fields: object, message: string): void {
  say({ say: 'log', level, fields: { ...fields }, message });
}

const clock: KafkaClock = {
  nowMs: () => monotonicUs() / 1000,
  after: (delayMs, task) => {
    const timer = setTimeout(task, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Packs on their way: what to do when they are applied. */
const inFlight = new Map<number, () => void>();
let lastPackId = 0;
let inFlightBytes = 0;
/** What to do with the next acknowledgement. */
const waiting: (() => void)[] = [];

const buffers = new BufferPool();
const shards = new Map<string, PackShard>();
/** Partitions that others were asked for, by partitionId: what to do when the answer is there. */
const obtaining = new Map<string, () => void>();

function shardOf(key: PartitionKey): PackShard {
  const known = shards.get(partitionId(key));
  if (known !== undefined) return known;
  const stored = order.positions.find(
    ({ topic, partition }) => topic === key.topic && partition === key.partition,
  );
  return addShard(key, stored ?? NOTHING_STORED);
}

function addShard(key: PartitionKey, stored: StoredState): PackShard {
  const shard = new PackShard(
    { topic: key.topic, partition: key.partition },
    key.topic === order.edgeTopic ? 'edge' : 'relay',
    stored,
    {
      buffers,
      send: (of, pack, lastRecordMs) =>
        new Promise((resolve) => {
          const packId = ++lastPackId;
          const { byteLength } = pack.buffer;
          inFlightBytes += byteLength;
          inFlight.set(packId, () => {
            inFlightBytes -= byteLength;
            resolve();
          });
          const message = { say: 'records', packId, key: of, pack, lastRecordMs } satisfies FromIngest;
          port.postMessage(message, [pack.buffer]);
        }),
      setIdentity: (of, identity) => say({ say: 'identity', key: of, identity }),
    },
  );
  shards.set(partitionId(key), shard);
  return shard;
}

/** What this process has of the log, and what it reads although nothing came yet; what it was assigned last first. */
function heldPositions(): HeldPosition[] {
  const positions = new Map<string, HeldPosition>();
  const note = (position: HeldPosition) => {
    const isWhole = positions.get(partitionId(position))?.isWhole ?? position.isWhole;
    positions.set(partitionId(position), { ...position, isWhole });
  };
  for (const assigned of source.assignedLast()) note({ ...assigned, nextOffset: 0 });
  for (const { topic, partition, nextOffset } of order.positions)
    if (nextOffset !== null && !shards.has(partitionId({ topic, partition })))
      note({ topic, partition, nextOffset, isWhole: false });
  for (const { key, nextOffset } of shards.values())
    if (nextOffset !== null) note({ ...key, nextOffset, isWhole: false });
  return [...positions.values()];
}

const deadLetters =
  order.deadLetterTopic === null
    ? null
    : new KafkaDeadLetters({ connection: order.connection, topic: order.deadLetterTopic, logger, clock });

const holds = new Holds({
  nowMs: clock.nowMs,
  onHeld: (held) => logger.error(held, 'kafka: a partition holds: none of its records is applied'),
  onReleased: ({ topic, partition }) => logger.info({ topic, partition }, 'kafka: a partition goes on'),
});

/** As last told; since then it moves on by a clock that never steps. */
let estimated = { us: order.estimatedUs, atUs: monotonicUs() };
const estimatedUs = () => estimated.us + monotonicUs() - estimated.atUs;

const pipeline = new Pipeline({
  edgeTopic: order.edgeTopic,
  relayTopic: order.relayTopic,
  shardOf,
  deadLetters: sampledSink(deadLetters ?? WRITTEN_ELSEWHERE, (samples) =>
    say({ say: 'dead-letters', samples }),
  ),
  tiers: { tierByProject: order.tierByProject, defaultTier: order.defaultTier },
  urlFromPath: order.urlFromPath,
  judgedBy: 'clock',
  // So that a wrong clock makes no dead letters: too old is measured from the earlier time, too far ahead
  // from the later.
  nowUs: () => Math.min(wallClockUs(), estimatedUs()),
  timeHolds: new TimeHolds(holds, () => Math.max(wallClockUs(), estimatedUs())),
  yieldTurn: async () => {
    await yieldTurn();
    // What was sent and is not applied yet takes memory on both sides.
    while (inFlightBytes > IN_FLIGHT_BYTES) await new Promise<void>((resolve) => waiting.push(resolve));
  },
  onGap: (gap) => say({ say: 'gap', gap }),
});

const sink: LogSink = {
  nextOffset: (key) => pipeline.nextOffset(key),
  identity: (key) => pipeline.identity(key),
  marks: (key) => pipeline.marks(key),
  setIdentity: (key, identity) => pipeline.setIdentity(key, identity),
  reportGap: (gap) => pipeline.reportGap(gap),
  apply: async (batch, isCurrent) => {
    await pipeline.apply(batch, isCurrent);
    await shardOf(batch).flush();
  },
  ...(order.cluster === null
    ? {}
    : { obtain, isObtaining: (key: PartitionKey) => obtaining.has(partitionId(key)) }),
};

/** One question at a time for each partition. */
function obtain({ topic, partition }: PartitionKey): Promise<void> {
  const key = { topic, partition };
  return new Promise((resolve) => {
    const before = obtaining.get(partitionId(key));
    obtaining.set(partitionId(key), () => {
      before?.();
      resolve();
    });
    if (before === undefined) say({ say: 'obtain', key });
  });
}

const source = new KafkaLogSource({
  connection: order.connection,
  groupId: order.groupId,
  cluster:
    order.cluster === null
      ? null
      : {
          ...order.cluster,
          held: heldPositions,
          absences: new Absences(clock.nowMs, order.cluster.moveAfterMs),
        },
  topics: [order.edgeTopic, order.relayTopic].filter((topic) => topic !== ''),
  holds,
  lastMemberId: readMember(order.directory, order.groupId),
  onJoined: (memberId) => {
    try {
      writeMember(order.directory, order.groupId, memberId);
    } catch (error) {
      logger.warn(
        { error: String(error) },
        'kafka: the member id could not be written; after a kill the next process waits for the session time-out',
      );
    }
  },
  logger,
  clock,
  onFatal: (error) => {
    if (!(error instanceof DeadLettersStoppedError)) say({ say: 'fatal', error });
  },
});

let lastStatus = '';
function sayStatus(): void {
  const status = source.status();
  const problem = status.problem ?? deadLetters?.problem ?? null;
  const { unpackedBytes } = source;
  const text = JSON.stringify({ ...status, problem, unpackedBytes });
  if (text === lastStatus) return;
  lastStatus = text;
  say({ say: 'status', status: { ...status, problem }, unpackedBytes });
}
const statusTimer = setInterval(sayStatus, STATUS_EVERY_MS);

async function stop(): Promise<void> {
  await source.stop();
  await deadLetters?.stop();
  clearInterval(statusTimer);
  say({ say: 'stopped' });
}

function take(message: ToIngest): void {
  switch (message.tell) {
    case 'applied': {
      const resolve = inFlight.get(message.packId);
      assert(resolve !== undefined, 'a pack was applied that nobody sent');
      inFlight.delete(message.packId);
      buffers.give(message.buffer);
      resolve();
      for (const goOn of waiting.splice(0)) goOn();
      return;
    }
    case 'committed':
      estimated = { us: message.estimatedUs, atUs: monotonicUs() };
      source.committed(message.positions).catch((error: unknown) => fail(error));
      return;
    case 'hold':
      source.hold(message.isHeld);
      return;
    case 'let-go': {
      const { key } = message;
      const isRead = source
        .assignedLast()
        .some(({ topic, partition }) => topic === key.topic && partition === key.partition);
      if (isRead || obtaining.has(partitionId(key))) return;
      addShard(key, NOTHING_STORED);
      say({ say: 'let-go', key });
      return;
    }
    case 'kept':
      // If it has been asked for since, the answer has its state, too.
      if (!obtaining.has(partitionId(message.key))) addShard(message.key, message.state);
      return;
    case 'obtained': {
      const { key, state } = message;
      if (state !== null) addShard(key, state);
      obtaining.get(partitionId(key))?.();
      obtaining.delete(partitionId(key));
      return;
    }
    case 'acknowledge-holds':
      holds.acknowledge(message.held);
      return;
    case 'stop':
      stop().catch((error: unknown) => fail(error));
  }
}

function fail(error: unknown): void {
  say({ say: 'fatal', error: asError(error) });
}

port.on('message', take);
source.start(sink).then(sayStatus, fail);
