/**
 * One process a directory: the election in all orders of its steps, and real processes at once, also of other
 * namespaces.
 */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { lockDirectory } from '../../src/store/directory/directory-lock.js';
import { takeDirectory } from '../../src/store/directory/lock-election.js';
import { type Candidate, explored } from './election-orders.js';

const TAKER = fileURLToPath(new URL('./lock-taker.js', import.meta.url));
/**
 * Some of the former version, of a dead holder, and of processes that were killed before they had published.
 */
const STALE = ['lock', 'lock-0-dead', 'lock-1-dead.new', 'lock-9-dead'];

const directories: string[] = [];
const children = new Set<ChildProcess>();

afterEach(() => {
  for (const child of children) child.kill('SIGKILL');
  children.clear();
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true });
});

function newDirectory(): string {
  const directory = mkdtempSync(join(tmpdir(), 'logring-lock-'));
  directories.push(directory);
  return directory;
}

test('in every order of the steps of two, each of which may be killed or leave, one at most holds', () => {
  const { problems, stateCount } = explored(takeDirectory, {
    names: ['lock-3-a', 'lock-5-b'],
    stale: STALE,
    endings: 2,
  });
  expect(problems).toEqual([]);
  expect(stateCount).toBeGreaterThan(1_000);
});

test('in every order of the steps of three, one holds, and one at most where one is killed or leaves', () => {
  const names = ['lock-3-a', 'lock-5-b', 'lock-7-c'];
  for (const order of [
    { names, stale: ['lock-4-dead'], endings: 0 },
    { names, stale: [], endings: 1 },
  ]) {
    const { problems, stateCount } = explored(takeDirectory, order);
    expect(problems).toEqual([]);
    expect(stateCount).toBeGreaterThan(1_000);
  }
});

test('the exploration finds an election that lists before it publishes', () => {
  const hasty: Candidate = function* (own) {
    const seen = yield { do: 'list' };
    const steps = takeDirectory(own);
    let step = steps.next();
    while (step.done !== true) step = steps.next(step.value.do === 'list' ? seen : yield step.value);
    return step.value;
  };
  const { problems } = explored(hasty, { names: ['lock-3-a', 'lock-5-b'], stale: [], endings: 0 });
  expect(problems.join()).toMatch(/two hold/);
});

test('the exploration finds an election that removes names of the living', () => {
  const tidy: Candidate = function* (own) {
    const steps = takeDirectory(own);
    let step = steps.next();
    let names: readonly string[] = [];
    while (step.done !== true) {
      const found: readonly string[] = yield step.value;
      if (step.value.do === 'list') names = found.filter((name) => name !== own);
      if (step.value.do === 'look') for (const name of names) yield { do: 'remove', name };
      step = steps.next(found);
    }
    return step.value;
  };
  const { problems } = explored(tidy, { names: ['lock-3-a', 'lock-5-b', 'lock-7-c'], stale: [], endings: 0 });
  expect(problems.join()).toMatch(/two hold/);
});

interface Taker {
  readonly child: ChildProcess;
  /** The next line that it says. */
  said(): Promise<string>;
  take(directory: string): Promise<string>;
}

async function startTaker(around: readonly string[] = []): Promise<Taker> {
  const [program, ...args] = [...around, process.execPath, TAKER];
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] });
  children.add(child);
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  const said = async (): Promise<string> => (await lines.next()).value ?? 'ended';
  const take = (directory: string): Promise<string> => {
    child.stdin!.write(`${directory}\n`);
    return said();
  };
  expect(await said()).toBe('waits');
  return { child, said, take };
}

async function killed({ child }: Taker): Promise<void> {
  // Its output is closed when the processes that it has started are gone too.
  const ended = new Promise((resolve) => child.once('close', resolve));
  child.kill('SIGKILL');
  await ended;
  children.delete(child);
}

const REFUSED = /^DirectoryInUseError: the data directory .* is in use by another Logring process/;

test('of twelve processes that start at once, over what a killed one has left, one holds', async () => {
  const directory = newDirectory();
  const takers = await Promise.all(Array.from({ length: 12 }, () => startTaker()));
  for (let round = 0; round < 25; round++) {
    const said = await Promise.all(takers.map((taker) => taker.take(directory)));
    expect(said.filter((line) => line === 'held')).toHaveLength(1);
    expect(said.filter((line) => line !== 'held' && !REFUSED.test(line))).toEqual([]);
    const holder = said.indexOf('held');
    await killed(takers[holder]);
    takers[holder] = await startTaker();
  }
  // What is left is the last holder's.
  expect(readdirSync(directory)).toHaveLength(1);
});

test('a holder that is stopped (SIGSTOP) holds on, and one that was killed does not', async () => {
  const directory = newDirectory();
  const [holder, other] = [await startTaker(), await startTaker()];
  expect(await holder.take(directory)).toBe('held');
  holder.child.kill('SIGSTOP');
  expect(await other.take(directory)).toMatch(REFUSED);
  await killed(holder);
  expect(await other.take(directory)).toBe('held');
});

const UNSHARED = ['unshare', '--pid', '--net', '--mount', '--fork', '--kill-child=SIGKILL'];
const canUnshare = spawnSync(UNSHARED[0], [...UNSHARED.slice(1), 'true']).status === 0;

test.skipIf(!canUnshare)(
  'a process in other namespaces, as of another container, is seen (needs unshare)',
  async () => {
    const directory = newDirectory();
    const takers = await Promise.all([UNSHARED, UNSHARED, [], []].map((around) => startTaker(around)));
    while (takers.length > 0) {
      const said = await Promise.all(takers.map((taker) => taker.take(directory)));
      expect(said.filter((line) => line === 'held')).toHaveLength(1);
      expect(said.filter((line) => line !== 'held' && !REFUSED.test(line))).toEqual([]);
      const [holder] = takers.splice(said.indexOf('held'), 1);
      await killed(holder);
    }
  },
);

test('a holder of the former version is seen, and what it left when it was killed is removed', async () => {
  const directory = newDirectory();
  const former = createServer();
  await new Promise<void>((resolve) => former.listen(join(directory, 'lock'), resolve));
  await expect(lockDirectory(directory)).rejects.toThrow(/in use by another/);
  await new Promise((resolve) => former.close(resolve));
  await (await lockDirectory(directory)).release();
  expect(readdirSync(directory)).toEqual([]);
});

test('a path that is longer than a socket may have is locked like any other', async () => {
  const directory = join(newDirectory(), 'long'.repeat(40));
  mkdirSync(directory);
  const lock = await lockDirectory(directory);
  await expect(lockDirectory(directory)).rejects.toThrow(/in use by another/);
  await lock.release();
  await (await lockDirectory(directory)).release();
});
