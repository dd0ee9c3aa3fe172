/**
 * Short histories of a service on an unreliable disk, as plain data drawn from a seed, so that a failing one
 * can be cut down.
 */

import { OddRecords, TIME_SHAPES, unusableText } from '../../bench/generator/odd-records.js';
import { Random } from '../../src/demo/random.js';
import type { PlannedRecord, Question, Topic } from '../model/history.js';
import type { Crash, DiskError, Operation } from './faults.js';

export type Action =
  /** New records come at the end of a partition's log; they are delivered while other things happen. */
  | {
      readonly do: 'deliver';
      readonly topic: Topic;
      readonly partition: number;
      readonly records: readonly PlannedRecord[];
    }
  /** The partition is taken away and comes back: read again from `back` records before what was read. */
  | { readonly do: 'redeliver'; readonly topic: Topic; readonly partition: number; readonly back: number }
  /** Time passes. */
  | { readonly do: 'pass'; readonly byUs: number }
  /** The wall clock is set. */
  | { readonly do: 'set-clock'; readonly byUs: number }
  /** What the committer does every half second. */
  | { readonly do: 'round' }
  | { readonly do: 'commit' }
  /** Until nothing is left to do. */
  | { readonly do: 'settle' }
  | ({ readonly do: 'ask' } & Question)
  /** An orderly stop and start. */
  | { readonly do: 'restart' }
  /** The process or the power goes, and perhaps again while the service recovers. */
  | { readonly do: 'crash'; readonly crashes: readonly Crash[] }
  /** The next operation of a kind fails. */
  | { readonly do: 'fail'; readonly operation: Operation; readonly error: DiskError; readonly part: number };

/**
 * After the action the schedule goes on by so many steps, drawn from a seed of their own: so steps can be
 * left out.
 */
export type Step = Action & { readonly turns: number; readonly seed: number };

export interface ShortHistory {
  readonly startUs: number;
  /** Records come from a log elsewhere, or as POSTs, one record each, to the embedded log. */
  readonly source: 'kafka' | 'embedded';
  readonly judgedBy: 'clock' | 'arrival';
  readonly partitionCount: number;
  readonly projects: readonly string[];
  readonly steps: readonly Step[];
}

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** 2026-11-21T07:00:00Z. */
const EPOCH_US = 1_795_244_400 * SECOND;

const TIERS = ['FREE', 'PRO', 'ENTERPRISE'];
const PROJECTS = ['abcproject', 'abc', 'xyz.project'];
const FUNCTION_IDS = ['f-1', 'f-2'];
const STATS_INTERVALS = ['5min', '15min', '1hr', '1day', '7day'];
const COUNTS_INTERVALS = ['hourly', 'daily', 'minutely'];
const EXPRESSIONS = ['abc', '^https://abc\\.', '.', '/(?:rest|auth)/v1'];
const FAILING: readonly Operation[] = [
  'write',
  'write',
  'sync',
  'sync-folder',
  'open',
  'open-read',
  'remove',
  'rename',
  'truncate',
  'make-folder',
];

/** What an operation may fail with. */
function errorsOf(operation: Operation): readonly DiskError[] {
  switch (operation) {
    case 'write':
      return ['EIO', 'ENOSPC', 'short'];
    case 'open':
    case 'sync-folder':
    case 'truncate':
      return ['EIO', 'ENOSPC', 'EMFILE'];
    case 'remove':
      return ['EIO'];
    case 'open-read':
      return ['EIO', 'EMFILE'];
    default:
      return ['EIO', 'ENOSPC'];
  }
}

export function drawShortHistory(seed: number): ShortHistory {
  const random = new Random(seed);
  const startUs = EPOCH_US + random.below(DAY);
  const source = random.pick(['kafka', 'embedded'] as const);
  const partitionCount = source === 'embedded' ? 1 : random.pick([1, 1, 2]);
  const projects = PROJECTS.slice(0, random.between(1, PROJECTS.length));
  const draw = new Draw(random, startUs, partitionCount, projects);
  const stepCount = random.between(10, 40);
  const steps = Array.from({ length: stepCount }, (): Step => {
    const action = draw.action();
    const turns = random.chance(0.3) ? 0 : random.pick([1, 3, 10, 30, 100]);
    return { ...action, turns, seed: random.u32() };
  });
  return source === 'embedded'
    ? { startUs, source, judgedBy: 'arrival', partitionCount, projects, steps }
    : { startUs, source, judgedBy: random.pick(['clock', 'arrival']), partitionCount, projects, steps };
}

class Draw {
  readonly #random: Random;
  readonly #partitionCount: number;
  readonly #projects: readonly string[];
  readonly #records: OddRecords;
  readonly #relayShare: number;
  readonly #unusableShare: number;
  /** The hours in which most entries lie, so that runs get several deliveries. */
  readonly #busyUs: readonly number[];
  readonly #crashShare: number;
  readonly #errorShare: number;
  readonly #usualTier: string | null;
  /**
   * Large entries of one hour, that come while little time passes: commits add blocks to files that others
   * began.
   */
  readonly #isGrowing: boolean;
  #nowUs: number;

  constructor(random: Random, startUs: number, partitionCount: number, projects: readonly string[]) {
    this.#random = random;
    this.#partitionCount = partitionCount;
    this.#projects = projects;
    this.#nowUs = startUs;
    this.#isGrowing = random.chance(0.1);
    this.#relayShare = this.#isGrowing ? 0.05 : random.pick([0.1, 0.2, 0.7]);
    this.#unusableShare = random.pick([0, 0.05]);
    this.#crashShare = random.pick([0.05, 0.15, 0.3]);
    this.#errorShare = random.pick([0, 0, 0.1]);
    this.#usualTier = random.pick([null, null, 'FREE', 'PRO']);
    const dayUs = startUs - random.pick([0, 2, 2, 5]) * DAY;
    this.#busyUs = Array.from(
      { length: this.#isGrowing ? 1 : random.between(1, 4) },
      () => dayUs - random.below(6) * HOUR,
    );
    this.#records = new OddRecords(random, {
      projects,
      functionIds: FUNCTION_IDS,
      timeShape: random.pick(TIME_SHAPES),
      oddShare: random.pick([0, 0.2]),
      fillerBytes: this.#isGrowing ? 12_000 : random.pick([0, 0, 0, 3_000]),
    });
  }

  action(): Action {
    const random = this.#random;
    const kind = random.float();
    if (random.chance(this.#crashShare)) return this.#crash();
    if (random.chance(this.#errorShare)) {
      const operation = random.pick(FAILING);
      return { do: 'fail', operation, error: random.pick(errorsOf(operation)), part: random.float() };
    }
    if (kind < 0.35) return this.#delivery();
    if (kind < 0.38) return { do: 'redeliver', ...this.#place(), back: random.between(1, 5) };
    if (kind < 0.5) return this.#pass();
    if (kind < 0.52) return this.#setClock();
    if (kind < 0.7) return { do: 'round' };
    if (kind < 0.75) return { do: 'commit' };
    if (kind < 0.82) return { do: 'settle' };
    if (kind < 0.84) return { do: 'restart' };
    return { do: 'ask', ...this.#question() };
  }

  #crash(): Action {
    const random = this.#random;
    const crash = (atOperation: number): Crash => {
      return { kind: random.pick(['process', 'power']), atOperation, part: random.float() };
    };
    const crashes = [crash(random.chance(0.2) ? 0 : random.between(1, random.pick([3, 6, 20, 60])))];
    while (random.chance(0.4)) crashes.push(crash(random.between(1, 8)));
    return { do: 'crash', crashes };
  }

  #place(): { topic: Topic; partition: number } {
    const topic = this.#random.chance(this.#relayShare) ? 'relay' : 'edge';
    return { topic, partition: this.#random.below(this.#partitionCount) };
  }

  #delivery(): Action {
    const random = this.#random;
    const place = this.#place();
    const count = this.#isGrowing ? random.between(4, 8) : random.pick([1, 3, 8]);
    const records = Array.from({ length: count }, () => this.#record(place.topic));
    return { do: 'deliver', ...place, records };
  }

  #record(topic: Topic): PlannedRecord {
    const random = this.#random;
    const timestampMs = Math.floor(this.#nowUs / 1_000);
    const projectTier = random.chance(0.2) ? random.pick(TIERS) : this.#usualTier;
    if (random.chance(this.#unusableShare)) {
      return { timestampMs, projectTier, text: unusableText(random, topic, this.#timeUs()) };
    }
    const one = (): string => {
      const timeUs = this.#timeUs();
      return topic === 'edge' ? this.#records.edge(timeUs) : this.#records.relay(timeUs);
    };
    const text = random.chance(0.8) ? one() : `[${Array.from({ length: 3 }, one).join()}]`;
    return { timestampMs, projectTier, text };
  }

  #timeUs(): number {
    const random = this.#random;
    if (random.chance(this.#isGrowing ? 0.95 : 0.7)) return random.pick(this.#busyUs) + random.below(HOUR);
    if (random.chance(0.1)) return this.#nowUs + random.below(HOUR);
    return this.#nowUs - random.below(random.pick([SECOND, MINUTE, HOUR, DAY, 8 * DAY]));
  }

  #pass(): Action {
    const random = this.#random;
    const most = random.pick([SECOND, MINUTE, 2 * HOUR, 3 * HOUR, 3 * HOUR, 2 * DAY]);
    const byUs = random.below(this.#isGrowing && random.chance(0.7) ? SECOND : most);
    this.#nowUs += byUs;
    return { do: 'pass', byUs };
  }

  #setClock(): Action {
    const random = this.#random;
    const byUs = random.between(-HOUR, HOUR);
    this.#nowUs += byUs;
    return { do: 'set-clock', byUs };
  }

  #question(): Question {
    const random = this.#random;
    const project = random.pick(this.#projects);
    const kind = random.below(4);
    if (kind === 0) {
      const bound = (): number | null => (random.chance(0.5) ? null : this.#timeUs());
      return { ask: 'logs', project, tier: random.pick(TIERS), afterUs: bound(), untilUs: bound() };
    }
    if (kind === 1) {
      const functionId = random.chance(0.5) ? null : random.pick(FUNCTION_IDS);
      return { ask: 'stats', project, functionId, interval: random.pick(STATS_INTERVALS) };
    }
    if (kind === 2)
      return { ask: 'events', project, tier: random.pick(TIERS), interval: random.pick(COUNTS_INTERVALS) };
    return {
      ask: 'counts',
      expression: random.pick(EXPRESSIONS),
      interval: random.pick(COUNTS_INTERVALS),
    };
  }
}
