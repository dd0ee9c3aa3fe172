/**
 * Histories: what happens to a service, as plain data drawn from a seed, so that a failing one can be cut
 * down and kept.
 */

import { OddRecords, TIME_SHAPES, unusableText } from '../../bench/generator/odd-records.js';
import { Random } from '../../src/demo/random.js';

export type Topic = 'edge' | 'relay';

export interface PlannedRecord {
  readonly timestampMs: number;
  /** null is a tombstone. */
  readonly text: string | null;
  readonly projectTier: string | null;
  /** Set when the log source could not unpack it. */
  readonly unreadable?: 'unknown-codec' | 'too-large';
}

export type Question =
  | {
      readonly ask: 'logs';
      readonly project: string;
      readonly tier: string;
      readonly afterUs: number | null;
      readonly untilUs: number | null;
    }
  | {
      readonly ask: 'stats';
      readonly project: string;
      readonly functionId: string | null;
      readonly interval: string;
    }
  | { readonly ask: 'events'; readonly project: string; readonly tier: string; readonly interval: string }
  | { readonly ask: 'counts'; readonly expression: string; readonly interval: string };

export type Step =
  /** New records come at the end of a partition's log, and from there to the shard. */
  | {
      readonly do: 'deliver';
      readonly topic: Topic;
      readonly partition: number;
      readonly records: readonly PlannedRecord[];
      /** Commit in the middle: when the pipeline gives way for the so-manieth time. */
      readonly commitAtTurn?: number;
      /** The partition is taken away in the middle: the rest comes with the next delivery. */
      readonly stopAtTurn?: number;
    }
  /** The log is read again from `back` records before its end, as after a rebalance. */
  | { readonly do: 'redeliver'; readonly topic: Topic; readonly partition: number; readonly back: number }
  | { readonly do: 'clock'; readonly byUs: number }
  | { readonly do: 'expire' }
  | { readonly do: 'commit' }
  /** Compactions of stored rows begin, or go on by so many steps. */
  | { readonly do: 'compact'; readonly stepCount: number }
  /** Commit, and go on with shards loaded from the store. */
  | { readonly do: 'restart' }
  /** Go on with shards loaded from the last commit, and read the log from where they are. */
  | { readonly do: 'crash' }
  | ({ readonly do: 'ask' } & Question)
  /** Counts are asked for, and come later, so that their evaluation and other steps interleave. */
  | { readonly do: 'begin-counts'; readonly expression: string; readonly interval: string }
  | { readonly do: 'finish-counts' };

export interface History {
  readonly startUs: number;
  /** See the pipeline's setting. */
  readonly judgedBy: 'clock' | 'arrival';
  /** See the setting LOGRING_URL_FROM_PATH. */
  readonly urlFromPath?: boolean;
  readonly partitionCount: number;
  readonly steps: readonly Step[];
}

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** 2026-11-21T07:00:00Z, an hour's start, so that offsets from it are easy on the eye. */
const EPOCH_US = 1_795_244_400 * SECOND;

const TIERS = ['FREE', 'PRO', 'PAYG', 'ENTERPRISE', 'free', ''];
const STATS_INTERVALS = ['5min', '15min', '1hr', '1day', '7day', '1HR', ''];
const COUNTS_INTERVALS = ['hourly', 'daily', 'minutely'];
const EDGES_US = [0, 5 * MINUTE, 15 * MINUTE, HOUR, DAY, 7 * DAY, 90 * DAY];
const UNITS_US = [1, SECOND, MINUTE, HOUR, DAY];

/** What kind of traffic one history has; drawn once from its seed. */
interface Climate {
  readonly projects: readonly string[];
  readonly functionIds: readonly string[];
  /** How far entries usually lie behind now, µs: the scale of an exponential. */
  readonly usualAgeUs: number;
  /** Shares of entries at edges of windows and buckets, and with the timestamp of another. */
  readonly edgeShare: number;
  readonly tieShare: number;
  readonly relayShare: number;
  readonly unusableShare: number;
  readonly restless: number;
}

export function drawHistory(seed: number, stepCount: number): History {
  const random = new Random(seed);
  const startUs = EPOCH_US + random.pick([0, -1, 1, random.below(DAY), random.below(90 * DAY)]);
  const partitionCount = random.between(1, 3);
  const judgedBy = random.pick(['clock', 'arrival'] as const);
  const urlFromPath = seed % 3 === 0;
  const draw = new Draw(random, startUs, partitionCount);
  const steps: Step[] = [];
  for (let count = 0; count < stepCount; ) {
    const step = draw.step();
    steps.push(step);
    count += step.do === 'deliver' ? step.records.length : 1;
  }
  return { startUs, judgedBy, urlFromPath, partitionCount, steps };
}

class Draw {
  readonly #random: Random;
  readonly #partitionCount: number;
  readonly #climate: Climate;
  readonly #records: OddRecords;
  readonly #usedTimesUs: number[] = [];
  #nowUs: number;

  constructor(random: Random, startUs: number, partitionCount: number) {
    this.#random = random;
    this.#partitionCount = partitionCount;
    this.#nowUs = startUs;
    // A crowded climate fills buckets past the limit up to which values are kept exactly.
    const crowded = random.chance(0.25);
    const projects = ['abcproject', 'abc', 'xyz.project', 'äß-project', 'q'].slice(
      0,
      crowded ? 1 : random.between(1, 5),
    );
    this.#climate = {
      projects,
      functionIds: ['f-1', 'f-2', 'f-3', 'abcproject'].slice(0, crowded ? 1 : random.between(1, 4)),
      usualAgeUs: crowded
        ? random.pick([SECOND, MINUTE])
        : random.pick([SECOND, MINUTE, HOUR, DAY, 20 * DAY]),
      edgeShare: crowded ? 0.02 : random.pick([0, 0.1, 0.5]),
      tieShare: random.pick([0, 0.1, 0.5]),
      relayShare: crowded ? 0.9 : random.pick([0.1, 0.5, 0.9]),
      unusableShare: random.pick([0, 0.02, 0.1]),
      restless: crowded ? 0.2 : random.pick([0.2, 1, 3]),
    };
    this.#records = new OddRecords(random, {
      projects,
      functionIds: this.#climate.functionIds,
      timeShape: random.pick(TIME_SHAPES),
      oddShare: crowded ? 0.05 : random.pick([0, 0.2, 0.8]),
      // Large entries fill blocks of rows and chunks of URLs.
      fillerBytes: random.chance(0.1) ? 3_000 : 0,
    });
  }

  step(): Step {
    const random = this.#random;
    const { restless } = this.#climate;
    const kind = random.float();
    if (kind < 0.01 * restless) return { do: 'expire' };
    if (kind < 0.02 * restless) return { do: 'commit' };
    if (kind < 0.025 * restless) return { do: 'restart' };
    if (kind < 0.03 * restless) return { do: 'crash' };
    if (kind < 0.04 * restless) return { do: 'redeliver', ...this.#place(), back: random.between(1, 30) };
    if (kind < 0.1 * restless) return this.#clockStep();
    if (kind < 0.11 * restless) {
      return { do: 'begin-counts', expression: this.#expression(), interval: random.pick(COUNTS_INTERVALS) };
    }
    if (kind < 0.13 * restless) return { do: 'finish-counts' };
    if (kind < 0.15 * restless) return { do: 'compact', stepCount: random.pick([1, 3, 1_000, 1_000]) };
    if (kind < 0.45) return { do: 'ask', ...this.#question() };
    const place = this.#place();
    const recordCount = random.chance(0.7) ? 1 : random.between(2, 12);
    return {
      do: 'deliver',
      ...place,
      records: Array.from({ length: recordCount }, () => this.#record(place.topic)),
    };
  }

  #place(): { topic: Topic; partition: number } {
    const topic = this.#random.chance(this.#climate.relayShare) ? 'relay' : 'edge';
    return { topic, partition: this.#random.below(this.#partitionCount) };
  }

  #clockStep(): Step {
    const random = this.#random;
    const scale = random.pick([1, SECOND, SECOND, MINUTE, MINUTE, MINUTE, HOUR, HOUR, DAY]);
    const forwards = random.chance(0.8);
    let byUs = random.between(1, forwards ? 3 * scale : scale) * (forwards ? 1 : -1);
    // Some clocks stop exactly at, or one beside, the start of a bucket, or where some entry is at a window's
    // edge.
    const precise = random.float();
    if (precise < 0.2) byUs += this.#nearEdge(this.#nowUs + byUs) - (this.#nowUs + byUs);
    else if (precise < 0.6) byUs = this.#untilEntryIsAtEdge() + random.between(-1, 1);
    this.#nowUs += byUs;
    return { do: 'clock', byUs };
  }

  /**
   * How far the clock must go until some entry lies exactly at the edge of a window: the shortest way there
   * is.
   */
  #untilEntryIsAtEdge(): number {
    const windowUs = this.#random.pick(EDGES_US);
    const waysUs = this.#usedTimesUs.map((timeUs) => timeUs + windowUs - this.#nowUs);
    const shortest = waysUs.reduce((best, way) => (Math.abs(way) < Math.abs(best) ? way : best), Infinity);
    return Math.abs(shortest) < DAY ? shortest : 0;
  }

  #record(topic: Topic): PlannedRecord {
    const random = this.#random;
    const timestampUs = this.#timeUs();
    const timestampMs = Math.floor((random.chance(0.9) ? this.#nowUs : this.#timeUs()) / 1_000);
    const projectTier = random.chance(0.2) ? random.pick(TIERS) : null;
    if (random.chance(this.#climate.unusableShare)) {
      const record = { timestampMs, projectTier, text: unusableText(random, topic, timestampUs) };
      return random.chance(0.9) ? record : { ...record, text: 'packed', unreadable: 'unknown-codec' };
    }
    const one = (): string => {
      const timeUs = random.chance(0.03) ? null : this.#timeUs();
      return topic === 'edge' ? this.#records.edge(timeUs) : this.#records.relay(timeUs);
    };
    if (random.chance(0.9)) return { timestampMs, projectTier, text: one() };
    const elements = Array.from({ length: random.below(4) }, () => {
      const unusable = random.chance(this.#climate.unusableShare);
      return unusable ? random.pick(UNUSABLE_ELEMENTS) : one();
    });
    return { timestampMs, projectTier, text: `[${elements.join(' , ')}]` };
  }

  #timeUs(): number {
    const random = this.#random;
    let timeUs: number;
    if (this.#usedTimesUs.length > 0 && random.chance(this.#climate.tieShare)) {
      timeUs = random.pick(this.#usedTimesUs);
    } else if (random.chance(this.#climate.edgeShare)) {
      timeUs = random.chance(0.1) ? this.#nowUs + HOUR + random.between(-1, 1) : this.#nearEdge(this.#nowUs);
    } else if (random.chance(0.03)) {
      timeUs = this.#nowUs + random.below(HOUR);
    } else {
      timeUs = this.#nowUs - Math.floor(-Math.log(1 - random.float()) * this.#climate.usualAgeUs);
    }
    if (this.#usedTimesUs.length < 200) this.#usedTimesUs.push(timeUs);
    else this.#usedTimesUs[random.below(200)] = timeUs;
    return timeUs;
  }

  /** A time at, or a microsecond beside, an edge of some window or bucket as seen from nowUs. */
  #nearEdge(nowUs: number): number {
    const random = this.#random;
    const edgeUs = nowUs - random.pick(EDGES_US);
    const unitUs = random.pick(UNITS_US);
    return Math.floor(edgeUs / unitUs) * unitUs + random.between(-1, 1);
  }

  #question(): Question {
    const random = this.#random;
    const { projects, functionIds } = this.#climate;
    const kind = random.float();
    const project = random.chance(0.05) ? 'nobody' : random.pick(projects);
    if (kind < 0.3) {
      return {
        ask: 'logs',
        project,
        tier: random.pick(TIERS),
        afterUs: this.#bound(),
        untilUs: this.#bound(),
      };
    }
    if (kind < 0.66) {
      const functionId = random.chance(0.5) ? null : random.chance(0.05) ? '' : random.pick(functionIds);
      return { ask: 'stats', project, functionId, interval: random.pick(STATS_INTERVALS) };
    }
    if (kind < 0.8)
      return { ask: 'events', project, tier: random.pick(TIERS), interval: random.pick(COUNTS_INTERVALS) };
    return { ask: 'counts', expression: this.#expression(), interval: random.pick(COUNTS_INTERVALS) };
  }

  #bound(): number | null {
    const random = this.#random;
    if (random.chance(0.4)) return null;
    if (this.#usedTimesUs.length > 0 && random.chance(0.7)) {
      return random.pick(this.#usedTimesUs) + random.between(-1, 1);
    }
    return this.#nearEdge(this.#nowUs);
  }

  /** Expressions that mean the same to RE2 and to JavaScript with the `u` flag. */
  #expression(): string {
    const random = this.#random;
    if (random.chance(0.5)) return random.pick(this.#climate.projects);
    return random.pick(EXPRESSIONS);
  }
}

const UNUSABLE_ELEMENTS = [
  '1',
  'null',
  '{}',
  '{"project":"p","timestamp":"x"}',
  '',
  '{"a":}',
  'no json',
  '"',
];

const EXPRESSIONS = [
  '^https://abc',
  '^https://abc\\.',
  'abc.?project',
  '/(?:rest|auth)/v1',
  '[?&]id=\\d{2}$',
  '[?&]id=(?:[0-4]|1\\d)$',
  'rest',
  '(?:^|/)q',
  '\\.example\\.co/$',
  '.',
  '[^/]\\?to=',
  '😀',
  '\\p{Lu}',
  'é.{1,3}x',
  'a*?$',
  'x{0}',
  'nowhere',
];
