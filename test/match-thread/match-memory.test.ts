/**
 * What never-asked expressions leave behind in the match threads and on the way to them does not grow with
 * their number.
 */

import { RE2JS } from 're2js';
import { expect, test } from 'vitest';
import { scanUrls } from '../../engine/usage/expressions/url-scan.js';
import { UsageView } from '../../engine/usage/usage-view.js';
import { ApiCountsEvaluator } from '../../src/match-thread/api-counts-evaluator.js';
import { CompiledExpressions } from '../../src/match-thread/compiled-expressions.js';
import { COMPILED_EXPRESSION_LIMIT } from '../../src/match-thread/limits.js';
import { ThreadTime } from '../../src/match-thread/thread-time.js';
import { evaluatedRows } from '../queries.js';
import { edgeEntry, seededRandom } from '../usage/naive-usage.js';
import { drawUrl, EXPRESSIONS } from '../usage/odd-urls.js';

const HOUR_US = Date.parse('2026-11-21T07:00:00Z') * 1000;
const NOW_US = HOUR_US + 30 * 60_000_000;
const FILES = {
  locate: () => {
    throw new Error('nothing is sealed here');
  },
  damaged: () => undefined,
};

test('automata share as many tables as expressions are kept, and find with used ones what re2js finds', () => {
  const random = seededRandom(7);
  const urls = Array.from({ length: 200 }, () => drawUrl(random));
  let end = 0;
  const ends = Uint32Array.from(urls, (url) => (end += Buffer.byteLength(url)));
  const bytes = new Uint8Array(Buffer.from(urls.join('')));
  const compiled = new CompiledExpressions();
  for (let round = 0; round < 10; round++) {
    for (const expression of EXPRESSIONS) {
      // Another text each round, of the same meaning.
      const text = `(?:${expression})${'(?:)'.repeat(round)}`;
      const found = scanUrls({ bytes, ends }, compiled.automaton(text), () => undefined);
      const pattern = RE2JS.compile(expression);
      expect([...found], text).toEqual(
        urls.map((url) => (pattern.test(Buffer.from(url).toString()) ? 1 : 0)),
      );
    }
  }
  expect(compiled.tablesMade).toBeLessThanOrEqual(COMPILED_EXPRESSION_LIMIT);
});

test('URLs go to the thread in one buffer, however many expressions are asked', async () => {
  const view = new UsageView();
  for (let i = 0; i < 3000; i++) view.apply(edgeEntry(HOUR_US + i, `https://abc.example/rest/v1/${i}`, 0));
  const evaluator = new ApiCountsEvaluator(() => [view], { files: FILES });
  for (let i = 0; i < 30; i++) {
    const [row] = await evaluatedRows(evaluator, {
      expression: `abc.*/${i}$`,
      interval: 'hourly',
      nowUs: NOW_US,
    });
    expect(row.rest).toBe(0);
  }
  expect([evaluator.buffersMade, evaluator.threadStartCount]).toEqual([1, 1]);
  await evaluator.stop();
});

test('literals under way are bounded like all expressions', async () => {
  const view = new UsageView();
  for (let i = 0; i < 3000; i++) view.apply(edgeEntry(HOUR_US + i, `https://abc.example/rest/v1/${i}`, 0));
  const evaluator = new ApiCountsEvaluator(() => [view], {
    files: FILES,
    evaluationLimit: 3,
    sliceBytes: 1000,
  });
  const ask = async (i: number) =>
    (await evaluatedRows(evaluator, { expression: `rest/v1/${i}`, interval: 'hourly', nowUs: NOW_US }))
      .length;
  const answers = await Promise.allSettled(Array.from({ length: 10 }, (_, i) => ask(i)));
  expect(answers.map(({ status }) => status).join()).toMatch(/^(fulfilled,){3}(rejected,?){7}$/);
  expect(String((answers[9] as PromiseRejectedResult).reason)).toContain('3 others are');
  await evaluator.stop();
});

test('the time of an evaluation is that of all threads together', () => {
  let nowMs = 0;
  const time = new ThreadTime(30_000, () => nowMs);
  const endFirst = time.begin();
  expect([time.leftMs, time.lookMs]).toEqual([30_000, 30_000]);
  const endSecond = time.begin();
  expect(time.lookMs).toBe(15_000);
  nowMs = 14_000;
  expect([time.leftMs, time.lookMs]).toEqual([2000, 1000]);
  endFirst(14_000);
  expect([time.leftMs, time.lookMs]).toEqual([2000, 2000]);
  nowMs = 16_000;
  expect(time.leftMs).toBe(0);
  endSecond();
  endSecond();
  expect(time.leftMs).toBe(0);
});

test('of expressions that are asked at once so many are evaluated as their matches find memory', async () => {
  const LIMIT = 400_000;
  const COUNT = 20_000;
  const fill = (view: UsageView) => {
    for (let i = 0; i < COUNT; i++) view.apply(edgeEntry(HOUR_US + i, `https://abc.example/rest/v1/${i}`, 1));
    return view;
  };
  const ask = { interval: 'hourly', nowUs: NOW_US } as const;
  for (const kind of ['literals', 'expressions']) {
    const expressions = Array.from({ length: 20 }, (_, i) =>
      kind === 'literals' ? 'https://abc.example/rest'.slice(0, i + 1) : `^h.{${i}}`,
    );
    const alone = fill(new UsageView());
    const options = { files: FILES, sliceBytes: 10_000 };
    const first = new ApiCountsEvaluator(() => [alone], options);
    await evaluatedRows(first, { expression: expressions[0], ...ask });
    await first.stop();
    const aloneBytes = alone.standing.memory.heldBytes;
    expect(2 * aloneBytes, kind).toBeLessThan(LIMIT);
    const view = fill(new UsageView({ matchBytes: LIMIT }));
    const evaluator = new ApiCountsEvaluator(() => [view], options);
    let most = 0;
    let isGoing = true;
    const look = () => {
      most = Math.max(most, view.standing.memory.heldBytes);
      if (isGoing) setImmediate(look);
    };
    look();
    const outcomes = await Promise.allSettled(
      expressions.map(async (expression) => await evaluatedRows(evaluator, { expression, ...ask })),
    );
    isGoing = false;
    expect(most, kind).toBeLessThan(LIMIT + 2 * aloneBytes);
    const refused = outcomes.filter((outcome) => outcome.status === 'rejected');
    expect(refused.length, kind).toBeGreaterThan(0);
    for (const { reason } of refused) expect(reason).toMatchObject({ kind: 'busy' });
    for (const outcome of outcomes)
      if (outcome.status === 'fulfilled') expect(outcome.value[0].rest).toBe(COUNT);
    expect(outcomes[0].status, kind).toBe('fulfilled');
    const [again] = await evaluatedRows(evaluator, { expression: expressions.at(-1)!, ...ask });
    expect(again.rest).toBe(COUNT);
    await evaluator.stop();
  }
});
