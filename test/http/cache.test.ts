/** The result cache: against a naive twin from a seed, and its promises one by one. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { CACHE_ENTRY_OVERHEAD_BYTES, WARM_BATCH_SIZE } from '../../src/http/limits.js';
import { type CacheOptions, ResultCache } from '../../src/http/query/cache.js';
import { gate } from './service.js';

const CACHE_US = 900;
const WARM_US = 300;

function cacheWith(options: Partial<CacheOptions> = {}): ResultCache {
  return new ResultCache({
    cacheUs: CACHE_US,
    warmUs: WARM_US,
    entryLimit: 1000,
    byteLimit: 1e9,
    warmingFailed: (error) => {
      throw error;
    },
    ...options,
  });
}

/** A body that says when it was computed. */
const stamp = (nowUs: number) => Buffer.from(String(nowUs));

function get(cache: ResultCache, key: string, nowUs: number, verb: 'get' | 'refresh' = 'get'): string {
  const answer = cache[verb](key, nowUs, stamp);
  if (answer instanceof Promise) throw new Error('computed at once');
  return Buffer.from(answer.body).toString();
}

/** The same rules over an array, looked through from end to end each time. No limits, no batches. */
class NaiveCache {
  readonly #entries: { key: string; computedUs: number; askedUs: number; dueUs: number }[] = [];

  get(key: string, nowUs: number): string {
    const entry = this.#entries.find((candidate) => candidate.key === key);
    if (entry === undefined || entry.computedUs > nowUs || nowUs - entry.computedUs >= CACHE_US) {
      return this.refresh(key, nowUs);
    }
    entry.askedUs = nowUs;
    return String(entry.computedUs);
  }

  refresh(key: string, nowUs: number): string {
    const at = this.#entries.findIndex((entry) => entry.key === key);
    if (at >= 0) this.#entries.splice(at, 1);
    this.#entries.push({ key, computedUs: nowUs, askedUs: nowUs, dueUs: nowUs + WARM_US });
    return String(nowUs);
  }

  warmDue(nowUs: number): void {
    for (const entry of [...this.#entries]) {
      if (nowUs - entry.askedUs >= CACHE_US) this.#entries.splice(this.#entries.indexOf(entry), 1);
    }
    for (const entry of this.#entries) {
      if (entry.dueUs > nowUs) continue;
      entry.computedUs = nowUs;
      entry.dueUs = nowUs + WARM_US;
    }
  }

  get size(): number {
    return this.#entries.length;
  }
}

test('cache and naive twin give the same answers at the same times', () => {
  const step = fc.record({
    afterUs: fc.oneof(fc.nat(50), fc.nat(1000)),
    verb: fc.constantFrom('get' as const, 'get' as const, 'refresh' as const, 'warmDue' as const),
    key: fc.constantFrom('a', 'b', 'c', 'd'),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const cache = cacheWith();
      const twin = new NaiveCache();
      let nowUs = 10_000;
      for (const { afterUs, verb, key } of steps) {
        nowUs += afterUs;
        if (verb === 'warmDue') {
          cache.warmDue(nowUs);
          twin.warmDue(nowUs);
        } else {
          expect(get(cache, key, nowUs, verb)).toBe(twin[verb](key, nowUs));
        }
        expect(cache.figures().entries).toBe(twin.size);
      }
    }),
    { seed: 20261121, numRuns: 500 },
  );
});

test('warming: recomputed every 300 s while cached, so that an answer that is asked for is never older', () => {
  const cache = cacheWith();
  expect(get(cache, 'a', 0)).toBe('0');
  cache.warmDue(299);
  expect(get(cache, 'a', 299)).toBe('0');
  cache.warmDue(300);
  expect(get(cache, 'a', 310)).toBe('300');
  cache.warmDue(600);
  expect(get(cache, 'a', 610)).toBe('600');
});

test('warming alone keeps nothing alive: what nobody asked for during the cache time is dropped', () => {
  const cache = cacheWith();
  get(cache, 'a', 0);
  get(cache, 'b', 0);
  for (let nowUs = 100; nowUs < 900; nowUs += 100) {
    get(cache, 'b', nowUs);
    cache.warmDue(nowUs);
  }
  expect(cache.figures().entries).toBe(2);
  cache.warmDue(900);
  expect(cache.figures().entries).toBe(1);
  expect(get(cache, 'b', 900)).toBe('900');
  expect(get(cache, 'a', 901)).toBe('901');
});

test('warming is bounded: a batch a call, and a batch under way at most', async () => {
  const cache = cacheWith();
  for (let i = 0; i < 3 * WARM_BATCH_SIZE; i++) get(cache, `sync${i}`, 0);
  cache.warmDue(300);
  expect(cache.figures().warmings).toBe(WARM_BATCH_SIZE);
  cache.warmDue(300);
  cache.warmDue(300);
  cache.warmDue(300);
  expect(cache.figures().warmings).toBe(3 * WARM_BATCH_SIZE);

  const slow = cacheWith();
  const warming = gate();
  for (let i = 0; i < 2 * WARM_BATCH_SIZE; i++) {
    await slow.get(`slow${i}`, 0, async (nowUs) => {
      if (nowUs > 0) await warming.promise;
      return stamp(nowUs);
    });
  }
  slow.warmDue(300);
  slow.warmDue(301);
  expect(slow.figures().warmings).toBe(WARM_BATCH_SIZE);
  warming.open();
  await new Promise(setImmediate);
  slow.warmDue(302);
  expect(slow.figures().warmings).toBe(2 * WARM_BATCH_SIZE);
  expect(get(slow, 'slow0', 303)).toBe('300');
});

test('warming that fails keeps the old answer until it is too old, and is tried again a period later', () => {
  const failures: unknown[] = [];
  const cache = cacheWith({ warmingFailed: (error) => failures.push(error) });
  const compute = (nowUs: number) => {
    if (nowUs === 300) throw new Error('once');
    return stamp(nowUs);
  };
  cache.get('a', 0, compute);
  cache.warmDue(300);
  cache.warmDue(301);
  expect(failures.length).toBe(1);
  expect(get(cache, 'a', 302)).toBe('0');
  cache.warmDue(600);
  expect(get(cache, 'a', 601)).toBe('600');
});

test('warming with an answer of an old state leaves that of a fresh one; one that was asked for takes its place', () => {
  const isOld = new Set<string>();
  const cache = cacheWith({ isOld: (body) => isOld.has(String(body)) });
  expect(get(cache, 'a', 1_000)).toBe('1000');
  isOld.add('1300').add('1310').add('1320');
  cache.warmDue(1_300);
  expect(get(cache, 'a', 1_301)).toBe('1000');
  expect(get(cache, 'a', 1_310, 'refresh')).toBe('1310');
  expect(get(cache, 'a', 1_311)).toBe('1311');
  expect(get(cache, 'b', 1_320)).toBe('1320');
  expect(get(cache, 'b', 1_321)).toBe('1321');
});

test('warming off: nothing is recomputed, and what is too old goes', () => {
  const cache = cacheWith({ warmUs: 0 });
  get(cache, 'a', 0);
  cache.warmDue(800);
  expect(cache.figures()).toMatchObject({ entries: 1, warmings: 0 });
  cache.warmDue(900);
  expect(cache.figures()).toMatchObject({ entries: 0, bytes: 0 });
});

test('concurrent identical misses share one computation; errors reach all of them and are not cached', async () => {
  const cache = cacheWith();
  const opened = gate();
  let runs = 0;
  const compute = async (nowUs: number) => {
    runs += 1;
    await opened.promise;
    if (runs === 1) throw new Error('first run');
    return stamp(nowUs);
  };
  const first = [cache.get('a', 1, compute), cache.get('a', 2, compute)];
  expect(runs).toBe(1);
  opened.open();
  const settled = await Promise.allSettled(first);
  expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  const second = await Promise.all([cache.get('a', 3, compute), cache.get('a', 4, compute)]);
  expect(runs).toBe(2);
  expect(second.map(({ computedUs }) => computedUs)).toEqual([3, 3]);
});

test('a computation that began earlier and ends later does not replace the newer answer', async () => {
  const cache = cacheWith();
  const opened = gate();
  const slow = cache.refresh('a', 1, async (nowUs) => {
    await opened.promise;
    return stamp(nowUs);
  });
  get(cache, 'a', 2, 'refresh');
  opened.open();
  expect((await slow).computedUs).toBe(1);
  expect(get(cache, 'a', 3)).toBe('2');
});

test('bounded by entries and by bytes: what was asked for longest ago goes first', () => {
  const byEntries = cacheWith({ entryLimit: 2 });
  get(byEntries, 'a', 1);
  get(byEntries, 'b', 2);
  get(byEntries, 'a', 3);
  get(byEntries, 'c', 4);
  expect([get(byEntries, 'a', 5), get(byEntries, 'c', 6), get(byEntries, 'b', 7)]).toEqual(['1', '4', '7']);
  expect(byEntries.figures()).toMatchObject({ entries: 2, evictions: 2 });

  const entryBytes = CACHE_ENTRY_OVERHEAD_BYTES + 4 + 100;
  const byBytes = cacheWith({ byteLimit: 2 * entryBytes });
  const compute = () => Buffer.alloc(100);
  for (const key of ['a', 'b', 'c']) byBytes.get(key, 1, compute);
  expect(byBytes.figures()).toMatchObject({ entries: 2, bytes: 2 * entryBytes });
  // Too big for the cache: answered all the same.
  expect(byBytes.get('d', 2, () => Buffer.alloc(10_000))).toMatchObject({ computedUs: 2 });
  expect(byBytes.figures()).toMatchObject({ entries: 0, bytes: 0 });
});

test('packed copies count, and only those of the answer that is cached', () => {
  const cache = cacheWith();
  const answer = cache.get('a', 1, stamp);
  if (answer instanceof Promise) throw new Error('computed at once');
  const { bytes } = cache.figures();
  cache.addPacked(answer, Buffer.alloc(50));
  expect(answer.packed?.length).toBe(50);
  expect(cache.figures().bytes).toBe(bytes + 50);
  cache.refresh('a', 2, stamp);
  cache.addPacked(answer, Buffer.alloc(50));
  expect(cache.figures().bytes).toBe(bytes);
});

test('a clock that is set back: nothing from the future is answered, warmed late or kept', () => {
  const cache = cacheWith();
  get(cache, 'a', 1_000_000);
  get(cache, 'b', 1_000_000);
  expect(get(cache, 'a', 500)).toBe('500');
  cache.warmDue(501);
  expect(cache.figures().entries).toBe(1);
  cache.warmDue(800);
  expect(get(cache, 'a', 801)).toBe('800');
});
