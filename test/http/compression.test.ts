/** gzip: who gets it, and when it isn't worth it. */

import { gunzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { GZIP_CONCURRENCY_LIMIT, GZIP_MIN_BYTES } from '../../src/http/limits.js';
import { acceptsGzip, Compressor } from '../../src/http/query/compression.js';
import { bodyOf, bytesOf, headerOf, TestService } from './service.js';

test('Accept-Encoding is read with its weights', () => {
  const check = (header: string, expected: boolean) => expect(acceptsGzip(header), header).toBe(expected);
  check('', false);
  check('gzip', true);
  check('GZIP', true);
  check('x-gzip', true);
  check('gzip, deflate, br', true);
  check('br;q=1.0, gzip;q=0.8, *;q=0.1', true);
  check('deflate', false);
  check('identity', false);
  check('*', true);
  check('*;q=0', false);
  check('gzip;q=0', false);
  check('gzip;q=0.000, *', false);
  check('gzip; q=0.001', true);
  check('identity;q=1, gzip;q=0.5', false);
  check('identity;q=0.5, gzip;q=1', true);
  check('gzip;q=2', false);
  check('gzip;q=x', false);
  check('gzipped', false);
  check(', ,gzip', true);
});

test('answers of the three endpoints of the contract are packed on request, small ones and errors never', async () => {
  const service = new TestService();
  const row = {
    bucketStartUs: 0,
    count: 1,
    errorCount: 0,
    classCounts: [0, 1, 0, 0, 0],
    minMs: 1,
    maxMs: 1,
    meanMs: 1,
    p95Ms: 1,
    p99Ms: 1,
  };
  service.queries.logRows = Array.from({ length: 100 }, (_, i) =>
    Buffer.from(`{"id":"${i}","metadata":"some text"}`),
  );
  service.queries.statsRows = Array.from({ length: 61 }, () => row);
  service.queries.usageRows = Array.from({ length: 60 }, () => ({
    bucketStartUs: 0,
    rest: 1,
    storage: 1,
    auth: 0,
    realtime: 0,
  }));
  const gzip = { 'Accept-Encoding': 'gzip' };
  for (const target of [
    'logs.all?project=p&project_tier=PRO',
    'functions.invocation-stats?project=p&interval=1hr',
    'usage.api-counts?project=p&interval=minutely',
  ]) {
    const plain = await service.ask(`/api/endpoints/query/${target}`);
    expect(headerOf(plain, 'Content-Encoding')).toBe(null);
    expect(headerOf(plain, 'Vary')).toBe('Accept-Encoding');
    // Twice: made, and from the cache.
    for (let i = 0; i < 2; i++) {
      const packed = await service.ask(`/api/endpoints/query/${target}`, gzip);
      expect(headerOf(packed, 'Content-Encoding')).toBe('gzip');
      expect(headerOf(packed, 'Vary')).toBe('Accept-Encoding');
      expect(headerOf(packed, 'Age')).toBe(headerOf(plain, 'Age'));
      expect(gunzipSync(bytesOf(packed.body)).toString()).toBe(bodyOf(plain));
    }
    expect(
      headerOf(await service.ask(`/api/endpoints/query/${target}&project=x`, gzip), 'Content-Encoding'),
    ).toBe(null);
  }
  service.queries.logRows = [Buffer.from('{}')];
  const small = await service.ask('/api/endpoints/query/logs.all?project=p&project_tier=PRO', gzip);
  expect([headerOf(small, 'Content-Encoding'), headerOf(small, 'Vary')]).toEqual([null, 'Accept-Encoding']);
});

test('while enough compressions run, the next answers go out as they are', async () => {
  const compressor = new Compressor();
  const body = Buffer.alloc(100_000, 'text');
  const running = Array.from({ length: GZIP_CONCURRENCY_LIMIT }, () => compressor.tryGzip(body, 1));
  expect(compressor.tryGzip(body, 1)).toBe(null);
  await Promise.all(running);
  const packed = await compressor.tryGzip(body, 1);
  expect(gunzipSync(packed ?? '')).toEqual(body);
  expect(compressor.tryGzip(Buffer.alloc(GZIP_MIN_BYTES - 1), 1)).toBe(null);
});
