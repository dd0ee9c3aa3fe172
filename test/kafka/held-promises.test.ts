/**
 * What waits beside something that stays pending for life is let go of: the promises held do not grow with
 * the looks taken.
 */

import { expect, test } from 'vitest';
import type { KafkaClock } from '../../ingest/kafka/clock.js';
import { eventually } from '../eventually.js';
import { objectsAlive } from '../objects-alive.js';
import { describeKafka } from './broker/kafka-suite.js';
import { CLOCK, QUICK, rigForEachTest, uniqueName } from './rig.js';

const LOOKS = 100;
/**
 * A look under way has some dozens of promises, kafkajs's included; one kept for each look would be LOOKS of
 * them.
 */
const UNDER_WAY = LOOKS / 2;

describeKafka('promises held', () => {
  const suite = rigForEachTest();

  test('looks at the cluster leave nothing with what ends a source', async () => {
    const topic = uniqueName('looks');
    await suite.rig.createTopic(topic, 1);
    const timing = { ...QUICK, pollIntervalMs: 1 };
    let looks = 0;
    const clock: KafkaClock = {
      ...CLOCK,
      after: (delayMs, task) => {
        if (delayMs === timing.pollIntervalMs) looks++;
        return CLOCK.after(delayMs, task);
      },
    };
    await suite.rig.start({ topics: [topic], groupId: topic, timing, clock });
    const heldAfter = async (count: number) => {
      await eventually(() => looks >= count);
      return objectsAlive(Promise);
    };
    const before = await heldAfter(LOOKS);
    const after = await heldAfter(3 * LOOKS);
    expect(after - before).toBeLessThan(UNDER_WAY);
  });
});
