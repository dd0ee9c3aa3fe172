/**
 * The access log: what a line says, over both servers, and that the key is in none, wherever a caller puts
 * it.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type AccessLine, loggedHandler } from '../../src/http/access-log.js';
import { KeyRing } from '../../src/http/auth.js';
import type { HttpHandler } from '../../src/http/server/server.js';
import { startChildService } from '../child-service.js';
import { BACK_ENDS, RunningServer } from './running-server.js';
import { BugLog, INGEST_KEY, KEY, TestService } from './service.js';

const STATS = '/api/endpoints/query/functions.invocation-stats';
const STATS_OK = `${STATS}?project=p&interval=1hr`;

test.each(BACK_ENDS)('%s: method, path, status, bytes, duration, cache outcome and tag', async (backEnd) => {
  const service = new TestService();
  const lines: AccessLine[] = [];
  service.queries.fill();
  let clockUs = 0;
  const handler: HttpHandler = loggedHandler(service.api, {
    write: (line) => lines.push(line),
    keyTagOf: (request) => service.api.keyTagOf(request),
    monotonicUs: () => {
      clockUs += 250;
      return clockUs;
    },
  });
  const server = await RunningServer.start(backEnd, handler, new BugLog());
  const tag = new KeyRing([{ key: KEY, projects: null }]).tagOf(KEY);
  const check = async (target: string, init: RequestInit, expected: string) => {
    const response = await fetch(server.url + target, init).catch(() => null);
    const received = Buffer.byteLength((await response?.text()) ?? '');
    const said = lines.splice(0).map(({ method, path, status, bytes, ms, cache, key }) => {
      expect(bytes).toBe(received);
      return [method, path, status, ms, cache, key].join(' ').replace(String(tag), 'TAG');
    });
    expect(said).toEqual([expected]);
  };
  const headers = { 'X-API-KEY': KEY };
  await check(STATS_OK, { headers }, `GET ${STATS} 200 0.25 miss TAG`);
  await check(STATS_OK, { headers }, `GET ${STATS} 200 0.25 hit TAG`);
  await check(STATS_OK, { headers, method: 'HEAD' }, `HEAD ${STATS} 200 0.25 hit TAG`);
  await check(`${STATS_OK}&api_key=${KEY}`, {}, `GET ${STATS} 200 0.25 hit TAG`);
  await check(STATS_OK, { headers: { 'X-API-KEY': 'wrong' } }, `GET ${STATS} 401 0.25  `);
  await check('/livez', {}, 'GET /livez 200 0.25  ');
  const ingest = { 'X-API-KEY': INGEST_KEY };
  const posted = new KeyRing([{ key: INGEST_KEY, projects: null }]).tagOf(INGEST_KEY);
  await check(
    '/api/logs?source_name=edge',
    { method: 'POST', headers: ingest, body: '[]' },
    `POST /api/logs 200 0.25  ${posted}`,
  );
  await check(STATS_OK, { headers, method: 'POST', body: 'x' }, `POST ${STATS}  0.25  TAG`);
  // Targets that went wrong, with the key in the path.
  await check(`/api/&api_key=${KEY}`, {}, 'GET /api/… 401 0.25  ');
  await check(`${STATS}%3Fapi_key=${KEY}`, { headers }, `GET ${STATS}… 404 0.25  TAG`);
  await check(`/${'a'.repeat(1000)}`, {}, `GET /${'a'.repeat(199)}… 404 0.25  `);
  await server.server.close(0);
});

test('a tag is the same after every start, another for another key, and says nothing of the key', () => {
  const ring = new KeyRing([
    { key: 'a', projects: null },
    { key: 'b', projects: ['p'] },
  ]);
  expect(ring.tagOf('a')).toBe('125ba8ef');
  expect(ring.tagOf('b')).toMatch(/^[0-9a-f]{8}$/);
  expect(ring.tagOf('b')).not.toBe(ring.tagOf('a'));
  expect([ring.tagOf('wrong'), ring.tagOf('')]).toEqual([null, null]);
});

test('the service writes it where it is asked to, whatever its level, and no key', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-access-'));
  const secret = 'a-secret-key-of-the-test';
  const service = await startChildService({
    LOGRING_DATA_DIR: directory,
    LOGRING_API_KEYS: secret,
    LOGRING_ACCESS_LOG: 'true',
  });
  for (const target of [`${STATS_OK}&api_key=`, `${STATS_OK}&api%5Fkey=`, '/nothing/here&api_key=']) {
    await fetch(service.url + target + secret, { headers: { Authorization: `Bearer ${secret}` } });
  }
  expect(await service.kill('SIGTERM')).toBe(0);
  const lines = service
    .output()
    .split('\n')
    .filter((line) => line.includes('"msg":"request"'));
  expect(lines).toHaveLength(3);
  expect(lines[0]).toMatch(
    /"method":"GET","path":"[^"?]*stats","status":200,"bytes":13,"ms":[0-9.]+,"cache":null,"key":"[0-9a-f]{8}"/,
  );
  expect(service.output()).not.toContain(secret);
  rmSync(directory, { recursive: true });
});
