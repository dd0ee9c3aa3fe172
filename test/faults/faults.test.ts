/**
 * The service while calls of the system fail, on a real disk: writes, syncs, renames, removals and truncations, with
 * EIO, ENOSPC, EDQUOT, EROFS, and writes that take half. It goes on, or ends with a sentence; what was acknowledged is
 * there, once.
 *
 *   npm run faults      a longer campaign: 300 trials
 *   LOGRING_TEST_FAULTS=50 LOGRING_TEST_SEED=7 npx vitest run dist/test/faults
 */

import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Random } from '../../src/demo/random.js';
import { SYSTEM_DISK } from '../../src/store/disk/disk.js';
import { Store } from '../../src/store/store.js';
import { type ChildService, startChildService } from '../child-service.js';
import { type Post, PostedEntries } from '../crash/posted-entries.js';
import { eventually } from '../eventually.js';
import { rowFilesProblem } from '../simulation/row-file-check.js';

const TRIAL_COUNT = Number(process.env.LOGRING_TEST_FAULTS ?? 8);
const SEED = Number(process.env.LOGRING_TEST_SEED ?? 1);
const CLIENT_COUNT = 3;
/** POSTs of a client before the fault and with it. */
const POSTS_BEFORE = 5;
const POSTS_WITH = 25;
/** After a refusal. */
const RETRY_MS = 30;
const TEST_TIMEOUT_MS = 120_000 + 30_000 * TRIAL_COUNT;
const SCRIPT = fileURLToPath(new URL('../crash/killed-service.js', import.meta.url));
const SOURCE = fileURLToPath(new URL('../../../test/faults/faults.c', import.meta.url));

const { EIO, ENOSPC, EDQUOT, EROFS } = constants.errno;
const ERRORS = [EIO, ENOSPC, EDQUOT, EROFS];
const FAULTS: readonly (readonly [operation: string, errors: readonly (number | 'short')[]])[] = [
  ['write', [...ERRORS, 'short']],
  ['sync', ERRORS],
  ['rename', ERRORS],
  ['unlink', [EIO, EROFS]],
  // A file is cut back after a write that failed only.
  ['truncate', [EIO, ENOSPC, EROFS]],
];

const canCompile = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0;
if (!canCompile && process.env.CI === 'true')
  throw new Error('a C compiler is needed, for test/faults/faults.c');

interface Fault {
  readonly operation: string;
  readonly error: number | 'short';
  readonly count: number;
}

/** The operations in turn. */
function drawFault(random: Random, trial: number): Fault {
  const [operation, errors] = FAULTS[trial % FAULTS.length];
  return { operation, error: random.pick(errors), count: random.pick([1, 1, 3, 100_000]) };
}

function orderOf({ operation, error, count }: Fault): string {
  const line = (name: string, code: number | 'short', times: number): string =>
    `${name.padEnd(8)} ${String(code).padEnd(8)} ${String(times).padStart(13)}\n`;
  return `${operation === 'truncate' ? line('write', ENOSPC, 2) : ''}${line(operation, error, count)}`;
}

const skipped = canCompile ? '' : ' (skipped: there is no C compiler here)';
describe.skipIf(!canCompile)(`calls of the system that fail${skipped}`, () => {
  let root = '';
  let service: ChildService | null = null;
  beforeAll(() => {
    root = mkdtempSync(join(tmpdir(), 'logring-faults-'));
    execFileSync('cc', [
      '-O1',
      '-shared',
      '-fPIC',
      '-o',
      join(root, 'faults.so'),
      SOURCE,
      '-ldl',
      '-lpthread',
    ]);
  });
  afterAll(async () => {
    await service?.kill('SIGKILL');
    rmSync(root, { recursive: true, force: true });
  });

  test(`${TRIAL_COUNT} trials: nothing is lost or doubled, and no end is a bug`, {
    timeout: TEST_TIMEOUT_MS,
  }, async () => {
    const random = new Random(SEED);
    const posted = new PostedEntries(random, 'faulty');
    const directory = join(root, 'data');
    const order = join(root, 'order');
    const ends = new Map<string, number>();
    const hits = new Set<string>();
    const arm = (text: string): void => writeFileSync(order, text);
    let unchecked: Post[] = [];
    for (let trial = 0; trial < TRIAL_COUNT; trial += 1) {
      const fault = drawFault(random, trial);
      const where = `seed ${SEED}, trial ${trial}, ${JSON.stringify(fault)}`;
      arm('');
      service ??= await start(directory, order, join(root, 'faults.so'));
      const current = service;
      await settle(current, posted);
      expect(await posted.check(current, unchecked), where).toBeNull();
      const firstNew = posted.posts.length;
      const isAlive = () => service !== null;
      void current.exited.then(() => {
        service = null;
      });
      await post(current, posted, POSTS_BEFORE, isAlive);
      arm(orderOf(fault));
      await post(current, posted, POSTS_WITH, isAlive);
      const isHit = remaining(readFileSync(order, 'utf8')) < remaining(orderOf(fault));
      if (isHit) hits.add(fault.operation);
      arm('');
      unchecked = posted.posts.slice(firstNew);
      const name = `${fault.operation} ${errorName(fault.error)}`;
      if (isAlive()) {
        ends.set(`${name}: went on`, (ends.get(`${name}: went on`) ?? 0) + 1);
        continue;
      }
      expect([where, await current.exited], current.output()).toEqual([where, 1]);
      expect(current.output(), where).not.toContain('must not happen');
      ends.set(`${name}: ended`, (ends.get(`${name}: ended`) ?? 0) + 1);
    }
    service ??= await start(directory, order, join(root, 'faults.so'));
    await settle(service, posted);
    expect(await posted.check(service, posted.posts), `seed ${SEED}, at the end`).toBeNull();
    expect(await service.kill('SIGTERM')).toBe(0);
    service = null;
    const store = await Store.open(directory, 0);
    const problem = rowFilesProblem(directory, SYSTEM_DISK, store);
    await store.close();
    expect(problem).toBeNull();
    // A few trials may not reach a rename or a cut.
    for (const operation of ['write', 'sync']) expect([...hits]).toContain(operation);
    if (TRIAL_COUNT >= 100) expect([...hits].sort()).toEqual(FAULTS.map(([operation]) => operation).sort());
    const text = [...ends].sort().map(([what, count]) => `${what} ${count}`);
    process.stdout.write(`${TRIAL_COUNT} trials, ${posted.posts.length} POSTs: ${text.join(', ')}\n`);
  });
});

/** How many more times calls are to fail, all lines together. */
function remaining(order: string): number {
  return order.split('\n').reduce((sum, line) => sum + Number(line.trim().split(/ +/)[2] ?? 0), 0);
}

function start(directory: string, order: string, library: string): Promise<ChildService> {
  const settings = { LOGRING_DATA_DIR: directory, LOGRING_MAX_LAG_RECORDS: '0' };
  const faults = { LD_PRELOAD: library, FAULTS_FOLDER: directory, FAULTS_ORDER: order };
  return startChildService({ ...settings, ...faults }, [SCRIPT, 'never 1']);
}

/** Until all is applied and every POST is known to be stored. */
async function settle(service: ChildService, posted: PostedEntries): Promise<void> {
  await eventually(async () => (await fetch(`${service.url}/readyz`)).status === 200, service.output);
  for (const post of posted.unknown) await posted.send(service, post);
  await eventually(async () => (await fetch(`${service.url}/readyz`)).status === 200, service.output);
}

/** What is refused stays unknown, to be sent again. */
async function post(
  service: ChildService,
  posted: PostedEntries,
  count: number,
  isAlive: () => boolean,
): Promise<void> {
  const client = async (): Promise<void> => {
    for (let i = 0; i < count && isAlive(); i += 1) {
      try {
        await posted.send(service, posted.draw());
      } catch {
        await delay(RETRY_MS);
      }
    }
  };
  await Promise.all(Array.from({ length: CLIENT_COUNT }, client));
}

function errorName(error: number | 'short'): string {
  return Object.entries({ EIO, ENOSPC, EDQUOT, EROFS }).find(([, code]) => code === error)?.[0] ?? 'short';
}
