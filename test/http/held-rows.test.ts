/** What answers of `logs.all` hold, and what is counted of it. */

import { expect, test } from 'vitest';
import { ByteWriter } from '../../engine/bytes.js';
import { LASTING_ROW_BYTES } from '../../engine/rows/block.js';
import {
  collectLogs,
  type LogsPartial,
  mergeLogs,
  RowDidNotCome,
  readLogs,
  writeLogs,
} from '../../engine/rows/partial.js';
import { RowsView } from '../../engine/rows/rows-view.js';
import { LogsAnswers, type QueryLogs } from '../../src/endpoints/logs-answers.js';
import { Unavailable } from '../../src/endpoints/refusal.js';
import { AnswersInFlight } from '../../src/http/server/answers-in-flight.js';
import { objectsAlive } from '../objects-alive.js';
import { SegmentTable } from '../segment-table.js';

const ANSWER_COUNT = 50;
const ROW = Buffer.from('{"timestamp":1}');

/** Told apart from all other bytes of the process. */
class Row extends Uint8Array {}

test('rows are let go of once they are copied', async () => {
  const logs = new LogsAnswers(new AnswersInFlight(0), () => 0);
  const query = () => ({ rows: [Row.from(ROW)], reachUs: -Infinity, visibleUntilUs: Infinity });
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

const PARAMETERS = { project: 'p', retentionUs: 1_000, startUs: null, endUs: null };

/** So many large rows that another process has sent. */
function sentRows(count: number): LogsPartial {
  const view = new RowsView(new SegmentTable());
  for (let i = 0; i < count; i++) {
    const row = Buffer.from(`{"id":${i},"timestamp":1,"x":"${'x'.repeat(LASTING_ROW_BYTES)}"}`);
    const entry = { timestampUs: 1, project: 'p', tierClass: '90d' as const, idHash: i, row };
    view.apply({ ...entry, url: null, areas: 0, outcome: 0 });
  }
  const out = new ByteWriter();
  writeLogs(out, collectLogs(view, PARAMETERS, 1), PARAMETERS, 1);
  return readLogs(out.finish(), PARAMETERS, 1);
}

test('what other processes have sent of a large answer is counted from its first turn to its last', async () => {
  const others = [sentRows(60)];
  const sentBytes = 60 * LASTING_ROW_BYTES;
  const inFlight = new AnswersInFlight(3 * sentBytes);
  const logs = new LogsAnswers(inFlight, () => 1);
  const query: QueryLogs = (_nowUs, byteLimit) => mergeLogs(others, byteLimit);
  const first = logs.answer(PARAMETERS, 1, query, others);
  expect(inFlight.heldBytes).toBeGreaterThan(2 * sentBytes);
  await expect(Promise.resolve(logs.answer(PARAMETERS, 1, query, others))).rejects.toThrow(Unavailable);
  const { body, release } = await first;
  expect(inFlight.heldBytes).toBe(
    (body as Uint8Array[]).reduce((sum, { buffer }) => sum + buffer.byteLength, 0),
  );
  release();
  expect(inFlight.heldBytes).toBe(0);
});

test('what a large answer is made of with others is as of its question, in each turn', async () => {
  const others = [sentRows(60)];
  const asOfUs = new Set<number>();
  const logs = new LogsAnswers(new AnswersInFlight(0), () =>
    expect.unreachable('it does not look at the clock'),
  );
  const query: QueryLogs = (nowUs, byteLimit) => {
    asOfUs.add(nowUs);
    return mergeLogs(others, byteLimit);
  };
  (await logs.answer(PARAMETERS, 7, query, others)).release();
  expect([...asOfUs]).toEqual([7]);
});

test('an answer is refused when rows that were in the place of others are gone', async () => {
  const others = [sentRows(60)];
  let turns = 0;
  const logs = new LogsAnswers(new AnswersInFlight(0), () => 1);
  const query: QueryLogs = (_nowUs, byteLimit) => {
    if (turns++ > 0) throw new RowDidNotCome();
    return mergeLogs(others, byteLimit);
  };
  await expect(Promise.resolve(logs.answer(PARAMETERS, 1, query, others))).rejects.toThrow(Unavailable);
});
