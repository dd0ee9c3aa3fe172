/** What the cache keeps of a question is its parameters, not the whole query string that they came in. */

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import { TestService } from './service.js';

const QUESTION_COUNT = 2000;
const JUNK_BYTES = 15_000;
const ROW = {
  bucketStartUs: 0,
  minMs: 1,
  maxMs: 1,
  meanMs: 1,
  p95Ms: 1,
  p99Ms: 1,
  count: 1,
  errorCount: 0,
  classCounts: [0, 1, 0, 0, 0],
};

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Of V8's heap, after a collection. */
function usedBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

test('cached answers to long query strings do not keep the query strings', async () => {
  const service = new TestService();
  service.queries.statsRows = [ROW];
  const ask = async (index: number) => {
    const target = `functions.invocation-stats?project=${'p'.repeat(20)}${index}&interval=1hr&junk=`;
    const junk = Buffer.alloc(JUNK_BYTES, index % 2 === 0 ? 'x' : 'y').toString();
    expect((await service.ask(`/api/endpoints/query/${target}${junk}`)).status).toBe(200);
  };
  await ask(-1);
  service.queries.takeAsked();
  const before = usedBytes();
  for (let i = 0; i < QUESTION_COUNT; i++) await ask(i);
  service.queries.takeAsked();
  expect(service.queryApi.cache?.figures().entries).toBe(QUESTION_COUNT + 1);
  // All of them would be ten times as much.
  expect(usedBytes() - before).toBeLessThan((QUESTION_COUNT * JUNK_BYTES) / 5);
});
