/** The operator's act on gaps, and ingest that is paused, without sockets. */

import { expect, test } from 'vitest';
import type { OffsetGap } from '../../ingest/log-source.js';
import { headerOf, INGEST_KEY, KEY, LIMITED_KEY, problemsOf, TestService, textOf } from './service.js';

const GAP: OffsetGap = {
  topic: 't',
  partition: 3,
  reason: 'log-start-moved',
  expectedOffset: 2,
  resumedOffset: 4,
};
const ACKNOWLEDGE = '/api/gaps/acknowledge';

test('gaps are listed and acknowledged with an ingest key, once', async () => {
  const service = new TestService();
  service.gaps.push(GAP);
  const ask = (path: string, method: string) => service.ask(path, { 'X-API-KEY': INGEST_KEY }, method);
  expect(textOf(await ask('/api/gaps', 'GET'))).toBe(`200 ${JSON.stringify({ gaps: [GAP] })}`);
  expect(textOf(await ask(ACKNOWLEDGE, 'POST'))).toBe(`200 ${JSON.stringify({ acknowledged: [GAP] })}`);
  expect(textOf(await ask(ACKNOWLEDGE, 'POST'))).toBe('200 {"acknowledged":[]}');
  expect(textOf(await ask('/api/gaps', 'GET'))).toBe('200 {"gaps":[]}');
});

test('nothing is acknowledged by another method, another key, or a request with a body', async () => {
  const service = new TestService();
  service.gaps.push(GAP);
  const status = async (path: string, method: string, key: string) =>
    (await service.ask(path, { 'X-API-KEY': key }, method)).status;
  expect(await status(ACKNOWLEDGE, 'GET', INGEST_KEY)).toBe(405);
  expect(await status('/api/gaps', 'POST', INGEST_KEY)).toBe(405);
  expect(await status(ACKNOWLEDGE, 'POST', 'wrong')).toBe(401);
  expect(await status(ACKNOWLEDGE, 'POST', KEY)).toBe(401);
  expect(await status(ACKNOWLEDGE, 'POST', LIMITED_KEY)).toBe(403);
  const withBody = await service.post(ACKNOWLEDGE, [Buffer.from('{}')]);
  expect(problemsOf(withBody)).toBe(`400 INVALID_ARGUMENT "${ACKNOWLEDGE}" takes no body`);
  expect((await service.post(ACKNOWLEDGE, [Buffer.from('{}')], { 'X-API-KEY': 'wrong' })).status).toBe(401);
  expect(service.gaps).toEqual([GAP]);
});

test('while ingest is paused a POST is turned away with the reason, and its body is not kept', async () => {
  const service = new TestService();
  service.ingest.refused = { reason: 'ingest is paused: the disk is full', retryAfterSeconds: 2 };
  const answer = await service.post('/api/logs?source_name=edge', [Buffer.from('[{"a":1}]')]);
  expect(problemsOf(answer)).toBe('503 UNAVAILABLE ingest is paused: the disk is full');
  expect(headerOf(answer, 'Retry-After')).toBe('2');
  expect([service.api.ingest?.heldBytes, service.api.ingest?.refusedCount]).toEqual([0, 1]);
  service.ingest.refused = null;
  expect((await service.post('/api/logs?source_name=edge', [Buffer.from('[{"a":1}]')])).status).toBe(200);
});
