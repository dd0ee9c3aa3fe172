/** State moves between members: from the other zone to a new disk, and within a zone to a new member. */

import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { eventually, pause } from '../eventually.js';
import { type Broker, startBroker } from '../kafka/broker/broker.js';
import { describeKafka } from '../kafka/broker/kafka-suite.js';
import { Rig, uniqueName } from '../kafka/rig.js';
import { Members } from './members.js';
import { expectSame, produceOdd, QUESTIONS, settingsOf, startAlone } from './odd-topics.js';

const PARTITIONS = 3;
const SHARDS = 2 * PARTITIONS;
/** Of a log, for Kafka. */
const THE_END = -1;
const RECORDS = { partitions: PARTITIONS, count: 2_000, isKeyed: false };

describeKafka('state moves', () => {
  let broker: Broker;
  let rig: Rig;
  let topic: string;
  let members: Members;
  beforeAll(async () => {
    broker = await startBroker({ version: '4.1' });
    rig = new Rig(broker.brokers, { idempotent: true });
    await rig.connect();
  });
  beforeEach(async () => {
    topic = uniqueName('edge');
    for (const name of [topic, `${topic}-relay`]) await rig.createTopic(name, PARTITIONS);
    await produceOdd(rig, topic, { ...RECORDS, seed: 1 });
    members = new Members({ ...settingsOf(topic, broker), LOGRING_MOVE_AFTER_SECONDS: '1' });
  });
  afterEach(() => members.stop());
  afterAll(async () => {
    await rig?.close();
    await broker?.stop();
  });

  /** From now on there is nothing to read again. */
  async function emptyLogs(): Promise<void> {
    for (const name of [topic, `${topic}-relay`])
      for (let partition = 0; partition < PARTITIONS; partition++)
        await rig.deleteBefore(name, partition, THE_END);
  }

  async function expectAllSame(...names: readonly string[]): Promise<void> {
    for (const question of QUESTIONS) for (const name of names) await expectSame(members, name, question);
  }

  const shardsOf = (name: string) => readdirSync(join(members.directoryOf(name), 'shards')).length;

  test('a lost disk is copied from the other zone, and read on', async () => {
    const start = (zone: string) => members.start({ name: zone, zone }, { LOGRING_ZONES: 'east,west' });
    await Promise.all([start('east'), start('west'), startAlone(members, topic, broker)]);
    await members.untilReady('east', 'west', 'one');
    await emptyLogs();

    await members.of('west').kill('SIGKILL');
    rmSync(members.directoryOf('west'), { recursive: true });
    await produceOdd(rig, topic, { ...RECORDS, seed: 2 });
    await start('west');
    // It answers from the east before that.
    await eventually(async () => (await members.assigned('west')).length === SHARDS);
    await members.untilReady('east', 'west', 'one');
    // From nobody but itself.
    await members.of('east').kill('SIGKILL');
    await expectAllSame('west');
    expect(members.of('west').output()).not.toContain('"msg":"gap');
    expect(
      members
        .of('west')
        .output()
        .match(/was copied from another member/g)?.length,
    ).toBe(SHARDS);

    // What was adopted is a store as any other.
    await members.of('west').kill('SIGKILL');
    await start('west');
    await members.untilReady('west');
    await expectAllSame('west');
  });

  test('what began later is not taken in the place of what is here, though the log has moved on', async () => {
    const start = (zone: string) => members.start({ name: zone, zone }, { LOGRING_ZONES: 'east,west' });
    const rowCount = async (name: string) => {
      const text = await (await fetch(`${members.of(name).url}/metrics`)).text();
      return [...text.matchAll(/^logring_rows\{.*\} (\d+)$/gm)].reduce(
        (sum, [, rows]) => sum + Number(rows),
        0,
      );
    };
    const untilRead = (name: string, count: number) =>
      eventually(async () => (await members.readCount(name)) === count);
    await start('west');
    await members.untilReady('west');
    await untilRead('west', RECORDS.count);
    const before = await rowCount('west');
    await members.of('west').kill('SIGTERM');
    await emptyLogs();
    const later = RECORDS.count / 4;
    await produceOdd(rig, topic, { ...RECORDS, count: later, seed: 2 });
    await start('east');
    await untilRead('east', RECORDS.count + later);
    await emptyLogs();
    await produceOdd(rig, topic, { ...RECORDS, count: later, seed: 3 });

    await start('west');
    await untilRead('west', RECORDS.count + 2 * later);
    expect(members.of('west').output()).toMatch(/it is of \d+ entries, what is here of \d+/);
    expect(members.of('west').output()).not.toContain('was copied from another member');
    expect(members.of('west').output()).toContain('log-start-moved');
    expect(await rowCount('west')).toBeGreaterThan(before);
  });

  test('a member that joins copies its share, while all is answered, and the other lets go of it', async () => {
    const start = (name: string) => members.start({ name, zone: '' });
    await Promise.all([start('first'), startAlone(members, topic, broker)]);
    await members.untilReady('first', 'one');
    await emptyLogs();

    const ended = new AbortController();
    const refusals: string[] = [];
    const asking = (async () => {
      for (let i = 0; !ended.signal.aborted; i++) {
        const question = QUESTIONS[i % QUESTIONS.length];
        const { status, body } = await members.ask('first', question);
        if (status !== 200) refusals.push(`${question}: ${status} ${body}`);
        await pause(20, ended.signal);
      }
    })();
    try {
      await start('second');
      await eventually(async () => {
        const counts = await Promise.all(['first', 'second'].map((name) => members.assigned(name)));
        return counts.every(({ length }) => length === SHARDS / 2) && shardsOf('first') === SHARDS / 2;
      });
      await produceOdd(rig, topic, { ...RECORDS, seed: 2 });
      await eventually(async () => {
        const [first, second, one] = await Promise.all(
          ['first', 'second', 'one'].map((name) => members.readCount(name)),
        );
        return first + second === 2 * RECORDS.count && one === 2 * RECORDS.count;
      });
      await expectAllSame('first', 'second');
      const projects = await members.projects('one');
      expect(projects.length).toBeGreaterThan(3);
      for (const name of ['first', 'second']) expect(await members.projects(name)).toEqual(projects);
      expect(refusals).toEqual([]);
    } finally {
      ended.abort();
      await asking;
    }
    expect(
      members
        .of('second')
        .output()
        .match(/was copied from another member/g)?.length,
    ).toBe(SHARDS / 2);
    expect(shardsOf('second')).toBe(SHARDS / 2);

    for (const name of ['first', 'second']) await members.of(name).kill('SIGKILL');
    await Promise.all(['first', 'second'].map(start));
    await members.untilReady('first', 'second');
    await expectAllSame('first', 'second');
  });
});
