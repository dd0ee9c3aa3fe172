/**
 * SIGKILL at named points of the store, before, amid and after each write, sync, rename, compaction and removal
 * of each kind of file, and at random moments: nothing acknowledged is lost, nothing stands twice, a POST that is sent
 * again with its Idempotency-Key neither, and no file is left behind.
 *
 *   npm run kills      a longer campaign: 300 kills
 *   LOGRING_TEST_KILLS=50 LOGRING_TEST_SEED=7 npx vitest run test/crash/fail-points
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { Random } from '../../src/demo/random.js';
import { SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { Store } from '../../src/store/store.js';
import { type ChildService, EndedEarlyError, startChildService } from '../child-service.js';
import { eventually } from '../eventually.js';
import { rowFilesProblem } from '../simulation/row-file-check.js';
import { FAIL_POINTS } from './fail-point.js';
import { type Post, PostedEntries } from './posted-entries.js';

const KILL_COUNT = Number(process.env.LOGRING_TEST_KILLS ?? 12);
const SEED = Number(process.env.LOGRING_TEST_SEED ?? 1);
const CLIENT_COUNT = 4;
/** So many kills are at a random moment, where none but the count of answers decides. */
const RANDOM_SHARE = 0.1;
const SCRIPT = fileURLToPath(new URL('./killed-service.js', import.meta.url));
const TEST_TIMEOUT_MS = 300_000 + 60_000 * KILL_COUNT;

const directory = mkdtempSync(join(tmpdir(), 'logring-fail-points-'));
let service: ChildService | null = null;
afterAll(async () => {
  await service?.kill('SIGKILL');
  rmSync(directory, { recursive: true, force: true });
});

function start(order: string): Promise<ChildService> {
  const settings = { LOGRING_DATA_DIR: directory, LOGRING_MAX_LAG_RECORDS: '0' };
  return startChildService(settings, [SCRIPT, order]);
}

/** Runs a task that the service may be killed under: false when it was. */
async function survives(service: ChildService, task: () => Promise<void>): Promise<boolean> {
  let isGone = false;
  void service.exited.then(() => {
    isGone = true;
  });
  try {
    await task();
    return !isGone;
  } catch (error) {
    // A request that fails for the kill does so before the end of the process is known.
    if (!(error instanceof TypeError) || !['fetch failed', 'terminated'].includes(error.message)) throw error;
    await service.exited;
    return false;
  }
}

async function caughtUp(service: ChildService): Promise<void> {
  await eventually(async () => (await fetch(`${service.url}/readyz`)).status === 200);
}

/** Posts until the service is gone: by itself, or after so many answers. */
async function postUntilKilled(service: ChildService, posted: PostedEntries, killAfter: number) {
  let answerCount = 0;
  const client = async (): Promise<void> => {
    while (
      await survives(service, async () => {
        await posted.send(service, posted.draw());
        answerCount += 1;
        if (answerCount >= killAfter) await service.kill('SIGKILL');
      })
    );
  };
  await Promise.all([...Array.from({ length: CLIENT_COUNT }, client), service.exited]);
  return answerCount >= killAfter;
}

test(`nothing is lost, doubled or left behind over ${KILL_COUNT} SIGKILLs at named points`, {
  timeout: TEST_TIMEOUT_MS,
}, async () => {
  const random = new Random(SEED);
  const posted = new PostedEntries(random, 'killed');
  const killsByPoint = new Map<string, number>();
  let unchecked: Post[] = [];
  let checkCount = 0;
  for (let kill = 0; kill < KILL_COUNT; kill += 1) {
    // A short run has some of all kinds.
    const point = FAIL_POINTS[(7 * kill) % FAIL_POINTS.length];
    const order = random.chance(RANDOM_SHARE) ? 'never 1' : `${point} ${random.pick([1, 1, 2, 5])}`;
    const note = (what: string): void => void killsByPoint.set(what, (killsByPoint.get(what) ?? 0) + 1);
    const where = `seed ${SEED}, kill ${kill}, ${order}`;
    const firstNew = posted.posts.length;
    try {
      service = await start(order);
    } catch (error) {
      if (!(error instanceof EndedEarlyError) || error.exitCode !== null) throw error;
      note(point);
      continue;
    }
    const current = service;
    const unsure = posted.unknown;
    const isChecked = await survives(current, async () => {
      await caughtUp(current);
      expect(await posted.check(current, unchecked), where).toBeNull();
    });
    if (isChecked) {
      checkCount += 1;
      unchecked = [];
    }
    // Killed between append and answer, or before: sent again each counts once.
    unchecked.push(...unsure);
    await survives(current, async () => {
      for (const post of unsure) await posted.send(current, post);
    });
    const killedFromOutside = await postUntilKilled(current, posted, random.between(60, 300));
    expect(await current.exited, `${where}\n${current.output()}`).toBeNull();
    note(killedFromOutside ? 'a random moment' : point);
    unchecked.push(...posted.posts.slice(firstNew));
  }
  service = await start('never 1');
  await caughtUp(service);
  expect(await posted.check(service, posted.posts), `seed ${SEED}, at the end`).toBeNull();
  expect(await service.kill('SIGTERM')).toBe(0);
  service = null;
  const store = await Store.open(directory, 0);
  const problem = rowFilesProblem(directory, SYSTEM_DISK, store);
  await store.close();
  expect(problem).toBeNull();
  const figures = `${posted.posts.length} POSTs, ${checkCount + 1} checks, ${[...killsByPoint].map(([what, count]) => `${count} ${what}`).join(', ')}`;
  expect(checkCount, figures).toBeGreaterThan(KILL_COUNT / 4);
  if (KILL_COUNT >= FAIL_POINTS.length) expect(killsByPoint.size, figures).toBeGreaterThan(30);
  process.stdout.write(`${KILL_COUNT} kills: ${figures}\n`);
});
