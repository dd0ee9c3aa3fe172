/**
 * SIGKILL on the service while clients post to the embedded log: every POST that was acknowledged is there
 * afterwards, none twice, and one that was not acknowledged is there whole or not at all. Most entries are
 * days old, so that after each start their hours are sealed and compacted while the next kill comes.
 */

import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { Random } from '../../src/demo/random.js';
import { ask, type ChildService, startChildService, TEST_KEY } from '../child-service.js';
import { eventually } from '../eventually.js';

const KILL_COUNT = Number(process.env.LOGRING_TEST_KILLS ?? 5);
const CLIENT_COUNT = 6;
/** Within the seven days that usage counts. */
const OLDEST_MS = 6 * 24 * 3_600_000;

const directory = mkdtempSync(join(tmpdir(), 'logring-crash-'));
let service: ChildService;
afterAll(async () => {
  await service?.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});

/** One POST: so few entries for a project of its own that `logs.all` shows them all. */
interface Post {
  readonly project: string;
  readonly ids: readonly string[];
  acknowledged: boolean;
}

async function send(url: string, post: Post, timestampUs: number): Promise<void> {
  const entries = post.ids.map((id) => ({
    id,
    timestamp: timestampUs,
    project: post.project,
    event_message: 'x'.repeat(200),
    metadata: { request: { url: `https://${post.project}.example.co/rest/v1/t` } },
  }));
  const response = await fetch(`${url}/api/logs?source_name=cloudflare.logs.prod`, {
    method: 'POST',
    headers: { 'X-API-KEY': TEST_KEY, 'Content-Type': 'application/json' },
    body: JSON.stringify(entries),
  });
  if (response.status !== 200) throw new Error(`POST answered ${response.status}: ${await response.text()}`);
  await response.arrayBuffer();
  post.acknowledged = true;
}

/** Clients that post until the service goes, which it does after `killAfter` acknowledgements. */
async function postUntilKilled(service: ChildService, posts: Post[], random: Random, killAfter: number) {
  let acknowledged = 0;
  const client = async () => {
    for (;;) {
      const project = `p${posts.length}`;
      const ids = Array.from({ length: random.between(1, 60) }, (_, i) => `${project}-${i}`);
      const post: Post = { project, ids, acknowledged: false };
      const ageMs = random.chance(0.3) ? 0 : random.below(OLDEST_MS);
      posts.push(post);
      try {
        await send(service.url, post, (Date.now() - ageMs) * 1000);
      } catch {
        // The service is gone; whether this POST counted is what the test finds out.
        return;
      }
      acknowledged += 1;
      if (acknowledged === killAfter) void service.kill('SIGKILL');
    }
  };
  await Promise.all([...Array.from({ length: CLIENT_COUNT }, client), service.exited]);
}

test(`nothing acknowledged is lost and nothing stands twice over ${KILL_COUNT} SIGKILLs`, async () => {
  const seed = Number(process.env.LOGRING_TEST_SEED ?? 1);
  const random = new Random(seed);
  const posts: Post[] = [];
  for (let kill = 0; kill < KILL_COUNT; kill++) {
    service = await startChildService({ LOGRING_DATA_DIR: directory });
    await postUntilKilled(service, posts, random, random.between(1, 400));
  }
  service = await startChildService({ LOGRING_DATA_DIR: directory, LOGRING_MAX_LAG_RECORDS: '0' });
  // What was acknowledged and not yet committed is applied again after the start.
  await eventually(async () => (await fetch(`${service.url}/readyz`)).status === 200);
  let appliedCount = 0;
  for (const post of posts) {
    const { result } = await ask(
      service.url,
      `/api/endpoints/query/logs.all?project=${post.project}&project_tier=ENTERPRISE`,
    );
    const ids = result.map((row) => row.id).sort();
    if (post.acknowledged || ids.length > 0) expect(ids, `seed ${seed}`).toEqual([...post.ids].sort());
    appliedCount += ids.length;
  }
  const counts = await ask(
    service.url,
    '/api/endpoints/query/usage.api-counts?project=example&interval=daily',
  );
  const counted = counts.result.reduce((sum, row) => sum + Number(row.total_rest_requests), 0);
  expect(counted).toBe(appliedCount);
  expect(posts.filter(({ acknowledged }) => acknowledged).length).toBeGreaterThan(KILL_COUNT);
  expect(await service.kill('SIGTERM')).toBe(0);
  const files = readdirSync(join(directory, 'shards'), { recursive: true, encoding: 'utf8' });
  // What was old when the service was last started is in runs of a day by now.
  expect(files.filter((name) => /\/d\d+-\d+$/.test(name)).length).toBeGreaterThan(0);
  expect(files.filter((name) => name.includes('spill'))).toEqual([]);
}, 600_000);
