/** An answer that its client takes slowly holds its body, not the blocks that its rows were copied from. */

import { expect, test } from 'vitest';
import { LogsAnswers } from '../../src/endpoints/logs-answers.js';
import { AnswersInFlight } from '../../src/http/server/answers-in-flight.js';
import { objectsAlive } from '../objects-alive.js';

const ANSWER_COUNT = 50;
const ROW = Buffer.from('{"timestamp":1}');

/** Told apart from all other bytes of the process. */
class Row extends Uint8Array {}

test('rows are let go of once they are copied', async () => {
  const logs = new LogsAnswers(new AnswersInFlight(0), () => 0);
  const query = () => ({ rows: [Row.from(ROW)], visibleUntilUs: Infinity });
  const parameters = { project: 'p', retentionUs: 1, startUs: null, endUs: null };
  const releases: (() => void)[] = [];
  for (let i = 0; i < ANSWER_COUNT; i++) {
    const answer = await logs.answer(parameters, 0, query);
    expect(answer.window().view).toBe('rows');
    releases.push(answer.release);
  }
  expect(objectsAlive(Row)).toBeLessThan(ANSWER_COUNT / 5);
  for (const release of releases) release();
});
