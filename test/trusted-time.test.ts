/** What deletion may go by, whatever clock and records say: instants in hours from the last commit. */

import { expect, test } from 'vitest';
import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../engine/time.js';
import { TrustedTime } from '../src/service/trusted-time.js';

/** The last commit. */
const COMMIT_US = Date.parse('2026-11-21T07:00:00Z') * 1000;

/**
 * A service that runs on a clock, which is `clockUs` after the true time: both count from the last commit.
 */
class Running {
  readonly #time: TrustedTime;
  #trueUs: number;
  #clockUs: number;
  readonly #startUs: number;

  constructor(downUs: number, clockUs: number, committedUs: number | null = COMMIT_US) {
    this.#startUs = downUs;
    this.#trueUs = downUs;
    this.#clockUs = clockUs;
    this.#time = new TrustedTime(committedUs, this.nowUs, this.monotonicUs);
  }

  get nowUs(): number {
    return COMMIT_US + this.#trueUs + this.#clockUs;
  }

  /** From anywhere. */
  get monotonicUs(): number {
    return 17 + this.#trueUs - this.#startUs;
  }

  setClock(clockUs: number): void {
    this.#clockUs = clockUs;
    this.#look();
  }

  /** Runs on; `record` says when a record of every minute says that it is, as seen from the true time. */
  run(byUs: number, record: ((trueUs: number) => number) | null = null): void {
    for (let ranUs = 0; ranUs < byUs; ranUs += US_PER_MINUTE) {
      this.#trueUs += US_PER_MINUTE;
      this.#look();
      if (record !== null) this.note(0, record(this.#trueUs));
    }
  }

  note(partition: number, recordUs: number): void {
    this.#time.noteRecord({ topic: 't', partition }, COMMIT_US + recordUs, this.nowUs, this.monotonicUs);
  }

  /** The trusted time, and what a commit would keep, in hours from the last commit. */
  get said(): readonly [trusted: number, estimated: number] {
    const hours = (us: number): number => Math.round((us - COMMIT_US) / US_PER_MINUTE) / 60;
    return [
      hours(this.#time.trustedUs(this.nowUs, this.monotonicUs)),
      hours(this.#time.estimatedUs(this.monotonicUs)),
    ];
  }

  restart(): Running {
    const committedUs = this.#time.estimatedUs(this.monotonicUs);
    const next = new Running(this.#trueUs, this.#clockUs, committedUs);
    return next;
  }

  #look(): void {
    this.#time.observe(this.nowUs, this.monotonicUs);
  }
}

const DOWN_US = US_PER_MINUTE / 2;

test.each([2, 26, 2400])('a start with the clock %i hours ahead deletes by the last commit', (hours) => {
  const service = new Running(0, hours * US_PER_HOUR);
  expect(service.said).toEqual([0, 0]);
  service.run(US_PER_HOUR / 2);
  expect(service.said).toEqual([0.5, 0.5]);
  // Put right, and put wrong again: nothing of it counts.
  service.setClock(0);
  expect(service.said).toEqual([0.5, 0.5]);
  service.setClock(hours * US_PER_HOUR);
  service.run(US_PER_HOUR / 2 + US_PER_MINUTE);
  expect(service.said[0]).toBeLessThan(1.1);
});

test('a clock that stands for an hour of running is trusted, and not before', () => {
  const service = new Running(3 * US_PER_DAY, 0);
  expect(service.said).toEqual([0, 0]);
  service.run(US_PER_HOUR - US_PER_MINUTE);
  expect(service.said[0]).toBeLessThan(1);
  service.run(US_PER_MINUTE);
  expect(service.said).toEqual([73, 73]);
});

test('an ordinary restart trusts the clock at once', () => {
  expect(new Running(DOWN_US, 0).said[0]).toBeCloseTo(DOWN_US / US_PER_HOUR, 1);
});

test('before the first commit there is nothing to lose: the clock is trusted', () => {
  expect(new Running(0, 2400 * US_PER_HOUR, null).said).toEqual([2400, 2400]);
});

test('a clock that is set while the service runs is trusted after an hour, to either side', () => {
  const service = new Running(0, 0);
  service.run(US_PER_HOUR);
  service.setClock(26 * US_PER_HOUR);
  expect(service.said).toEqual([1, 1]);
  service.run(US_PER_HOUR / 2);
  service.setClock(2 * US_PER_HOUR);
  service.run(US_PER_HOUR - US_PER_MINUTE);
  expect(service.said[0]).toBeLessThan(3);
  service.run(US_PER_MINUTE);
  expect(service.said).toEqual([4.5, 4.5]);
  // Behind: deletion follows the clock at once, the estimated time goes on.
  service.setClock(0);
  expect(service.said).toEqual([2.5, 4.5]);
  service.run(US_PER_HOUR);
  expect(service.said).toEqual([3.5, 3.5]);
});

test('a clock that runs fast is never trusted for long', () => {
  const service = new Running(0, 0);
  for (let minute = 0; minute < 600; minute++) {
    service.setClock(minute * US_PER_MINUTE);
    service.run(US_PER_MINUTE);
    expect(service.said[0] - service.said[1]).toBeLessThanOrEqual(2 / 60);
    expect(service.said[1]).toBeLessThanOrEqual((minute + 4) / 60);
  }
});

test('a restart takes up what the last run knew', () => {
  const service = new Running(0, 2400 * US_PER_HOUR);
  service.run(US_PER_HOUR / 2);
  const next = service.restart();
  expect(next.said).toEqual([0.5, 0.5]);
  next.run(US_PER_HOUR - US_PER_MINUTE);
  expect(next.said[0]).toBeLessThan(1.5);
});

test('after three days away, records confirm the clock as soon as they come to it', () => {
  const service = new Running(3 * US_PER_DAY, 0);
  // The backlog is read a day in two minutes, and deletion goes along.
  for (let hour = 0; hour < 72; hour += 12) {
    for (let i = 0; i < 3; i++) service.note(0, hour * US_PER_HOUR);
    expect(service.said[0]).toBe(hour);
  }
  for (let i = 0; i < 3; i++) service.note(0, 72 * US_PER_HOUR - US_PER_MINUTE);
  expect(service.said).toEqual([72, 72]);
});

test('records that go with the last commit contradict the clock for as long as they come', () => {
  const service = new Running(0, 2400 * US_PER_HOUR);
  service.run(5 * US_PER_HOUR, (trueUs) => trueUs);
  expect(service.said).toEqual([5, 5]);
  const behind = new Running(0, -2 * US_PER_HOUR);
  behind.run(5 * US_PER_HOUR, (trueUs) => trueUs);
  expect(behind.said).toEqual([3, 5]);
});

test('a clock that was trusted wrongly and is put right is confirmed by records at once', () => {
  const service = new Running(0, 2400 * US_PER_HOUR);
  service.run(US_PER_HOUR);
  expect(service.said[1]).toBe(2401);
  service.setClock(0);
  expect(service.said).toEqual([1, 2401]);
  service.run(3 * US_PER_MINUTE, (trueUs) => trueUs);
  expect(service.said[1]).toBeCloseTo(1.05, 1);
});

test('one producer with a wrong clock is no witness, nor is a record of each of several partitions', () => {
  const service = new Running(0, 48 * US_PER_HOUR);
  for (let i = 0; i < 30; i++) {
    service.note(0, i % 3 === 0 ? 48 * US_PER_HOUR : 0);
    service.note(i + 1, 48 * US_PER_HOUR);
  }
  expect(service.said).toEqual([0, 0]);
});
