/**
 * Two zones of two members each, of which one is killed, frozen, stopped and started again while records come and all are
 * asked: no answer is wrong or goes back, and all the others answer. At full size: campaign.ts.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeKafka } from '../kafka/broker/kafka-suite.js';
import { Watch } from './watch.js';
import { openZones, type Zones } from './zones.js';

const PARTITIONS = 4;
const FRESH_MS = 10_000;

describeKafka('members of two zones', () => {
  let zones: Zones;
  beforeAll(async () => {
    zones = await openZones({
      zones: ['east', 'west'],
      membersAZone: 2,
      partitionCount: PARTITIONS,
      settings: {
        LOGRING_FRESH_MS: String(FRESH_MS),
        // A busy machine takes its time.
        LOGRING_PEER_TIMEOUT_MS: '30000',
      },
    });
  });
  afterAll(() => zones?.close());

  test('answer whatever happens to one of them', async () => {
    const { members, places, rig, topic } = zones;
    const names = places.map(({ name }) => name);
    await Promise.all(places.map((place) => members.start(place)));
    const watch = new Watch(members, names, rig, {
      topic,
      partitionCount: PARTITIONS,
      recordsPerSecond: 100,
      questionsPerSecond: 100,
      freshMs: FRESH_MS,
    });
    watch.startProducing();
    await members.untilReady(...names);
    watch.startAsking();
    /** The others answer all along; it answers again once it is back. */
    const during = async (name: string, task: () => Promise<void>) => {
      watch.leaves(name);
      await task();
      await members.untilReady(...names);
      watch.back(name);
      await watch.untilAsked(50);
    };
    try {
      await watch.untilAsked(100);
      await during('east-0', async () => {
        await members.of('east-0').kill('SIGKILL');
        watch.forget('east-0');
        await watch.untilAsked(100);
        await members.start(places[0]);
      });
      const frozen = async () => {
        const { processId } = members.of('west-1');
        process.kill(processId, 'SIGSTOP');
        await watch.untilAsked(500);
        process.kill(processId, 'SIGCONT');
      };
      await during('west-1', frozen);
      for (const place of places)
        await during(place.name, async () => {
          await members.of(place.name).kill('SIGTERM');
          watch.forget(place.name);
          await watch.untilAsked(30);
          await members.start(place);
        });
    } finally {
      await watch.stop();
    }
    expect(watch.refused).toEqual([]);
    expect(watch.wrong).toEqual([]);
  });
});
