/** When answers of a topic are whole, how old they are, and what is stored of it: time is a parameter. */

import { expect, test } from 'vitest';
import type { LogSourceStatus } from '../ingest/log-source.js';
import { type ClockPair, WholeAnswers } from '../src/service/whole-answers.js';
import { QUIET_STATUS } from './quiet-status.js';
import { SegmentTable } from './segment-table.js';

const SECOND = 1_000_000;
/** 2026-11-21T07:00:00Z */
const WALL_US = 1_795_244_400_000_000;

/** One process: its clocks start together at 0, and stand still except for `at`. */
class Process {
  seconds = 0;
  readonly changed: string[] = [];
  readonly whole: WholeAnswers;

  constructor(
    readonly bornSeconds: number,
    { maxStalenessSeconds = 0 } = {},
  ) {
    this.whole = new WholeAnswers({
      topics: ['edge', 'relay'],
      freshUs: 10 * SECOND,
      maxStalenessUs: maxStalenessSeconds * SECOND,
      nextOffset: () => 3,
      monotonicUs: () => this.seconds * SECOND,
      nowUs: () => this.wallUs,
    });
    this.whole.tell((topic) => this.changed.push(topic));
  }

  at(seconds: number): this {
    this.seconds = seconds;
    return this;
  }

  /**
   * `2 a=5 b=- elsewhere=1`: the topic edge has two partitions, of 0 (a) the end of 5 s was reached, of 1 (b)
   * none yet, and 1 is another process's.
   */
  hear(text: string, more: Partial<LogSourceStatus> = {}): this {
    const [count, ...words] = text.split(' ');
    const assigned: LogSourceStatus['assigned'][number][] = [];
    const unassigned: LogSourceStatus['unassigned'][number][] = [];
    for (const word of words) {
      const [name, value] = word.split('=');
      if (name === 'elsewhere') unassigned.push({ topic: 'edge', partition: Number(value) });
      else
        assigned.push({
          topic: 'edge',
          partition: name.charCodeAt(0) - 97,
          endOffset: 10,
          wholeAsOfMs: value === '-' ? null : Number(value) * 1000,
        });
    }
    this.whole.note({
      ...QUIET_STATUS,
      topics: [{ topic: 'edge', partitionCount: Number(count), topicId: 'one' }],
      unassigned,
      assigned,
      ...more,
    });
    return this;
  }

  /** `fresh`, `old 12`, `none: why`. */
  says(topic = 'edge'): string {
    const state = this.whole.state(topic);
    if (state.kind === 'old') return `old ${state.ageUs / SECOND}`;
    return state.kind === 'none' ? `none: ${state.reason}` : state.kind;
  }

  /** Stores what it has of the partitions, and begins another process so much later. */
  restart(partitions: readonly number[], afterSeconds: number): Process {
    const next = new Process(this.bornSeconds + this.seconds + afterSeconds);
    this.whole.beginCommit();
    for (const partition of partitions) this.give(next, partition, null);
    return next;
  }

  /** What it has stored of a partition is another's from now on; `clocks`: see WholeAnswers.load. */
  give(to: Process, partition: number, clocks: ClockPair | null): void {
    const segments = new SegmentTable();
    this.whole.save({ topic: 'edge', partition }, segments);
    to.whole.load({ topic: 'edge', partition }, segments, clocks);
  }

  /** What its clock says. */
  get wallUs(): number {
    return WALL_US + (this.bornSeconds + this.seconds) * SECOND;
  }
}

test('a topic is answered from once each partition has reached an end of its log that was heard', () => {
  const one = new Process(0);
  expect(one.says()).toBe('none: the partitions of topic edge are not known yet');
  one.hear('2 a=- b=-');
  expect(one.says()).toBe(
    'none: partitions edge/0, edge/1 have not been read to the end yet (14 records are left)',
  );
  one.hear('2 a=1 b=-');
  expect(one.says()).toBe('none: partition edge/1 has not been read to the end yet (7 records are left)');
  one.at(3).hear('2 a=1 b=2');
  expect(one.says()).toBe('fresh');
  expect(one.says('relay')).toBe('none: the partitions of topic relay are not known yet');
});

test('the age is that of the oldest partition; above LOGRING_FRESH_MS it is said, above the most staleness they are refused', () => {
  const one = new Process(0, { maxStalenessSeconds: 60 });
  one.hear('2 a=1 b=4');
  expect(one.at(11).says()).toBe('fresh');
  expect(one.at(12).says()).toBe('old 11');
  expect(one.at(61).says()).toBe('old 60');
  expect(one.at(62).hear('2', { problem: 'no broker answers' }).says()).toBe(
    'none: answers from topic edge would be 61 s old, more than LOGRING_MAX_STALENESS_SECONDS (60) allows; no broker answers',
  );
  // A later status without news takes nothing back.
  expect(one.at(63).hear('2 a=62 b=-').says()).toBe('old 59');
  expect(one.hear('2 a=62 b=60').says()).toBe('fresh');
  // What may not be so old is not fresh either.
  const strict = new Process(0, { maxStalenessSeconds: 5 }).hear('1 a=0');
  expect(strict.at(5).says()).toBe('fresh');
  expect(strict.at(6).says()).toMatch(/^none: .* 6 s old/);
});

test('a copy of another member is as old as it was there, whatever the clock there says, also after a start', () => {
  for (const clockAheadSeconds of [-3_600, 3_600]) {
    const giver = new Process(clockAheadSeconds).hear('1 a=1').at(50);
    const taker = new Process(0).at(100);
    giver.give(taker, 0, { nowUs: giver.wallUs, monotonicUs: 100 * SECOND });
    expect(taker.whole.hasNews).toBe(true);
    expect(taker.says()).toBe('old 49');
    expect(taker.at(110).says()).toBe('old 59');
    expect(taker.restart([0], 10).says()).toBe('old 69');
  }
});

test('a copy of a later time brings the partitions that there were then, whatever the clock there says', () => {
  for (const clockAheadSeconds of [-3_600, 3_600]) {
    const left = new Process(0).hear('1 a=1').restart([0], 4);
    const giver = new Process(clockAheadSeconds).hear('2 a=8 b=-').at(9);
    giver.give(left.at(5), 0, { nowUs: giver.wallUs, monotonicUs: 5 * SECOND });
    // Partition 1 was there before that end was heard, and may have had records.
    expect(left.hear('2 a=5').says()).toMatch(/^none: partition edge\/1 has not/);
  }
});

test('there is no answer from a partition that was forgotten, however fresh it was', () => {
  const one = new Process(0).hear('2 a=1 b=1').at(2);
  const epoch = one.whole.epoch('edge');
  expect(one.says()).toBe('fresh');
  one.whole.forget({ topic: 'edge', partition: 1 });
  expect(one.says()).toMatch(/^none: partition edge\/1 has not/);
  expect(one.whole.epoch('edge')).not.toBe(epoch);
});

test('while another process reads a partition there are no answers; afterwards they are as old as it was left', () => {
  const one = new Process(0).hear('2 a=1 b=1');
  const before = one.whole.epoch('edge');
  expect(one.at(2).hear('2 a=2 elsewhere=1').says()).toBe(
    'none: partition edge/1 is read by another process of the same Kafka group; each Logring needs a LOGRING_KAFKA_GROUP_ID or a LOGRING_ZONE of its own',
  );
  expect(one.whole.epoch('edge')).not.toBe(before);
  expect(one.whole.readings()[0].ageUs).toBe(null);
  expect(one.at(3).hear('2 a=3 b=-').says()).toBe('old 2');
  expect(one.at(40).hear('2 a=40 b=-').says()).toBe('old 39');
  expect(one.hear('2 a=40 b=40').says()).toBe('fresh');
});

test('a rebalance of its own lets answers age, no more', () => {
  const one = new Process(0).hear('2 a=1 b=1');
  const epoch = one.whole.epoch('edge');
  expect(one.at(5).hear('2').says()).toBe('fresh');
  expect(one.at(6).hear('2 a=- b=-').says()).toBe('fresh');
  expect(one.whole.epoch('edge')).toBe(epoch);
});

test('a partition that the topic gains is as whole as its siblings were: it had no records then', () => {
  const one = new Process(0).hear('1 a=1');
  const { length } = one.changed;
  expect(one.at(4).hear('2 a=3').says()).toBe('fresh');
  expect(one.changed.length).toBe(length + 1);
  // It is not read yet, and ages from there.
  expect(one.at(12).hear('2 a=11').says()).toBe('old 11');
  expect(one.at(13).hear('2 a=12 b=12').says()).toBe('fresh');
  // Of a topic that was never whole nothing is known, nor of what it gains.
  expect(new Process(0).hear('1 a=-').hear('2 a=1').says()).toMatch(/^none: partition edge\/1 has not/);
});

test('a broker that has not heard of new partitions yet does not take them out of the answers, nor make them whole', () => {
  const one = new Process(0).hear('2 a=1 b=1 c=-');
  one.hear('3 a=2 b=2 c=-').at(20);
  const { length } = one.changed;
  expect(one.hear('3 a=20 b=20 c=-').says()).toBe('old 19');
  expect(one.hear('2 a=20 b=20').says()).toBe('old 19');
  expect(one.hear('3 a=20 b=20 c=-').says()).toBe('old 19');
  expect(one.changed.length).toBe(length);
});

test('a topic made again clears what was computed from the one before, though it has as many partitions', () => {
  const one = new Process(0).hear('1 a=1');
  const { length } = one.changed;
  one.hear('1 a=1');
  expect(one.changed.length).toBe(length);
  one.hear('1 a=1', { topics: [{ topic: 'edge', partitionCount: 1, topicId: '' }] }).hear('1 a=1');
  expect(one.changed.length).toBe(length);
  one.hear('1 a=1', { topics: [{ topic: 'edge', partitionCount: 1, topicId: 'two' }] });
  expect(one.changed.length).toBe(length + 1);
  expect(one.says()).toBe('fresh');
});

test('after a restart answers are as old as what was stored, and say so until each end was reached again', () => {
  const before = new Process(0).hear('2 a=1 b=4').at(5);
  expect(before.whole.hasNews).toBe(true);
  const one = before.restart([0, 1], 100);
  expect(before.whole.hasNews).toBe(false);
  expect(one.says()).toBe('old 104');
  expect(one.at(1).hear('2 a=- b=-').says()).toBe('old 105');
  expect(one.hear('2 a=1 b=-').says()).toBe('old 102');
  expect(one.whole.readings()[0].unreached).toMatch(
    /^partition edge\/1 has not been read to the end yet .* since the start$/,
  );
  expect(one.hear('2 a=1 b=1').says()).toBe('fresh');
  // At once, but not yet read on: its age is small, and said all the same.
  expect(before.restart([0, 1], 0).says()).toBe('old 4');
});

test('partitions that nothing is stored of are no reason to commit for ever', () => {
  const one = new Process(0).hear('2 a=1 b=1').hear('3 a=1 b=1');
  // The third is another member's: it has no shard here.
  one.restart([0, 1], 0);
  one.hear('4 a=2 b=2');
  expect(one.whole.hasNews).toBe(true);
  one.restart([0, 1], 0);
  expect(one.whole.hasNews).toBe(false);
});

test('a partition that this store never had is missed after a restart, also before a broker has said that there is one', () => {
  const before = new Process(0).hear('2 a=1 elsewhere=1').at(5);
  expect(before.restart([0], 1).says()).toBe('none: partition edge/1 has not been read to the end yet');
  // A store of a version that stored nothing of it.
  expect(new Process(0).says()).toMatch(/^none/);
  // A topic that has grown meanwhile.
  const whole = new Process(0).hear('1 a=1').at(5).restart([0], 1);
  expect(whole.hear('2 a=- b=-').says()).toBe('old 5');
});

test('a clock that was set back makes nothing younger than the process', () => {
  const one = new Process(1000).hear('1 a=0').restart([0], -500);
  expect(one.at(30).says()).toBe('old 30');
});

test('to other members what was stored is not fresh until its end was reached again, whatever the clock says', () => {
  const ageOf = ({ whole }: Process) => whole.partitionAgeUs({ topic: 'edge', partition: 0 });
  const before = new Process(0).at(100).hear('1 a=100');
  expect(ageOf(before)).toBe(0);
  for (const afterSeconds of [-60, 1]) {
    const next = before.restart([0], afterSeconds);
    expect(ageOf(next)).toBeGreaterThan(10 * SECOND);
    expect(ageOf(next.at(20))).toBeGreaterThanOrEqual(20 * SECOND);
    expect(ageOf(next.at(21).hear('1 a=20'))).toBe(SECOND);
  }
  expect(ageOf(before.restart([0], 60))).toBe(60 * SECOND);
});

test('the embedded log is never old, and nothing of it is stored', () => {
  const one = new Process(0).hear('1 a=-').at(1);
  expect(one.says()).toMatch(/^none/);
  one.hear('1 a=Infinity');
  expect(one.at(1e9).says()).toBe('fresh');
  expect(one.whole.readings()[0]).toMatchObject({ ageUs: 0, unreached: null });
  expect(one.whole.hasNews).toBe(false);
  expect(one.restart([0], 1).says()).toMatch(/^none/);
});
