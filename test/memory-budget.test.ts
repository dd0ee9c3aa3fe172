/**
 * The memory budget: the cache gives way, then what can be spilled, and last ingest pauses; it goes on with
 * hysteresis.
 */

import { expect, test } from 'vitest';
import { BodyBudget } from '../src/http/ingest/body-memory.js';
import { AnswersInFlight } from '../src/http/server/answers-in-flight.js';
import { IngestGate } from '../src/service/ingest-gate.js';
import { heapGrowingPercent, MemoryBudget, memoryRoomOf } from '../src/service/memory-budget.js';

const MIB = 2 ** 20;

class Rig {
  readonly room = memoryRoomOf(100 * MIB);
  readonly gate = new IngestGate();
  heldMb = 0;
  unappliedMb = 0;
  cacheLimitMb = 0;
  spillCount = 0;
  isNearPause = false;
  readonly budget = new MemoryBudget({
    budgetBytes: 100 * MIB,
    gate: this.gate,
    cache: { heldBytes: 3, limit: (bytes) => this.#limitCache(bytes) },
    parts: [
      { name: 'rows', heldBytes: () => (this.heldMb * MIB) / 4 },
      { name: 'usage', heldBytes: () => (3 * this.heldMb * MIB) / 4 },
      { name: 'answers', heldBytes: () => this.room.takenBytes },
      { name: 'log', heldBytes: () => this.unappliedMb * MIB, isUnapplied: true },
    ],
    room: this.room,
    spill: (isNearPause) => {
      this.spillCount += 1;
      this.isNearPause = isNearPause;
    },
  });

  #limitCache(bytes: number): void {
    this.cacheLimitMb = bytes / MIB;
  }

  /** What a look at so many MiB comes to, such as `cache 25, spilled 0, open`. */
  check(heldMb: number): string {
    this.heldMb = heldMb;
    this.budget.check();
    return `cache ${this.cacheLimitMb}, spilled ${this.spillCount}, ${this.gate.isOpen ? 'open' : 'closed'}`;
  }
}

test('cache, spilling, pausing, and going on, in this order', () => {
  const rig = new Rig();
  expect(rig.check(0)).toBe('cache 25, spilled 0, open');
  expect(rig.check(74)).toBe('cache 16, spilled 0, open');
  expect(rig.check(76)).toBe('cache 14, spilled 1, open');
  expect(rig.check(88)).toBe('cache 2, spilled 2, open');
  expect(rig.check(92)).toBe('cache 0, spilled 3, closed');
  expect(rig.gate.reasons).toEqual([expect.stringContaining('92 MiB are held (usage 69, rows 23, ')]);
  // Not at once: it would pause again with the next entries.
  expect(rig.check(88)).toBe('cache 2, spilled 4, closed');
  expect(rig.check(120)).toBe('cache 0, spilled 5, closed');
  expect(rig.check(84)).toBe('cache 6, spilled 6, open');
  expect(rig.gate.pauseCount('memory')).toBe(1);
  expect(rig.budget.readings()).toEqual([
    { part: 'rows', bytes: 21 * MIB },
    { part: 'usage', bytes: 63 * MIB },
    { part: 'answers', bytes: 0 },
    { part: 'log', bytes: 0 },
    { part: 'block-cache', bytes: 3 },
  ]);
});

test('what is soon needed again is let go of before ingest pauses, not long before', () => {
  const rig = new Rig();
  const near = (heldMb: number): boolean => {
    rig.check(heldMb);
    return rig.isNearPause;
  };
  expect([near(80), near(84), near(86), rig.gate.isOpen]).toEqual([false, false, true, true]);
});

test('bodies and large answers take what is left; the cache gives way at once, and what was refused has others spill', () => {
  const rig = new Rig();
  const { room } = rig;
  expect(rig.check(60)).toBe('cache 25, spilled 0, open');
  expect([room.tryTake(20 * MIB), rig.cacheLimitMb]).toEqual([true, 10]);
  expect([room.tryTake(11 * MIB), rig.cacheLimitMb]).toEqual([false, 10]);
  room.giveBack(20 * MIB);
  expect([rig.check(60), rig.isNearPause]).toEqual(['cache 25, spilled 0, open', false]);
  expect(room.tryTake(31 * MIB)).toBe(false);
  expect([rig.check(60), rig.isNearPause]).toEqual(['cache 25, spilled 1, open', true]);
  expect(rig.check(60)).toBe('cache 25, spilled 1, open');
  // Whatever is refused for good shows: ingest pauses from there on.
  rig.check(88);
  expect([room.tryTake(2 * MIB), room.tryTake(1), rig.gate.isOpen]).toEqual([true, false, true]);
  expect(rig.check(88)).toMatch(/open$/);
  room.giveBack(2 * MIB);
  rig.check(90);
  expect([room.tryTake(1), rig.gate.isOpen]).toEqual([false, false]);
  rig.check(60);
  // One that is alone is possible all the same.
  const answers = new AnswersInFlight(1 * MIB, room);
  const [first, second] = [answers.hold(), answers.hold()];
  expect([first.resize(50 * MIB), second.resize(1), rig.cacheLimitMb]).toEqual([true, false, 0]);
  first.release();
  const body = new BodyBudget(100 * MIB, room);
  expect([body.tryTake(30 * MIB), body.tryTake(1)]).toEqual([true, false]);
  expect([second.resize(6 * MIB), room.takenBytes]).toEqual([false, 30 * MIB]);
  body.giveBack(30 * MIB);
  expect([second.resize(1), room.takenBytes]).toEqual([true, 1]);
});

test('what requests hold pauses ingest before the budget is full, and not for longer', () => {
  const rig = new Rig();
  rig.check(70);
  const answer = new AnswersInFlight(1 * MIB, rig.room).hold();
  expect(answer.resize(27 * MIB)).toBe(true);
  expect(rig.check(70)).toMatch(/open$/);
  expect(rig.check(71)).toMatch(/closed$/);
  answer.release();
  expect(rig.check(88)).toMatch(/open$/);
});

test('what waits to be applied does not pause ingest, which alone can free it', () => {
  const rig = new Rig();
  const gates = (...heldMbs: number[]) => heldMbs.map((heldMb) => rig.check(heldMb).split(', ')[2]);
  rig.unappliedMb = 40;
  expect(gates(70, 89, 92, 88, 84)).toEqual(['open', 'open', 'closed', 'closed', 'open']);
  expect(rig.isNearPause).toBe(true);
});

test('a large answer that is alone, and grows: whatever its size while little is held, else up to the budget', () => {
  const grown = (heldMb: number): [answerMb: number, isNearPause: boolean] => {
    const rig = new Rig();
    rig.check(heldMb);
    const holding = new AnswersInFlight(1 * MIB, rig.room).hold();
    let answerMb = 0;
    while (answerMb < 90 && holding.resize((answerMb + 1) * MIB)) answerMb += 1;
    holding.release();
    rig.check(heldMb);
    return [answerMb, rig.isNearPause];
  };
  expect([40, 60, 74].map(grown)).toEqual(Array(3).fill([90, false]));
  // More than that was wanted: others are to make room.
  expect([75, 80].map(grown)).toEqual([
    [20, true],
    [15, true],
  ]);
});

test('a budget that is too small for what a start has loaded is told, with one that is enough', () => {
  const rig = new Rig();
  rig.heldMb = 89;
  expect(rig.budget.shortfall()).toBe(null);
  rig.heldMb = 120;
  expect(rig.budget.shortfall()).toMatch(/^LOGRING_MEMORY_BUDGET_MB=100 is too small .*120 MiB.*, set 160$/);
});

test('beside a small budget the heap grows by less', () => {
  const percents = [64, 256, 500, 1_000, 64_000].map((MEMORY_BUDGET_MB) =>
    heapGrowingPercent({ MEMORY_BUDGET_MB }),
  );
  expect(percents).toEqual([25, 26, 50, 100, 100]);
});

test('the gate opens when no cause is left, lets all go on who wait, and is held open for a stop', async () => {
  const gate = new IngestGate();
  const changes: boolean[] = [];
  gate.tell((isOpen) => void changes.push(isOpen));
  await gate.whenOpen();
  gate.close('memory', 'too much');
  gate.close('disk', 'full');
  let wentOn = 0;
  const waiting = [gate.whenOpen(), gate.whenOpen()].map(async (opened) => {
    await opened;
    wentOn += 1;
  });
  gate.open('memory');
  await Promise.resolve();
  expect([gate.isOpen, wentOn, gate.reasons]).toEqual([false, 0, ['full']]);
  gate.open('disk');
  await Promise.all(waiting);
  gate.close('disk', 'full again');
  const stopping = gate.whenOpen();
  gate.holdOpen();
  await stopping;
  gate.close('memory', 'too much');
  await gate.whenOpen();
  expect([changes, gate.isOpen, wentOn]).toEqual([[false, true, false, true], true, 2]);
  expect([gate.pauseCount('disk'), gate.pauseCount('memory')]).toEqual([2, 2]);
});
