/** How often a key may ask: against a naive count of the last second, and 429 wherever a key is taken. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { US_PER_SECOND } from '../../engine/time.js';
import { KeyRing } from '../../src/http/auth.js';
import { RequestPace, RequestPaces } from '../../src/http/request-pace.js';
import { headerOf, INGEST_KEY, KEY, problemsOf, TestService } from './service.js';

const TARGET = '/api/endpoints/query/functions.invocation-stats?project=p&interval=1hr';

test('a burst of a second is let through, then one a turn; who waits as told may ask again', () => {
  const pace = new RequestPace(3);
  const taken = (nowUs: number) => Math.ceil(pace.take(nowUs));
  expect([0, 0, 0, 0].map(taken)).toEqual([0, 0, 0, 333_334]);
  expect(taken(333_000)).toBe(334);
  expect(taken(333_334)).toBe(0);
  expect(taken(333_334)).toBe(333_333);
  // After any rest no more than a second's worth comes at once.
  expect([0, 0, 0, 0].map(() => taken(1e12)).filter((waitUs) => waitUs === 0)).toHaveLength(3);
});

test('never more than twice the rate within a second, never more than the rate for long, and no one is held up below it', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 50 }),
      fc.array(fc.integer({ min: 0, max: 300_000 }), { minLength: 1, maxLength: 300 }),
      (perSecond, gapsUs) => {
        const pace = new RequestPace(perSecond);
        const allowed: number[] = [];
        let nowUs = 0;
        for (const gapUs of gapsUs) {
          nowUs += gapUs;
          const before = allowed.filter((timeUs) => timeUs > nowUs - US_PER_SECOND).length;
          const waitUs = pace.take(nowUs);
          if (waitUs === 0) allowed.push(nowUs);
          else expect(before > 0 && waitUs <= US_PER_SECOND / perSecond + 1).toBe(true);
        }
        for (const fromUs of allowed) {
          const within = allowed.filter(
            (timeUs) => timeUs >= fromUs && timeUs < fromUs + US_PER_SECOND,
          ).length;
          expect(within).toBeLessThanOrEqual(2 * perSecond);
        }
        expect(allowed.length).toBeLessThanOrEqual(perSecond * (nowUs / US_PER_SECOND + 1) + 1);
      },
    ),
    { seed: 6 },
  );
});

test('over HTTP: 429 with Retry-After, each key by itself, and the same key in both lists once', async () => {
  let nowUs = 0;
  const paces = new RequestPaces(2);
  const service = new TestService({
    keys: new KeyRing(
      [
        { key: KEY, projects: null },
        { key: 'other', projects: null },
      ],
      paces,
    ),
    ingestKeys: new KeyRing(
      [
        { key: KEY, projects: null },
        { key: INGEST_KEY, projects: null },
      ],
      paces,
    ),
    clock: { nowUs: () => 0, monotonicUs: () => nowUs },
    corsOrigins: ['https://a.example'],
  });
  expect((await service.ask(TARGET)).status).toBe(200);
  expect(
    (await service.post('/api/logs?source_name=edge', [Buffer.from('[]')], { 'X-API-KEY': KEY })).status,
  ).toBe(200);
  const refused = await service.ask(TARGET, { Origin: 'https://a.example' });
  expect(problemsOf(refused)).toBe(
    '429 RESOURCE_EXHAUSTED this key asks more often than LOGRING_KEY_REQUESTS_PER_SECOND allows; it may again in 1 s',
  );
  expect(headerOf(refused, 'Retry-After')).toBe('1');
  expect(headerOf(refused, 'Access-Control-Allow-Origin')).toBe('https://a.example');
  const posted = await service.post('/api/logs?source_name=edge', [Buffer.from('[]')], { 'X-API-KEY': KEY });
  expect(posted.status).toBe(429);
  expect((await service.ask('/api/gaps')).status).toBe(429);
  expect((await service.ask(TARGET, { 'X-API-KEY': 'other' })).status).toBe(200);
  // Wrong keys are refused as ever, what takes no key is not counted.
  for (let i = 0; i < 5; i++)
    expect((await service.ask(TARGET, { 'X-API-KEY': `wrong-${i}` })).status).toBe(401);
  for (let i = 0; i < 5; i++) expect((await service.ask('/livez')).status).toBe(200);
  nowUs += US_PER_SECOND / 2;
  expect((await service.ask(TARGET)).status).toBe(200);
  expect((await service.ask(TARGET)).status).toBe(429);
});
