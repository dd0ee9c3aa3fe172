/** What counts as a stall, and when it is forgiven. */

import { expect, test } from 'vitest';
import { AssignedPartition } from '../../ingest/kafka/consumer/assigned-partition.js';
import { ProgressWatch, samplesOf } from '../../ingest/kafka/consumer/progress-watch.js';

/**
 * Looks once a second with a stall limit of 3 s; a look is `position/goal`, `position/goal*` while applying,
 * '-' for a pause. Answers the strikes of each look, '.' for none.
 */
function watch(looks: string): string {
  const progress = new ProgressWatch(3_000);
  return looks
    .split(' ')
    .map((look, second) => {
      if (look === '-') {
        progress.pause();
        return '.';
      }
      const [position, goal] = look.replace('*', '').split('/').map(Number);
      const sample = { id: 'p', position, goal, applying: look.endsWith('*') };
      return progress.observe(second * 1_000, [sample])?.strikes ?? '.';
    })
    .join(' ');
}

test('nothing to do, and progress', () => {
  expect(watch('5/5 5/5 5/5 5/5 5/5 5/5')).toBe('. . . . . .');
  expect(watch('1/9 2/9 3/9 4/9 5/9 6/9')).toBe('. . . . . .');
});

test('something to do and no progress', () => {
  expect(watch('5/9 5/9 5/9 5/9 5/9')).toBe('. . . 1 .');
  // Strikes add up while the position is not passed; each new consumer has the whole time.
  expect(watch('5/9 5/9 5/9 5/9 5/9 5/9 5/9 5/9 5/9')).toBe('. . . 1 . . . 2 .');
});

test('a sink that takes its time is no stall', () => {
  expect(watch('5/9* 5/9* 5/9* 5/9* 5/9* 5/9 5/9 5/9')).toBe('. . . . . . . 1');
});

test('time in which the brokers are away does not count', () => {
  expect(watch('5/9 5/9 5/9 - 5/9 5/9 5/9 5/9')).toBe('. . . . . . . 1');
});

test('progress forgives; a new consumer that starts again before the place does not', () => {
  expect(watch('5/9 5/9 5/9 5/9 6/9 6/9 6/9 6/9')).toBe('. . . 1 . . . 1');
  expect(watch('5/9 5/9 5/9 5/9 4/9 5/9 5/9 5/9 5/9')).toBe('. . . 1 . . . . 2');
});

test('a partition that another member has read on in meanwhile has the whole time again', () => {
  const progress = new ProgressWatch(3_000);
  const look = (second: number, goal: number) =>
    progress.observe(second * 1_000, [{ id: 'p', position: 5, goal, applying: false }]);
  expect(look(0, 5)).toBeNull();
  progress.keepOnly((id) => id !== 'p');
  expect([60, 61, 62].map((second) => look(second, 9))).toEqual([null, null, null]);
  expect(look(63, 9)).toMatchObject({ strikes: 1 });
});

test('a partition that holds, and is read again in vain now and then, is no stall', () => {
  const progress = new ProgressWatch(30_000);
  const reader = new AssignedPartition({ topic: 't', partition: 0 });
  const stalls: unknown[] = [];
  reader.read(5);
  reader.readableEndOffset = 9;
  // Every ten seconds it is found as it is being read again, each time before its records came.
  for (let second = 0; second < 600; second += 2) {
    if (second % 10 === 0) {
      reader.check();
      reader.read(5);
    }
    stalls.push(progress.observe(second * 1_000, samplesOf(reader)));
    if (reader.isReading) reader.hold();
  }
  expect(stalls.filter((stall) => stall !== null)).toEqual([]);
});
