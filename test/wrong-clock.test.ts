/**
 * The whole service with a clock that is wrong: nothing is deleted by it, and nothing that has expired by it
 * is shown.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { US_PER_DAY, US_PER_HOUR } from '../engine/time.js';
import type { ServiceStatus } from '../src/console/service-status.js';
import type { Service } from '../src/service/service.js';
import { startClockedService } from './clocked-service.js';
import { LARGER, NOW_US, PROJECTS, writeSmallStore } from './damage/small-store.js';
import { eventually } from './eventually.js';

const KEY = 'key-of-the-clock';

let directory = '';
let service: Service | null = null;
/** The clock, and the one that never steps. */
let nowUs = NOW_US;
let ranUs = 0;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'logring-clock-'));
  nowUs = NOW_US;
  await writeSmallStore(directory, LARGER);
});
afterEach(async () => {
  await stop();
  rmSync(directory, { recursive: true, force: true });
});

async function start(): Promise<Service> {
  const settings = { LOGRING_DATA_DIR: directory, LOGRING_API_KEYS: KEY };
  const started = await startClockedService(settings, { nowUs: () => nowUs, monotonicUs: () => ranUs });
  service = started;
  await eventually(async () => (await fetch(`${started.url}/readyz`)).status === 200);
  return started;
}

async function stop(): Promise<void> {
  await service?.stop();
  service = null;
}

async function ask(path: string): Promise<unknown> {
  const response = await fetch(`${service!.url}${path}`, { headers: { 'X-API-KEY': KEY } });
  expect(response.status).toBe(200);
  return response.json();
}

/** Everything that can be asked. */
async function answers(): Promise<unknown[]> {
  const paths = PROJECTS.flatMap((project) => [
    `logs.all?project=${project}&project_tier=ENTERPRISE`,
    ...['5min', '15min', '1hr', '1day', '7day'].map(
      (interval) => `functions.invocation-stats?project=${project}&interval=${interval}`,
    ),
    ...['minutely', 'hourly', 'daily'].map(
      (interval) => `usage.api-counts?project=${project}&interval=${interval}`,
    ),
  ]);
  const all: unknown[] = [];
  for (const path of paths) all.push(await ask(`/api/endpoints/query/${path}`));
  return all;
}

async function rowCount(): Promise<number> {
  const { views } = (await ask('/api/status')) as ServiceStatus;
  const { lines } = views.find(({ name }) => name === 'rows')!;
  return lines.reduce((sum, { values }) => sum + values[0]!, 0);
}

test.each([2, 26, 2400])(
  'a start with the clock %i hours ahead shows nothing that has expired by it, and deletes nothing',
  async (hours) => {
    await start();
    const before = await answers();
    await stop();
    nowUs = NOW_US + hours * US_PER_HOUR;
    const wrong = await start();
    const meanwhile = await answers();
    expect(await (await fetch(`${wrong.url}/readyz`)).text()).toContain(
      `by the clock ${60 * hours} minutes passed while the service was not running`,
    );
    if (hours === 2400) expect(meanwhile).toEqual(meanwhile.map(() => ({ result: [] })));
    expect(meanwhile).not.toEqual(before);
    await wrong.commit();
    await stop();
    nowUs = NOW_US;
    await start();
    expect(await answers()).toEqual(before);
  },
);

test('what has expired over an absence is deleted after an hour of running', async () => {
  await start();
  const before = await rowCount();
  await stop();
  nowUs = NOW_US + 3 * US_PER_DAY;
  await start();
  expect(await rowCount()).toBe(before);
  nowUs += US_PER_HOUR;
  ranUs += US_PER_HOUR;
  await eventually(async () => (await rowCount()) < before);
});

test('a clock that steps ahead by days makes no POST count twice, in its first hour', async () => {
  await start();
  const post = async (idempotencyKey: string, id: string): Promise<number> => {
    const { status } = await fetch(`${service!.url}/api/logs?source_name=edge`, {
      method: 'POST',
      headers: { 'X-API-KEY': KEY, 'Content-Type': 'application/json', 'Idempotency-Key': idempotencyKey },
      body: JSON.stringify({ id, project: 'p', timestamp: nowUs }),
    });
    return status;
  };
  expect(await post('k', 'a')).toBe(200);
  nowUs += 3 * US_PER_DAY;
  expect(await post('next', 'b')).toBe(200);
  // Known by its key, with another body.
  expect(await post('k', 'c')).toBe(409);
  await stop();
  await start();
  expect(await post('k', 'c')).toBe(409);
  nowUs += US_PER_HOUR;
  ranUs += US_PER_HOUR;
  await eventually(async () => (await post('k', 'c')) === 200);
});
