/**
 * The service on a disk that fills up: it turns POSTs away and says why, answers from what it has, goes on by
 * itself when there is room, and neither loses nor doubles what it acknowledged, also when it is killed or
 * stopped while full.
 */

import { afterAll, expect, test } from 'vitest';
import { Random } from '../../src/demo/random.js';
import { ask, type ChildService, startChildService, TEST_KEY } from '../child-service.js';
import { eventually } from '../eventually.js';
import { describeSmallDisk, SmallDisk } from '../small-disk.js';

const SEED = 3;

describeSmallDisk('the service on a full disk', () => {
  const disk = new SmallDisk(24);
  const random = new Random(SEED);
  const acknowledged: string[] = [];
  let sentCount = 0;
  let service: ChildService;
  afterAll(async () => {
    await service?.kill('SIGKILL');
    disk.unmount();
  });

  const start = async () => {
    service = await startChildService({ LOGRING_DATA_DIR: disk.directory, LOGRING_MAX_LAG_RECORDS: '0' });
  };

  /** Posts one large entry of a project of its own; what no compression makes smaller. */
  async function post(): Promise<Response> {
    const project = `p${sentCount++}`;
    const text = Array.from({ length: 12_000 }, () => random.below(2 ** 32).toString(36)).join('');
    const entry = {
      id: project,
      timestamp: Date.now() * 1000,
      project,
      event_message: text,
      metadata: { request: { url: `https://${project}.example.co/rest/v1/t` } },
    };
    const response = await fetch(`${service.url}/api/logs?source_name=cloudflare.logs.prod`, {
      method: 'POST',
      headers: { 'X-API-KEY': TEST_KEY, 'Content-Type': 'application/json' },
      body: JSON.stringify(entry),
    });
    if (response.status === 200) acknowledged.push(project);
    return response;
  }

  async function reasons(): Promise<string[]> {
    return ((await (await fetch(`${service.url}/readyz`)).json()) as { reasons: string[] }).reasons;
  }

  async function rowIds(project: string): Promise<unknown[]> {
    const path = `/api/endpoints/query/logs.all?project=${project}&project_tier=ENTERPRISE`;
    return (await ask(service.url, path)).result.map((row) => row.id);
  }

  async function countedRequests(): Promise<number> {
    const path = '/api/endpoints/query/usage.api-counts?project=example&interval=daily';
    return (await ask(service.url, path)).result.reduce(
      (sum, row) => sum + Number(row.total_rest_requests),
      0,
    );
  }

  async function postUntilFull(): Promise<Response> {
    for (;;) {
      const response = await post();
      if (response.status !== 200) return response;
      await response.arrayBuffer();
    }
  }

  async function expectAllOnce(): Promise<void> {
    await eventually(async () => (await reasons()).length === 0, reasons);
    for (const project of acknowledged) expect(await rowIds(project)).toEqual([project]);
    expect(await countedRequests()).toBe(acknowledged.length);
  }

  test('it pauses, answers, and goes on when there is room', async () => {
    await start();
    for (let i = 0; i < 5; i++) expect((await post()).status).toBe(200);
    await eventually(async () => (await countedRequests()) === 5);
    disk.fill(1024 * 1024);
    const refused = await postUntilFull();
    expect([refused.status, Number(refused.headers.get('retry-after')) > 0]).toEqual([503, true]);
    await eventually(async () => (await reasons()).some((reason) => reason.includes('is full')), reasons);
    const metrics = await (await fetch(`${service.url}/metrics`)).text();
    expect(metrics).toMatch(/^logring_ingest_paused\{cause="disk"\} 1$/m);
    expect(await rowIds('p0')).toEqual(['p0']);
    expect((await post()).status).toBe(503);
    disk.release();
    await expectAllOnce();
    expect((await post()).status).toBe(200);
    const said = service.output().match(/the disk of .* is full/g);
    expect(said?.length).toBe(1);
  });

  test('killed while full: what was acknowledged is there afterwards, once', async () => {
    disk.fill(1024 * 1024);
    await postUntilFull();
    await service.kill('SIGKILL');
    // It starts without room, too.
    await start();
    expect(await rowIds('p0')).toEqual(['p0']);
    disk.release();
    await expectAllOnce();
  });

  test('stopped while full: it ends soon, says so, and loses nothing', async () => {
    disk.fill(512 * 1024);
    await postUntilFull();
    const exitCode = await service.kill('SIGTERM');
    if (exitCode !== 0) expect(service.output()).toMatch(/is full; what was committed is safe/);
    disk.release();
    await start();
    await expectAllOnce();
    expect(await service.kill('SIGTERM')).toBe(0);
  });
});
