/**
 * A log that is not the one that was read, though topic, id and offsets are the same: it is noticed, and
 * read.
 */

import { cp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, expect, test } from 'vitest';
import { MARK_SPREAD } from '../../ingest/limits.js';
import { eventually } from '../eventually.js';
import { describeKafka } from './broker/kafka-suite.js';
import type { RecordingSink } from './recording-sink.js';
import { type Member, numbered, rigForEachTest, uniqueName } from './rig.js';

const BACKED_UP = 600;
const READ = 1000;
const WRITTEN_SINCE = 700;

describeKafka('a topic restored from a backup, that has grown past our offset', () => {
  const suite = rigForEachTest();
  let topic: string;

  beforeEach(async (context) => {
    if (suite.broker.restartWith === null)
      return context.skip('the logs of these brokers are not ours to touch');
    topic = uniqueName('restored');
    await suite.rig.createTopic(topic, 1);
  });

  const logOf = (directory: string) => join(directory, `${topic}-0`);
  const backupOf = (directory: string) => join(directory, '..', `backup-${topic}`);

  const backUp = () =>
    suite.broker.restartWith!((directory) => cp(logOf(directory), backupOf(directory), { recursive: true }));

  /** Reads a log to its end. */
  async function readAll(beforeTheRest: () => Promise<void> = () => Promise.resolve()): Promise<Member> {
    await suite.rig.produce(topic, 0, numbered('kept', BACKED_UP));
    await beforeTheRest();
    for (let half = 0; half < 2; half++)
      await suite.rig.produce(topic, 0, numbered(`lost${half}.`, (READ - BACKED_UP) / 2));
    const member = await suite.rig.start({ topics: [topic], groupId: topic });
    await eventually(() => member.sink.nextOffset({ topic, partition: 0 }) === READ);
    return member;
  }

  async function restore(): Promise<void> {
    await suite.broker.restartWith!(async (directory) => {
      await rm(logOf(directory), { recursive: true });
      await cp(backupOf(directory), logOf(directory), { recursive: true });
    });
    await suite.rig.produce(topic, 0, numbered('new', WRITTEN_SINCE));
  }

  async function newIsRead(sink: RecordingSink): Promise<void> {
    const written = () => sink.values(topic).filter((value) => value.startsWith('new'));
    await eventually(
      () => written().length >= WRITTEN_SINCE,
      () => [written().length, sink.gaps],
      40_000,
    );
    expect(written()).toEqual(numbered('new', WRITTEN_SINCE));
    expect(sink.gaps).toMatchObject([{ topic, partition: 0, reason: 'log-diverged', expectedOffset: READ }]);
    const [{ resumedOffset }] = sink.gaps;
    expect(resumedOffset).toBeLessThanOrEqual(BACKED_UP);
    // Of what was read before, no more comes again than the marks are apart; the test's sink marks every
    // record.
    expect(READ - resumedOffset).toBeLessThanOrEqual(MARK_SPREAD * (READ - BACKED_UP + 1));
  }

  test('while we were away', async () => {
    const { source, sink } = await readAll(backUp);
    await source.stop();
    await restore();
    const again = await suite.rig.start({ topics: [topic], groupId: topic, sink });
    await newIsRead(sink);
    expect(again.log.count('does not connect')).toBe(1);
  });

  test('while we read', async () => {
    const { sink } = await readAll(backUp);
    await restore();
    await newIsRead(sink);
  });

  test('a restart with the same log is no gap', async () => {
    const { sink, fatal } = await readAll();
    await suite.broker.restartWith!(() => Promise.resolve());
    await suite.rig.produce(topic, 0, numbered('new', WRITTEN_SINCE));
    await eventually(() => sink.values(topic).length === READ + WRITTEN_SINCE);
    expect([sink.gaps, sink.overlaps, fatal]).toEqual([[], 0, []]);
  });

  test('records at marks that have expired, or whose offsets hold none, say nothing', async () => {
    const { source, sink } = await readAll();
    await source.stop();
    await suite.rig.deleteBefore(topic, 0, READ);
    const producer = suite.rig.transactional(topic);
    await producer.connect();
    const transaction = await producer.transaction();
    await transaction.send({ topic, messages: [{ partition: 0, value: 'in a transaction' }] });
    await transaction.commit();
    // The marker is written after the commit has been answered.
    await eventually(
      async () => (await suite.rig.admin.fetchTopicOffsets(topic))[0].offset === String(READ + 2),
    );
    await producer.disconnect();
    // Its last record was where the transaction's marker is now: as if compaction had taken it.
    const markerAt = READ + 1;
    sink.marksById.get(`${topic}/0`)!.note({ offset: markerAt, timestampMs: 1, checksum: 1 });
    sink.nextOffsets.set(`${topic}/0`, markerAt + 1);
    await suite.rig.start({ topics: [topic], groupId: topic, sink });
    await suite.rig.produce(topic, 0, ['after']);
    await eventually(() => sink.values(topic).at(-1) === 'after');
    expect(sink.gaps).toEqual([]);
  });
});
