/** What the endpoints make of a state that is old, or none: refusals, headers, and what is kept. */

import { expect, test } from 'vitest';
import { type AnswerState, FRESH } from '../../src/http/ports.js';
import { bodyOf, gate, headerOf, NOW_US, problemsOf, TestService, textOf } from './service.js';

const PREFIX = '/api/endpoints/query';
const LOGS = `${PREFIX}/logs.all?project=p&project_tier=PRO`;
const STATS = `${PREFIX}/functions.invocation-stats?project=p&interval=1hr`;
const USAGE = `${PREFIX}/usage.api-counts?project=p&interval=daily`;
const OLD: AnswerState = { kind: 'old', ageUs: 41_000_001 };
const NONE: AnswerState = { kind: 'none', reason: 'partition edge/1 is not read', retryAfterSeconds: 2 };

/** A service whose state a test sets, for all endpoints alike. */
function serviceWithState() {
  const set = { state: FRESH, epoch: 0 };
  const service = new TestService({ states: { stateOf: () => set.state, epochOf: () => set.epoch } });
  service.queries.fill();
  const ask = async (target: string, headers: Record<string, string> = {}) => {
    const answer = await service.ask(target, headers);
    const line = (name: string) => headerOf(answer, name) ?? '-';
    service.queries.takeAsked();
    return `${answer.status} Age ${line('Age')}, stale ${line('Logring-Stale-Seconds')}, ${line('Cache-Control')}`;
  };
  return { set, service, ask };
}

test('where there is nothing whole, the reason and when to come again; a bad request is told first', async () => {
  const { set, service } = serviceWithState();
  await service.ask(STATS);
  set.state = NONE;
  for (const target of [LOGS, STATS, USAGE]) {
    const answer = await service.ask(target);
    expect(problemsOf(answer)).toBe('503 UNAVAILABLE partition edge/1 is not read');
    expect([headerOf(answer, 'Retry-After'), headerOf(answer, 'Cache-Control')]).toEqual(['2', 'no-store']);
  }
  expect(problemsOf(await service.ask(`${PREFIX}/logs.all?project=p`))).toMatch(/^400 .*project_tier/);
  expect(service.queries.takeAsked()).toEqual(['stats p null 1hr']);
});

test('an endpoint that is turned off is not found, and says which setting is empty', async () => {
  const { set, service } = serviceWithState();
  set.state = { kind: 'off', setting: 'LOGRING_EDGE_TOPIC' };
  const answer = await service.ask(LOGS);
  expect([answer.status, bodyOf(answer)]).toEqual([404, expect.stringContaining('LOGRING_EDGE_TOPIC')]);
});

test('what is computed from an old state says how old, rounded up, and is not kept', async () => {
  const { set, service, ask } = serviceWithState();
  set.state = OLD;
  for (const target of [LOGS, STATS, USAGE]) {
    expect(await ask(target)).toBe('200 Age -, stale 42, no-store');
    expect(await ask(target, { 'Cache-Control': 'no-cache' })).toBe('200 Age -, stale 42, no-store');
  }
  expect(service.queryApi.cache!.figures().entries).toBe(0);
  set.state = FRESH;
  expect(await ask(STATS)).toBe('200 Age 0, stale -, private, max-age=900');
});

test('what was computed from a fresh state has its time while the state is old, and is not computed again', async () => {
  const { set, service, ask } = serviceWithState();
  expect(await ask(STATS)).toBe('200 Age 0, stale -, private, max-age=900');
  set.state = OLD;
  service.nowUs = NOW_US + 300e6;
  service.queryApi.cache!.warmDue(service.nowUs);
  expect(service.queries.takeAsked()).toEqual([]);
  expect(await ask(STATS)).toBe('200 Age 300, stale -, private, max-age=900');
  service.nowUs = NOW_US + 900e6;
  expect(await ask(STATS)).toBe('200 Age -, stale 42, no-store');
});

test('when the partitions change, what was computed from its log goes, and what is being computed is not kept', async () => {
  const { service, ask } = serviceWithState();
  await ask(STATS);
  await ask(USAGE);
  service.queryApi.forget('edge');
  service.nowUs = NOW_US + 5e6;
  expect(await ask(STATS)).toMatch(/Age 5/);
  expect(await ask(USAGE)).toMatch(/Age 0/);
  service.queryApi.forget('edge');
  const held = gate();
  service.queries.gate = held.promise;
  const asked = service.ask(USAGE);
  service.queryApi.forget('edge');
  service.queries.gate = null;
  // Those who ask from now on don't wait for it.
  service.nowUs = NOW_US + 6e6;
  expect(await ask(USAGE)).toMatch(/Age 0/);
  held.open();
  await asked;
  service.nowUs = NOW_US + 7e6;
  expect(await ask(USAGE)).toMatch(/Age 1/);
});

test('an answer that was computed while the partitions in it changed is refused', async () => {
  const { set, service } = serviceWithState();
  const held = gate();
  service.queries.gate = held.promise;
  const asked = service.ask(USAGE);
  set.epoch++;
  held.open();
  expect(textOf(await asked)).toMatch(/^503 .*partitions changed/);
  expect(service.queryApi.cache!.figures().entries).toBe(0);
});

test('so is a large one that reads, over several turns, of what has gone', async () => {
  const { set, service } = serviceWithState();
  service.queries.logs = (_parameters, _nowUs, _byteLimit, reading) => {
    if (reading === null) return null;
    set.epoch++;
    throw new Error('the file is not there any more');
  };
  expect(textOf(await service.ask(LOGS))).toMatch(/^503 .*partitions changed/);
});
