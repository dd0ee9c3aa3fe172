/** That pieces of long work leave time to all else. */

import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { LONG_PIECE_US } from '../src/limits.js';
import { Turns } from '../src/turns.js';

/** Pieces of work that take so long each; what they did, in order. */
function working(turns: Turns, took: readonly number[], advance: (us: number) => void): string[] {
  const done: string[] = [];
  const work = async (name: string): Promise<void> => {
    for (const us of took) {
      await turns.next();
      advance(us);
      done.push(name);
    }
  };
  void work('a');
  void work('b');
  return done;
}

async function someTurns(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await nextTurn();
}

test('pieces take turns, one each, in the order of asking', async () => {
  const done = working(new Turns(), [LONG_PIECE_US, LONG_PIECE_US], () => undefined);
  await nextTurn();
  await nextTurn();
  expect(done.length).toBeLessThanOrEqual(2);
  await someTurns();
  expect(done).toEqual(['a', 'b', 'a', 'b']);
});

test('after a piece that took long the next comes once all else has had as much time', async () => {
  let nowUs = 0;
  const rests: { readonly delayMs: number; readonly task: () => void }[] = [];
  const turns = new Turns({
    monotonicUs: () => nowUs,
    after: (delayMs, task) => rests.push({ delayMs, task }),
  });
  const done = working(turns, [LONG_PIECE_US - 1, LONG_PIECE_US, 0], (us) => {
    nowUs += us;
  });
  await someTurns();
  expect(done).toEqual(['a', 'b', 'a']);
  expect(rests.map(({ delayMs }) => delayMs)).toEqual([LONG_PIECE_US / 1000]);
  rests.shift()!.task();
  await someTurns();
  expect(done).toEqual(['a', 'b', 'a', 'b']);
  rests.shift()!.task();
  await someTurns();
  expect(done).toEqual(['a', 'b', 'a', 'b', 'a', 'b']);
  expect(rests).toEqual([]);
});
