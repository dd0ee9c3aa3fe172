/** Keys: who gets in, by which way, and for which projects. */

import { expect, test } from 'vitest';
import { KeyRing } from '../../src/http/auth.js';
import { headerOf, INGEST_KEY, KEY, LIMITED_KEY, problemsOf, TestService } from './service.js';

const LOGS = '/api/endpoints/query/logs.all?project=alpha&project_tier=PRO';

test('token missing or wrong: 401, the same answer whichever it was, before anything else is said', async () => {
  const service = new TestService();
  const expected = await service.ask(LOGS, { 'X-API-KEY': '' });
  expect(problemsOf(expected)).toMatch(/^401 UNAUTHENTICATED a valid API key is required/);
  expect(headerOf(expected, 'WWW-Authenticate')).toBe('Bearer realm="logring"');
  for (const key of ['', 'wrong', KEY.toUpperCase(), `${KEY}x`, KEY.slice(1), INGEST_KEY]) {
    for (const target of [
      LOGS,
      '/api/endpoints/query/nope',
      '/api/endpoints/query/logs.all?project=%zz',
      '/api/x',
    ]) {
      for (const method of ['GET', 'HEAD', 'DELETE']) {
        expect(await service.ask(target, { 'X-API-KEY': key }, method)).toEqual(expected);
      }
    }
  }
});

test('three ways to bring a key; the first that is there counts: X-API-KEY, Authorization: Bearer, api_key', async () => {
  const service = new TestService();
  const check = async (headers: Record<string, string>, query: string, status: number) =>
    expect((await service.ask(LOGS + query, { 'X-API-KEY': '', ...headers })).status).toBe(status);
  const bearer = (key: string) => ({ Authorization: `Bearer ${key}` });
  await check({ 'X-API-KEY': KEY }, '', 200);
  await check(bearer(KEY), '', 200);
  await check({ Authorization: `bearer   ${KEY}` }, '', 200);
  await check({}, `&api_key=${KEY}`, 200);
  await check({ 'X-API-KEY': KEY, ...bearer('wrong') }, '&api_key=wrong', 200);
  await check({ 'X-API-KEY': 'wrong', ...bearer(KEY) }, `&api_key=${KEY}`, 401);
  await check(bearer('wrong'), `&api_key=${KEY}`, 401);
  await check({ Authorization: `Basic ${KEY}` }, '', 401);
  await check({ Authorization: KEY }, '', 401);
  await check({}, '&api_key=%zz', 401);
  await check({}, '&api_key=', 401);
});

test('several keys at once, for rotation; of two equal ones the first counts', () => {
  const ring = new KeyRing([
    { key: 'old', projects: null },
    { key: 'new', projects: ['a'] },
    { key: 'new', projects: ['b'] },
  ]);
  expect(ring.grantOf('old')?.projects).toBe(null);
  expect([...(ring.grantOf('new')?.projects ?? [])]).toEqual(['a']);
  expect(ring.grantOf('')).toBe(null);
  expect(new KeyRing([]).grantOf('old')).toBe(null);
  // An empty key is never valid, even if one was configured.
  expect(new KeyRing([{ key: '', projects: null }]).grantOf('')).toBe(null);
});

test('a key limited to projects: 403 for another project, by header, name and id alike', async () => {
  const service = new TestService();
  const check = async (target: string, status: number) =>
    expect((await service.ask(`/api/endpoints/query/${target}`, { 'X-API-KEY': LIMITED_KEY })).status).toBe(
      status,
    );
  for (const [endpoint, rest] of [
    ['logs.all', '&project_tier=PRO'],
    ['1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a01', '&project_tier=PRO'],
    ['functions.invocation-stats', '&interval=1hr'],
    ['usage.api-counts', '&interval=daily'],
  ]) {
    await check(`${endpoint}?project=alpha${rest}`, 200);
    await check(`${endpoint}?project=beta${rest}`, 200);
    await check(`${endpoint}?project=gamma${rest}`, 403);
    await check(`${endpoint}?project=Alpha${rest}`, 403);
    await check(`${endpoint}?project=gamma`, 403);
    await check(`${endpoint}?${rest}`, 400);
    await check(`${endpoint}?project=alpha&project=gamma${rest}`, 400);
  }
  expect(service.queries.takeAsked().join('\n')).not.toContain('gamma');
});

test('usage.api-counts with a limited key: only a project’s name literally, never another expression', async () => {
  const service = new TestService();
  for (const expression of ['alph', 'alpha|gamma', '.', '', '(alpha)', 'alpha ', '^alpha', 'alpha%00']) {
    const target = `/api/endpoints/query/usage.api-counts?project=${encodeURIComponent(expression)}&interval=daily`;
    const answer = await service.ask(target, { 'X-API-KEY': LIMITED_KEY });
    expect(answer.status).toBe(expression === '' ? 400 : 403);
  }
  expect(service.queries.takeAsked()).toEqual([]);
});

test('usage.api-counts with a limited key whose project has a dot in its name: no other is counted', async () => {
  const service = new TestService({
    keys: new KeyRing([
      { key: KEY, projects: null },
      { key: LIMITED_KEY, projects: ['shop.eu'] },
    ]),
  });
  const target = '/api/endpoints/query/usage.api-counts?project=shop.eu&interval=daily';
  for (const [key, expression] of [
    [LIMITED_KEY, 'shop\\.eu'],
    [KEY, 'shop.eu'],
  ]) {
    expect((await service.ask(target, { 'X-API-KEY': key })).status).toBe(200);
    expect(service.queries.takeAsked()).toEqual([expect.stringContaining(expression)]);
  }
});

test('ingest has keys of its own; a limited key may not post logs', async () => {
  const service = new TestService();
  const check = async (key: string, status: number) =>
    expect(
      (await service.post('/api/logs?source_name=edge', [Buffer.from('[]')], { 'X-API-KEY': key })).status,
    ).toBe(status);
  await check(INGEST_KEY, 200);
  await check(KEY, 401);
  await check('', 401);
  await check(LIMITED_KEY, 403);
});
