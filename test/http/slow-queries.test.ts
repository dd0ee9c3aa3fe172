/** Slow queries: which are told, and where their time went. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { SlowQueryLine } from '../../src/http/query/slow-queries.js';
import { startChildService } from '../child-service.js';
import { eventually } from '../eventually.js';
import { BACK_ENDS, RunningServer } from './running-server.js';
import { BugLog, gate, KEY, TestService } from './service.js';

const COUNTS = '/api/endpoints/query/usage.api-counts?interval=daily&project=';

test.each(BACK_ENDS)(
  '%s: at once, later, out of the cache, refused; below the threshold nothing',
  async (backEnd) => {
    const lines: SlowQueryLine[] = [];
    let clockUs = 0;
    const slow = {
      thresholdUs: 1000,
      monotonicUs: () => clockUs,
      write: (line: SlowQueryLine) => lines.push(line),
    };
    const service = new TestService({ slow });
    service.queries.fill();
    const server = await RunningServer.start(backEnd, service.api, new BugLog());
    const ask = async (target: string) =>
      (await fetch(server.url + target, { headers: { 'X-API-KEY': KEY } })).text();
    const check = async (target: string, expected: string) => {
      await ask(target);
      // The server is told by its socket that the client has it.
      await eventually(() => lines.length > 0);
      const [{ endpoint, parameters, status, ms, computeMs, waitMs, packMs, cache }] = lines.splice(0);
      const shown = [endpoint, JSON.stringify(parameters), status, cache, ms, computeMs, waitMs, packMs];
      expect(shown.join(' ')).toBe(expected);
    };

    const { apiCounts } = service.queries;
    service.queries.apiCounts = (parameters, nowUs) => {
      clockUs += 2000;
      return apiCounts.call(service.queries, parameters, nowUs);
    };
    await check(`${COUNTS}a`, 'usage.api-counts {"project":"a","interval":"daily"} 200 miss 2 2 0 0');
    const later = gate();
    service.queries.gate = later.promise.then(() => {
      clockUs += 5000;
    });
    const checked = check(
      `${COUNTS}b`,
      'usage.api-counts {"project":"b","interval":"daily"} 200 miss 7 2 5 0',
    );
    await eventually(() => service.queries.asked.includes('usage b daily'));
    later.open();
    await checked;
    await ask(`${COUNTS}a`);
    expect(lines).toEqual([]);

    slow.thresholdUs = 0;
    await check(`${COUNTS}a`, 'usage.api-counts {"project":"a","interval":"daily"} 200 hit 0 0 0 0');
    const long = 'x'.repeat(300);
    const astray = encodeURIComponent(`?api_key=${KEY}`);
    await check(
      `${COUNTS}${astray}${long}&interval=x&other=y`,
      `usage.api-counts {"project":"?api_key=…${'x'.repeat(190)}…","interval":"daily"} 400  0 0 0 0`,
    );
    await server.server.close(0);
  },
);

test('the service warns of each with 0, and writes no key', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-slow-'));
  const secret = 'a-secret-key-of-the-test';
  const service = await startChildService({
    LOGRING_DATA_DIR: directory,
    LOGRING_API_KEYS: secret,
    LOGRING_SLOW_QUERY_MS: '0',
  });
  await (await fetch(`${service.url}${COUNTS}p%5B0-9%5D&api_key=${secret}`)).text();
  expect(await service.kill('SIGTERM')).toBe(0);
  const line = service
    .output()
    .split('\n')
    .find((one) => one.includes('"msg":"slow query"'));
  expect(JSON.parse(line!)).toMatchObject({
    level: 40,
    endpoint: 'usage.api-counts',
    parameters: { project: 'p[0-9]', interval: 'daily' },
    status: 200,
    cache: null,
  });
  expect(service.output()).not.toContain(secret);
  rmSync(directory, { recursive: true });
});
