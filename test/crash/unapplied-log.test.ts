/** A start of the embedded log with more acknowledged than applied: no answer lacks any of it. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { StoredRecord } from '../../ingest/embedded-log/durable-log.js';
import { LogTable } from '../../src/store/log-table.js';
import { Store } from '../../src/store/store.js';
import { type ChildService, startChildService, TEST_KEY } from '../child-service.js';

const TOPIC = 'cloudflare.logs.prod';
/** Applying them takes far longer than the first requests. */
const ENTRY_COUNT = 120_000;
const APPENDED_AT_ONCE = 10_000;

const directory = mkdtempSync(join(tmpdir(), 'logring-unapplied-'));
let service: ChildService;
afterAll(async () => {
  await service?.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});

/** What a process leaves that acknowledged POSTs and was killed before it had applied any. */
async function acknowledge(): Promise<void> {
  const store = await Store.open(directory, 1 << 20);
  const log = new LogTable(store);
  const timestampMs = Date.now() - 60_000;
  const value = Buffer.from(
    JSON.stringify({ project: 'p', metadata: { request: { url: 'https://p.example.co/rest/v1/t' } } }),
  );
  for (let offset = 0; offset < ENTRY_COUNT; ) {
    const records: StoredRecord[] = [];
    while (records.length < APPENDED_AT_ONCE) records.push({ offset: offset++, timestampMs, value });
    await log.append(TOPIC, records);
  }
  await store.close();
}

test('until all that was acknowledged is applied, answers are 503 with a reason; then they are whole', async () => {
  await acknowledge();
  service = await startChildService(
    { LOGRING_DATA_DIR: directory, LOGRING_CACHE_SECONDS: '900' },
    undefined,
    undefined,
    'listening',
  );
  const answer = async (query: string) => {
    const response = await fetch(`${service.url}/api/endpoints/query/${query}`, {
      headers: { 'X-API-KEY': TEST_KEY },
    });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  const usage = () => answer('usage.api-counts?project=p&interval=daily');
  // It answers from a log of its own at once.
  expect(await answer('functions.invocation-stats?project=p&interval=1hr')).toMatchObject({
    status: 200,
    text: '{"result":[]}',
  });
  expect((await fetch(`${service.url}/readyz`)).status).toBe(503);
  let refusedCount = 0;
  for (;;) {
    const { status, headers, text } = await usage();
    if (status === 200) {
      const { result } = JSON.parse(text) as { result: { total_rest_requests: number }[] };
      expect(result.reduce((sum, row) => sum + row.total_rest_requests, 0)).toBe(ENTRY_COUNT);
      expect(headers.get('logring-stale-seconds')).toBe(null);
      break;
    }
    expect([status, headers.get('retry-after')]).toEqual([503, expect.stringMatching(/^[0-9]+$/)]);
    expect(text).toMatch(/UNAVAILABLE.*partition cloudflare\.logs\.prod\/0 has not been read to the end yet/);
    const logs = await answer('logs.all?project=p&project_tier=PRO');
    if (logs.status === 200) expect(JSON.parse(logs.text).result).toHaveLength(100);
    refusedCount++;
  }
  expect(refusedCount).toBeGreaterThan(0);
  expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
});
