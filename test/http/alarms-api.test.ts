/** The operator's act on gaps and holds, and ingest that is paused, without sockets. */

import { expect, test } from 'vitest';
import type { HeldPartition, OffsetGap } from '../../ingest/log-source.js';
import { headerOf, INGEST_KEY, KEY, LIMITED_KEY, problemsOf, TestService, textOf } from './service.js';

const GAP: OffsetGap = {
  topic: 't',
  partition: 3,
  reason: 'log-start-moved',
  expectedOffset: 2,
  resumedOffset: 4,
};
const HELD: HeldPartition = {
  topic: 't',
  partition: 3,
  offset: 2,
  reason: 'clock',
  sentence: 'too far ahead',
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

test('partitions that hold are listed and acknowledged as gaps are, and apart from them', async () => {
  const service = new TestService();
  service.gaps.push(GAP);
  service.holds.push(HELD);
  const ask = (path: string, method: string, key = INGEST_KEY) =>
    service.ask(path, { 'X-API-KEY': key }, method);
  expect(textOf(await ask('/api/holds', 'GET'))).toBe(`200 ${JSON.stringify({ holds: [HELD] })}`);
  expect((await ask('/api/holds/acknowledge', 'GET')).status).toBe(405);
  expect((await ask('/api/holds/acknowledge', 'POST', KEY)).status).toBe(401);
  expect((await ask('/api/holds/acknowledge', 'POST', LIMITED_KEY)).status).toBe(403);
  expect((await service.post('/api/holds/acknowledge', [Buffer.from('{}')])).status).toBe(400);
  const acknowledged = await ask('/api/holds/acknowledge', 'POST');
  expect(textOf(acknowledged)).toBe(`200 ${JSON.stringify({ acknowledged: [HELD] })}`);
  expect([service.holds, service.gaps]).toEqual([[], [GAP]]);
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
  expect([service.ingestApi?.heldBytes, service.ingestApi?.refusedCount]).toEqual([0, 1]);
  service.ingest.refused = null;
  expect((await service.post('/api/logs?source_name=edge', [Buffer.from('[{"a":1}]')])).status).toBe(200);
});
