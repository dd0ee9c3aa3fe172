/** Answers are byte for byte those that were recorded. */

import { expect, test } from 'vitest';
import { ANSWERS_A_HASH, playRun, readRun } from './recorded-run.js';

test('ten thousand questions are answered as they were when they were recorded', async () => {
  const recorded = readRun();
  const played = await playRun(recorded);
  const asked = recorded.reduce((count, { questions }) => count + questions.length, 0);
  expect(asked).toBeGreaterThanOrEqual(10_000);
  const changed = recorded.flatMap(({ questions, hashes }, phase) =>
    hashes.flatMap((hash, group) => {
      if (hash === played[phase].hashes[group]) return [];
      const first = group * ANSWERS_A_HASH;
      return [{ phase, questions: questions.slice(first, first + ANSWERS_A_HASH) }];
    }),
  );
  expect(changed).toEqual([]);
}, 300_000);
