/**
 * What has waited beside something that lasts for life leaves nothing behind: objects of the heap are
 * counted.
 */

import { expect, test } from 'vitest';
import { type KafkaClock, wait } from '../ingest/kafka/clock.js';
import { UnpackBudget } from '../ingest/kafka/codecs/unpack-budget.js';
import { Latch } from '../ingest/latch.js';
import { DiskFullError, DiskRoom, UNTOLD } from '../src/store/disk/disk-room.js';
import { objectsAlive } from './objects-alive.js';
import { startFixedService } from './oracle/fixed-service.js';

const ROUNDS = 200;
/** What the rounds themselves have under way; one object kept for each would be ROUNDS of them. */
const UNDER_WAY = ROUNDS / 4;

const DUE_AT_ONCE: KafkaClock = {
  nowMs: () => 0,
  after: (_delayMs, task) => {
    const timer = setImmediate(task);
    return () => clearImmediate(timer);
  },
};

/** How many more objects of the class there are after more rounds. */
async function growth(ctor: typeof Promise | typeof Array, round: () => Promise<unknown>): Promise<number> {
  for (let i = 0; i < ROUNDS; i++) await round();
  const before = objectsAlive(ctor);
  for (let i = 0; i < ROUNDS; i++) await round();
  return objectsAlive(ctor) - before;
}

async function check(latch: Latch, round: () => Promise<unknown>): Promise<void> {
  expect(await growth(Promise, round)).toBeLessThan(UNDER_WAY);
  expect(latch.waiterCount).toBe(0);
}

test('a wait that is not cut short', async () => {
  const latch = new Latch();
  await check(latch, () => wait(DUE_AT_ONCE, 1, latch));
});

test('work that ends before the latch opens, well or not', async () => {
  const latch = new Latch();
  await check(latch, () => latch.orOpen(Promise.resolve(1)));
  await check(latch, () => latch.orOpen(Promise.reject(new Error('no'))).catch(() => undefined));
});

test('a wait for room to unpack in: released, or over', async () => {
  const latch = new Latch();
  const budget = new UnpackBudget(DUE_AT_ONCE, latch, () => true, 1);
  await check(latch, async () => {
    budget.hold(latch, 2);
    const room = budget.room();
    budget.release(latch);
    await room;
  });
  budget.hold(latch, 2);
  await check(latch, () => budget.room());
});

test('a full disk that is looked at again and again', async () => {
  let looks = 0;
  const platform = {
    disk: { freeBytes: () => 0 },
    wait: () => new Promise<void>((resolve) => setImmediate(resolve)),
  };
  const room = new DiskRoom('/data', platform, UNTOLD);
  let noteLooks: () => void = () => undefined;
  const write = async () => {
    if (++looks % ROUNDS === 0) noteLooks();
    throw new Error('ENOSPC');
  };
  const written = room.retried(write).catch((error: unknown) => error);
  const lookMore = () =>
    new Promise<void>((resolve) => {
      noteLooks = resolve;
    });
  await lookMore();
  const before = objectsAlive(Promise);
  await lookMore();
  expect(objectsAlive(Promise) - before).toBeLessThan(UNDER_WAY);
  room.stopWaiting();
  expect(await written).toBeInstanceOf(DiskFullError);
});

test('a commit that the log has heard of', async () => {
  const service = await startFixedService(1_700_000_000_000_000);
  try {
    expect(await growth(Array, () => service.commit())).toBeLessThan(UNDER_WAY);
  } finally {
    await service.stop();
  }
});

test('who waits when the latch opens is told once, who comes later at once, who left never', () => {
  const latch = new Latch();
  const told: string[] = [];
  latch.whenOpen(() => told.push('waiting'));
  latch.whenOpen(() => told.push('gone'))();
  latch.open();
  latch.open();
  latch.whenOpen(() => told.push('late'));
  expect(told).toEqual(['waiting', 'late']);
});
