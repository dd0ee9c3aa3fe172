/** That the soak's checks find what is wrong, and nothing else. */

import { expect, test } from 'vitest';
import { US_PER_DAY, US_PER_HOUR, US_PER_SECOND } from '../../engine/time.js';
import { Model } from '../model/model.js';
import { decodeEdgeNaively } from '../model/naive-decoder.js';
import { type Answer, timesOf } from './answer.js';
import type { Probe } from './ledger.js';
import { probeProblem } from './probe-check.js';
import type { Question } from './questions.js';
import type { Sample } from './samples.js';
import { shapeProblem } from './shape-check.js';
import { trendBeside, trendOf } from './trend.js';
import { verdictOf } from './verdict.js';

const NOW_US = Date.UTC(2026, 10, 21, 7, 30) * 1000;
const LOGS: Question = { endpoint: 'logs.all', project: 'p', tier: 'PRO', afterUs: null, untilUs: null };
const COUNTS: Question = { endpoint: 'usage.api-counts', expression: 'p[.]', interval: 'hourly' };

/** Entries acknowledged so many seconds before now, each as long before now as its timestamp. */
function probeOf(...ackedSecondsAgo: number[]): Probe {
  const edge = ackedSecondsAgo.flatMap((seconds, index) => {
    const timestampUs = NOW_US - seconds * US_PER_SECOND;
    const entry = {
      id: `${index}`,
      timestamp: timestampUs,
      project: 'p',
      metadata: { request: { url: 'https://p.example/rest' } },
    };
    const record = { topic: 't', partition: 0, offset: 0, timestampMs: 0, projectTier: null };
    return decodeEdgeNaively({ ...record, value: Buffer.from(JSON.stringify(entry)) }, NOW_US).map(
      (element) => {
        if ('reason' in element) throw new Error(element.reason);
        return { entry: element.entry, request: { sentUs: timestampUs, ackedUs: timestampUs } };
      },
    );
  });
  return { name: 'p', edge, relay: [] };
}

function answerOf(text: string, headers: Answer['headers'] = {}): Answer {
  return { status: 200, headers, body: Buffer.from(text), askedUs: NOW_US, answeredUs: NOW_US + 1000 };
}

/** The rows of these entries of a probe. */
function rows({ edge }: Probe, ...indexes: number[]): string {
  return `{"result":[${indexes.map((index) => edge[index].entry.row.toString()).join()}]}`;
}

test('rows: what is settled must be there, what is fresh may be, nothing comes twice or from elsewhere', () => {
  const probe = probeOf(5, 60, 61);
  const check = (text: string, headers: Answer['headers'], expected: RegExp | null) => {
    const answer = answerOf(text, headers);
    const problem = probeProblem(probe, LOGS, answer, timesOf(answer));
    if (expected === null) expect(problem).toBeNull();
    else expect(problem).toMatch(expected);
  };
  check(rows(probe, 0, 1, 2), {}, null);
  // Acknowledged five seconds ago: an answer need not have it yet.
  check(rows(probe, 1, 2), {}, null);
  check(rows(probe, 0, 2), {}, /after 1 rows the answer lacks/);
  check(rows(probe, 0, 1), {}, /after 2 rows the answer lacks/);
  check('{"result":[]}', {}, /after 0 rows the answer lacks/);
  // It says that it is older, or it was cached then: as it was at that time.
  check('{"result":[]}', { 'logring-stale-seconds': '90' }, null);
  check('{"result":[]}', { age: '90' }, null);
  check(rows(probe, 1, 1, 2), {}, /after 1 rows/);
  check(rows(probe, 1, 0, 2), {}, /lacks/);
  check(rows(probe, 0, 1, 2).replace('/rest', '/resT'), {}, /lacks/);
});

test('counts: exact where all is settled, between what is and what may be elsewhere; to the microsecond at the start', () => {
  const check = (probe: Probe, rest: number | null, expected: RegExp | null) => {
    const row = { timestamp: '2026-11-21T07:00:00', total_rest_requests: rest };
    const other = { total_storage_requests: 0, total_auth_requests: 0, total_realtime_requests: 0 };
    const answer = answerOf(JSON.stringify({ result: rest === null ? [] : [{ ...row, ...other }] }));
    const problem = probeProblem(probe, COUNTS, answer, timesOf(answer));
    if (expected === null) expect(problem).toBeNull();
    else expect(problem).toMatch(expected);
  };
  check(probeOf(60, 61, 62), 3, null);
  check(probeOf(60, 61, 62), 2, /column 0 is 2, expected 3 to 3/);
  check(probeOf(60, 61, 62), 4, /column 0 is 4, expected 3 to 3/);
  check(probeOf(60, 61, 62), null, /there are no buckets 2026-11-21T07:00:00/);
  check(probeOf(5, 61, 62), 2, null);
  check(probeOf(5, 61, 62), 1, /expected 2 to 3/);
  check(probeOf(5), null, null);
});

test('statistics: the model decides where all is settled', () => {
  const entry = { timestampUs: NOW_US - US_PER_HOUR, project: 'p', functionId: 'f', statusCode: 500 };
  const request = { sentUs: 0, ackedUs: 0 };
  const relay = [4, 2].map((executionTimeMs) => ({ entry: { ...entry, executionTimeMs }, request }));
  const question: Question = {
    endpoint: 'functions.invocation-stats',
    project: 'p',
    functionId: null,
    interval: '1day',
  };
  const model = new Model();
  for (const held of relay) model.applyRelay(held.entry);
  const [{ startUs }] = model.invocationStats(question, NOW_US);
  const right = {
    timestamp: startUs,
    count: 2,
    error_count: 2,
    min_execution_time: 2,
    max_execution_time: 4,
    avg_execution_time: 3,
    p95_execution_time: 4,
    p99_execution_time: 4,
  };
  const check = (row: object | null, expected: RegExp | null) => {
    const answer = answerOf(JSON.stringify({ result: row === null ? [] : [row] }));
    const problem = probeProblem({ name: 'p', edge: [], relay }, question, answer, timesOf(answer));
    if (expected === null) expect(problem).toBeNull();
    else expect(problem).toMatch(expected);
  };
  check(right, null);
  check({ ...right, error_count: 1 }, /are 2,1,2,4,3, expected 2,2,2,4,3/);
  check({ ...right, p95_execution_time: 2 }, /p95 of 2 values is 2, expected 4/);
  check({ ...right, timestamp: startUs - US_PER_DAY }, /there is no bucket/);
  check(null, /there are no buckets/);
});

test('the shape: columns, order and bounds of any answer', () => {
  const check = (question: Question, result: unknown, expected: string | null) =>
    expect(shapeProblem(question, answerOf(JSON.stringify({ result })))).toBe(expected);
  const row = (timestamp: number) => ({ id: 'a', timestamp, event_message: null, metadata: {} });
  check(LOGS, [row(2), row(2), row(1)], null);
  check(LOGS, [row(1), row(2)], 'row a, 2, is later than 1');
  check(LOGS, [{ id: 'a', timestamp: 1 }], 'columns are id,timestamp');
  check(LOGS, new Array(101).fill(row(1)), 'there are 101 rows');
  check({ ...LOGS, afterUs: 1 }, [row(1)], 'row a is not later than 1');
});

test('a slope and its standard error', () => {
  expect(
    trendOf([
      [0, 1],
      [1, 3],
      [2, 5],
    ]),
  ).toEqual({ slope: 2, standardError: 0, meanY: 3, count: 3 });
  // By hand: residuals 1/3, -2/3, 1/3 over a spread of 2.
  const { slope, standardError } = trendOf([
    [0, 0],
    [1, 0],
    [2, 2],
  ]);
  expect(slope).toBe(1);
  expect(standardError).toBeCloseTo(Math.sqrt(2 / 3 / 2), 12);
});

test('the slope of what does not go with a third value', () => {
  // y = 1 + 2 x + 3 z, and 1 + 3 z.
  const x = [0, 1, 2, 3, 4];
  const z = [0, 5, 1, 6, 2];
  const rising = trendBeside(
    x.map((one, i) => [one, 1 + 2 * one + 3 * z[i]]),
    z,
  );
  expect(rising.slope).toBeCloseTo(2, 12);
  const flat = trendBeside(
    x.map((one, i) => [one, 1 + 3 * z[i]]),
    z,
  );
  expect(flat.slope).toBeCloseTo(0, 12);
  // A third value that never changes changes nothing.
  expect(
    trendBeside(
      x.map((one) => [one, 2 * one]),
      [7, 7, 7, 7, 7],
    ).slope,
  ).toBeCloseTo(2, 12);
});

test('of two lives the heap of the long one must be that of the one which has loaded its state', () => {
  const sampleOf = (life: number, second: number, heapMebibytes: number) =>
    ({
      life,
      second,
      ageSeconds: second,
      heapBytes: heapMebibytes * 2 ** 20,
      residentBytes: 0,
      descriptors: 0,
      storeFiles: 0,
      storeBytes: 0,
      keptEntries: 0,
      storedEntries: 0,
      countedBytes: 0,
      held: {},
      figures: { asked: 0, answered: 0 },
    }) as unknown as Sample;
  const livesOf = (heapAtEnd: number) => [
    ...Array.from({ length: 240 }, (_, i) => sampleOf(1, 15 * i, i < 200 ? 100 : heapAtEnd)),
    ...Array.from({ length: 60 }, (_, i) => sampleOf(2, 3_600 + 15 * i, i < 30 ? 60 : 100)),
  ];
  const heapFinding = (heapAtEnd: number) => verdictOf(livesOf(heapAtEnd), 200)[1];
  expect(heapFinding(101)).toMatchObject({
    isGood: true,
    text: expect.stringMatching(/101.0 in the mean, 100.0/),
  });
  expect(heapFinding(104).isGood).toBe(false);
});

test('a soak that was answered far less than it was to be shows nothing', () => {
  const samplesOf = (perSecond: number) =>
    Array.from({ length: 240 }, (_, i) => ({
      life: 1,
      second: 15 * i,
      ageSeconds: 15 * i,
      // A soak that goes on counts from nothing again.
      figures: { asked: 15 * 200 * (i % 200), answered: 15 * perSecond * (i % 200) },
      held: {},
    })) as unknown as Sample[];
  const answered = (perSecond: number) => verdictOf(samplesOf(perSecond), 200)[0];
  expect(answered(160)).toEqual({ text: 'answered: 80 % of 200 queries a second', isGood: true });
  expect(answered(140)).toEqual({ text: 'answered: 70 % of 200 queries a second', isGood: false });
});
