/**
 * `logs.event-counts` over HTTP: its parameters, its rows, and that it is cached, over a shard's real view.
 */

import { expect, test } from 'vitest';
import type { EdgeEntry } from '../../engine/entry.js';
import { EdgeShard } from '../../engine/shard.js';
import type { CachedEndpoint, EndpointResources } from '../../src/endpoints/endpoint.js';
import { eventCounts } from '../../src/endpoints/event-counts.js';
import { SegmentTable } from '../segment-table.js';
import { headerOf, LIMITED_KEY, NOW_US, problemsOf, TestService, textOf } from './service.js';

const PATH = '/api/endpoints/query/logs.event-counts';
const HOUR_US = 3_600_000_000;

function serviceWith(...entries: readonly Partial<EdgeEntry>[]) {
  const shards = [new EdgeShard(new SegmentTable()), new EdgeShard(new SegmentTable())];
  const resources = { shards: { edge: shards, relay: [] } } as unknown as EndpointResources;
  const apply = (one: Partial<EdgeEntry>, i: number) => {
    const row = Buffer.from('{}');
    const whole = { timestampUs: NOW_US, project: 'p', tierClass: '1d' as const, idHash: 0, row, url: null };
    shards[i % 2].applyRecord([{ ...whole, areas: 0, outcome: 0, ...one }], [], i);
  };
  entries.forEach(apply);
  const endpoint = eventCounts as CachedEndpoint;
  const service = new TestService({
    endpoints: [{ id: eventCounts.id, endpoint, query: endpoint.open(resources) }],
  });
  return { service, apply };
}

test('rows, oldest first, without the empty buckets, of all shards', async () => {
  const { service } = serviceWith(
    { timestampUs: NOW_US - 23 * HOUR_US },
    { outcome: 1 },
    { outcome: 2 },
    { outcome: 2 },
    {},
    { project: 'other' },
    { timestampUs: NOW_US - 25 * HOUR_US },
  );
  const row = (timestamp: number, counts: string) => `{"timestamp":${timestamp},${counts}}`;
  const first = row(NOW_US - 23 * HOUR_US, '"ok_count":1,"warning_count":0,"error_count":0');
  const last = row(NOW_US, '"ok_count":1,"warning_count":1,"error_count":2');
  const query = 'project=p&project_tier=FREE&interval=hourly';
  expect(textOf(await service.ask(`${PATH}?${query}`))).toBe(`200 {"result":[${first},${last}]}`);
  expect(textOf(await service.ask(`/api/endpoints/query/${eventCounts.id}?${query}`))).toContain(last);
  expect(textOf(await service.ask(`${PATH}?project=nobody&project_tier=FREE&interval=daily`))).toBe(
    '200 {"result":[]}',
  );
});

test('every problem of the parameters at once, the intervals named', async () => {
  const { service } = serviceWith();
  const check = async (query: string, expected: string) =>
    expect(problemsOf(await service.ask(`${PATH}?${query}`)), query).toBe(`400 INVALID_ARGUMENT ${expected}`);
  await check(
    '',
    'project: is required; project_tier: is required; interval: is required: one of minutely, hourly, daily',
  );
  await check(
    'project=p&project_tier=&interval=1hr',
    'interval: must be one of minutely, hourly, daily, not "1hr"',
  );
  const limited = { 'X-API-KEY': LIMITED_KEY };
  const answer = await service.ask(`${PATH}?project=p&project_tier=PRO&interval=daily`, limited);
  expect(problemsOf(answer)).toMatch(/^403 .*limited to other projects than "p"; it may ask for those only$/);
});

test('it is cached by project, tier and interval, and computed again for no-cache', async () => {
  const { service, apply } = serviceWith({});
  const ask = async (query: string, headers = {}) => {
    const answer = await service.ask(`${PATH}?${query}`, headers);
    return [headerOf(answer, 'age'), JSON.parse(textOf(answer).slice(4)).result[0]?.ok_count];
  };
  const daily = 'project=p&project_tier=PRO&interval=daily';
  expect(await ask(daily)).toEqual(['0', 1]);
  apply({}, 2);
  service.nowUs += 7_000_000;
  expect(await ask(daily)).toEqual(['7', 1]);
  expect(await ask(daily.replace('PRO', 'FREE'))).toEqual(['0', 2]);
  expect(await ask(daily.replace('daily', 'hourly'))).toEqual(['0', 2]);
  expect(await ask(daily, { 'Cache-Control': 'no-cache' })).toEqual(['0', 2]);
  expect(await ask(daily)).toEqual(['0', 2]);
});
