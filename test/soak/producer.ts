/**
 * Entries at a steady rate into both topics, as much of which expires as arrives: most lie at the end of
 * their retention of seven days, some are of the moment, and a few belong to probes, of which the ledger has
 * every entry.
 *
 * What is kept by the day doesn't expire within a soak; it is made to be full early: all projects have requests, and
 * have been called, but calls go on to a few functions, whose percentiles take no more memory after some minutes. Only
 * entries of probes are merged by the day: what expires or is kept for a day is not.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { CompressionTypes, type Kafka, type Producer } from 'kafkajs';
import { OddRecords, TIME_SHAPES, unusableText } from '../../bench/generator/odd-records.js';
import { createTraffic, type GeneratedProject, type Traffic } from '../../bench/generator/traffic.js';
import { truncateUs, US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND } from '../../engine/time.js';
import { Random } from '../../src/demo/random.js';
import { monotonicUs, wallClockUs } from '../../src/system-clock.js';
import { EDGE_TOPIC, RELAY_TOPIC } from '../crash/kafka-producers.js';
import { decodeEdgeNaively, decodeRelayNaively, type NaiveRecord } from '../model/naive-decoder.js';
import type { AreaCounts, Ledger, Probe, Request } from './ledger.js';
import type { SoakOptions } from './options.js';

type Kind = 'edge' | 'relay';

interface Draft {
  readonly kind: Kind;
  readonly text: string | null;
  readonly timestampMs: number;
  /** Whose; null: of the mass. */
  readonly probe: Probe | null;
}

/** Where each topic's records of a request go. */
type Partitions = Readonly<Record<Kind, number>>;

interface ActiveProbe {
  readonly probe: Probe;
  readonly records: OddRecords;
  /** Of the past day that it has entries of. */
  readonly daysBack: number;
}

const TICK_MS = 20;
/** Records of one request: few enough that a partition's share stays below the broker's limit for a batch. */
const SEND_COUNT = 500;
const UNUSABLE_SHARE = 1 / 500;
/** Few entries, and few probes, as what the service has of them stays for hours and days. */
const PROBE_SHARE = 1 / 400;
/**
 * Few, and of few projects, as what they add to is over in hours and days only: `usage.api-counts` keeps each for seven days,
 * some 180 bytes in memory. A hundredth was 10 MiB an hour that nothing of them expired for.
 */
const LIVE_SHARE = 0.002;
const LIVE_PROJECTS = 5;
/**
 * Of the past of live traffic, before what fills the last hours: so many hours, with so many entries of each topic in each
 * partition. Then there are as many files from the beginning as there will be.
 */
const PAST_HOURS = 24;
const PAST_HOUR_ENTRIES = 3;
/** Projects whose functions are called all the time; some minutes make digests of their buckets, of each partition. */
const CALLED_PROJECTS = 50;
/** Of the projects that are not called, at most. */
const ASKED_OTHERS = 400;
/** Calls of each project of the past, in the mean. */
const PAST_CALLS = 10;
const GZIP_SHARE = 0.25;
/** So long after its arrival an entry of the mass has expired, at most. */
const EXPIRY_SPREAD_US = 10 * US_PER_MINUTE;
const RETENTION_US = 7 * US_PER_DAY;
/** Probes that get entries at a time, and for how long each: then it is known for good. */
const ACTIVE_PROBES = 3;
const ACTIVE_SECONDS = 600;
const LEAST_PARTITIONS = 4;

/** The hour of past days in which probes have entries. */
const NOON_US = US_PER_DAY / 2;

const AREAS = ['/rest', '/storage', '/auth', '/realtime'];

export class SoakProducer {
  readonly #options: SoakOptions;
  readonly #ledger: Ledger;
  readonly #random: Random;
  readonly #producer: Producer;
  readonly #expiring: Traffic;
  readonly #called: Traffic;
  readonly #live: Traffic;
  #active: ActiveProbe[] = [];
  #activeUntilUs = 0;

  constructor(kafka: Kafka, options: SoakOptions, ledger: Ledger) {
    this.#options = options;
    this.#ledger = ledger;
    this.#random = new Random(options.seed + ledger.sums.entries);
    this.#producer = kafka.producer({ idempotent: true, maxInFlightRequests: 1 });
    const { seed, projects } = options;
    const sizes = { projectCount: projects, maxFunctionCount: 1 };
    this.#expiring = createTraffic({ ...sizes, seed, tierOf: () => 'PRO' });
    // The first of the same, evenly.
    const calledCount = Math.min(projects, CALLED_PROJECTS);
    this.#called = createTraffic({ ...sizes, projectCount: calledCount, seed, zipfExponent: 0 });
    const liveCount = Math.min(projects, LIVE_PROJECTS);
    this.#live = createTraffic({
      ...sizes,
      projectCount: liveCount,
      seed: seed + 1,
      tierOf: () => 'FREE',
    });
  }

  /** Of the mass. */
  get projects(): readonly GeneratedProject[] {
    return [...this.#expiring.projects, ...this.#live.projects];
  }

  /**
   * Those that questions are about, which are few: what the service remembers of them is full within minutes. Of the
   * moment, of those that are called, and of all others.
   */
  get asked(): readonly GeneratedProject[] {
    const others = this.#expiring.projects.slice(CALLED_PROJECTS);
    const step = Math.ceil(others.length / ASKED_OTHERS);
    return [
      ...this.#live.projects,
      ...this.#called.projects,
      ...others.filter((_, index) => index % step === 0),
    ];
  }

  connect(): Promise<void> {
    return this.#producer.connect();
  }

  disconnect(): Promise<void> {
    return this.#producer.disconnect();
  }

  /** Calls of all projects, and live traffic of the past day, as fast as it is taken. */
  async producePast(signal: AbortSignal): Promise<void> {
    const { pastSeconds, entriesPerSecond, projects, seed } = this.#options;
    const everyone = createTraffic({ seed, projectCount: projects, maxFunctionCount: 1, zipfExponent: 0 });
    await this.#sendAll(projects * PAST_CALLS, signal, () =>
      drawn('relay', everyone.relay(this.#expiringUs(wallClockUs())), null),
    );
    await this.#producePastHours(signal);
    const total = Math.floor(pastSeconds * entriesPerSecond * LIVE_SHARE);
    const startUs = wallClockUs() - pastSeconds * US_PER_SECOND;
    await this.#sendAll(total, signal, (index) =>
      this.#liveDraft(startUs + Math.floor((pastSeconds * US_PER_SECOND * index) / total)),
    );
  }

  async #producePastHours(signal: AbortSignal): Promise<void> {
    const { edgePartitions, relayPartitions } = this.#options;
    const nowUs = wallClockUs();
    const hours = Array.from(
      { length: PAST_HOURS - 1 },
      (_, hoursAgo) => nowUs - (hoursAgo + 1) * US_PER_HOUR,
    );
    const times = hours.flatMap((timeUs) => new Array<number>(PAST_HOUR_ENTRIES).fill(timeUs));
    for (let i = 0; i < Math.max(edgePartitions, relayPartitions) && !signal.aborted; i++) {
      const partitions = { edge: i % edgePartitions, relay: i % relayPartitions };
      const drafts = times.flatMap((timeUs) => [
        drawn('edge', this.#live.edge(timeUs), null),
        drawn('relay', this.#live.relay(timeUs), null),
      ]);
      await this.#send(drafts, partitions);
    }
  }

  async #sendAll(total: number, signal: AbortSignal, draft: (index: number) => Draft): Promise<void> {
    for (let made = 0; made < total && !signal.aborted; ) {
      const drafts: Draft[] = [];
      for (; drafts.length < SEND_COUNT && made < total; made++) drafts.push(draft(made));
      await this.#send(drafts, this.#drawPartitions());
    }
  }

  /** Until told to stop; what brokers that are away hold up is caught up with. */
  async run(signal: AbortSignal): Promise<void> {
    const startUs = monotonicUs();
    let made = 0;
    while (!signal.aborted) {
      const due = Math.floor((this.#options.entriesPerSecond * (monotonicUs() - startUs)) / US_PER_SECOND);
      const count = Math.min(due - made, SEND_COUNT);
      const partitions = this.#drawPartitions();
      if (count > 0)
        await this.#send(
          Array.from({ length: count }, () => this.#draft(partitions)),
          partitions,
        );
      made += Math.max(0, count);
      if (due - made < SEND_COUNT) await delay(TICK_MS);
    }
  }

  /**
   * One of each topic at a time: of a call that goes to several brokers, kafkajs 2.2.4 forgets what moves, while it tries
   * again, to a broker that has answered already.
   */
  #drawPartitions(): Partitions {
    const { edgePartitions, relayPartitions } = this.#options;
    return { edge: this.#random.below(edgePartitions), relay: this.#random.below(relayPartitions) };
  }

  #draft(partitions: Partitions): Draft {
    const random = this.#random;
    const nowUs = wallClockUs();
    if (random.chance(PROBE_SHARE)) return this.#probeDraft(nowUs, partitions);
    if (random.chance(UNUSABLE_SHARE)) {
      const kind = random.pick<Kind>(['edge', 'relay']);
      return drawn(kind, unusableText(random, kind, nowUs), null);
    }
    if (random.chance(LIVE_SHARE)) return this.#liveDraft(nowUs);
    const timestampUs = this.#expiringUs(nowUs);
    return random.chance(0.5)
      ? drawn('edge', this.#expiring.edge(timestampUs), null)
      : drawn('relay', this.#called.relay(timestampUs), null);
  }

  #expiringUs(nowUs: number): number {
    return nowUs - RETENTION_US + this.#random.below(EXPIRY_SPREAD_US);
  }

  #liveDraft(timestampUs: number): Draft {
    return this.#random.chance(0.5)
      ? drawn('edge', this.#live.edge(timestampUs), null)
      : drawn('relay', this.#live.relay(timestampUs), null);
  }

  #probeDraft(nowUs: number, partitions: Partitions): Draft {
    const random = this.#random;
    if (nowUs >= this.#activeUntilUs) {
      this.#activeUntilUs = nowUs + ACTIVE_SECONDS * US_PER_SECOND;
      this.#active = Array.from({ length: ACTIVE_PROBES }, () => {
        const probe = this.#ledger.addProbe();
        const functionIds = ['f1', 'f2', 'f3'];
        const timeShape = random.pick(TIME_SHAPES);
        const projects = [probe.name];
        return {
          probe,
          daysBack: random.between(1, 6),
          records: new OddRecords(random, { projects, functionIds, timeShape, oddShare: 0.3 }),
        };
      });
    }
    const kind = random.pick<Kind>(['edge', 'relay']);
    const { probe, records, daysBack } = random.pick(this.#activeIn(kind, partitions[kind]));
    for (;;) {
      const timestampUs = drawProbeTime(random, nowUs, daysBack);
      const text = kind === 'edge' ? records.edge(timestampUs) : records.relay(timestampUs);
      // An entry without an id gets one from its offset, which is not known yet.
      if (kind === 'relay' || JSON.parse(text).id !== undefined) return drawn(kind, text, probe);
    }
  }

  /**
   * Each has entries in a third of the partitions, as the service has something of it in each for days, but in four if
   * there are: its answers are to be merged.
   */
  #activeIn(kind: Kind, partition: number): ActiveProbe[] {
    const { edgePartitions, relayPartitions } = this.#options;
    const count = kind === 'edge' ? edgePartitions : relayPartitions;
    const width = Math.max(LEAST_PARTITIONS, Math.ceil(count / ACTIVE_PROBES));
    return this.#active.filter((_, index) => {
      const first = Math.floor((index * count) / ACTIVE_PROBES);
      return (partition - first + count) % count < width;
    });
  }

  async #send(drafts: readonly Draft[], partitions: Partitions): Promise<void> {
    const request: Request = { sentUs: wallClockUs(), ackedUs: Number.POSITIVE_INFINITY };
    // Before they leave: from now on any answer may have them.
    for (const draft of drafts) this.#noteSent(draft, request);
    const compression = this.#random.chance(GZIP_SHARE) ? CompressionTypes.GZIP : CompressionTypes.None;
    await Promise.all(
      [...new Set(drafts.map(({ kind }) => kind))].map((kind) =>
        this.#producer.send({
          topic: kind === 'edge' ? EDGE_TOPIC : RELAY_TOPIC,
          acks: -1,
          compression,
          messages: drafts
            .filter((draft) => draft.kind === kind)
            .map(({ text, timestampMs }) => {
              return { value: text, partition: partitions[kind], timestamp: String(timestampMs) };
            }),
        }),
      ),
    );
    request.ackedUs = wallClockUs();
  }

  #noteSent(draft: Draft, request: Request): void {
    const { sums } = this.#ledger;
    const { kind, text, probe } = draft;
    if (kind === 'edge') sums.edgeRecords += 1;
    else sums.relayRecords += 1;
    if (probe !== null) this.#noteProbe(draft, probe, request);
    else if (text === null || !text.startsWith('{"id":')) this.#noteUnusable(draft);
    else if (kind === 'edge') this.#noteEdge(text);
    else this.#noteRelay(text);
  }

  #noteProbe(draft: Draft, probe: Probe, request: Request): void {
    const { sums } = this.#ledger;
    const record = naiveRecord(draft);
    if (draft.kind === 'edge') {
      for (const element of decodeEdgeNaively(record, request.sentUs)) {
        if ('reason' in element) throw new Error(`a probe's entry is unusable: ${element.reason}`);
        probe.edge.push({ entry: element.entry, request });
        add(sums.edgeByHour, Math.floor(element.entry.timestampUs / US_PER_HOUR), 1);
        sums.entries += 1;
      }
    } else {
      for (const element of decodeRelayNaively(record, request.sentUs)) {
        if ('reason' in element) throw new Error(`a probe's entry is unusable: ${element.reason}`);
        probe.relay.push({ entry: element.entry, request });
        sums.entries += 1;
      }
    }
  }

  #noteUnusable(draft: Draft): void {
    const { sums } = this.#ledger;
    const record = naiveRecord(draft);
    const nowUs = wallClockUs();
    const elements =
      draft.kind === 'edge' ? decodeEdgeNaively(record, nowUs) : decodeRelayNaively(record, nowUs);
    sums.entries += elements.length;
    sums.unusable += elements.filter((element) => 'reason' in element).length;
  }

  #noteEdge(text: string): void {
    const { sums } = this.#ledger;
    const timestampUs = Number(between(text, '"timestamp":', ','));
    const path = between(text, '"path":"', '"');
    const second = Math.floor(timestampUs / US_PER_SECOND);
    const counts = sums.edgeBySecond.get(second) ?? ([0, 0, 0, 0] as AreaCounts);
    sums.edgeBySecond.set(second, counts);
    for (const [column, area] of AREAS.entries()) if (path.includes(area)) counts[column] += 1;
    add(sums.edgeByHour, Math.floor(timestampUs / US_PER_HOUR), 1);
    sums.entries += 1;
  }

  #noteRelay(text: string): void {
    const { sums } = this.#ledger;
    const hour = Math.floor(Number(between(text, '"timestamp":', ',')) / US_PER_HOUR);
    const key = `${between(text, '"project_ref":"', '"')} ${hour}`;
    const counts = sums.relayByHour.get(key) ?? ([0, 0] as [number, number]);
    sums.relayByHour.set(key, counts);
    counts[0] += 1;
    if (Number(between(text, '"status_code":', '}')) >= 400) counts[1] += 1;
    sums.entries += 1;
  }
}

/** Of the generator's own text, which is known: taking it apart as JSON costs more than making it. */
function between(text: string, head: string, tail: string): string {
  const start = text.indexOf(head) + head.length;
  return text.slice(start, text.indexOf(tail, start));
}

function drawn(kind: Kind, text: string | null, probe: Probe | null): Draft {
  return { kind, text, timestampMs: Date.now(), probe };
}

/** Where it lies in the topic is not known yet, and matters only to entries without an id. */
function naiveRecord({ kind, text, timestampMs }: Draft): NaiveRecord {
  const topic = kind === 'edge' ? EDGE_TOPIC : RELAY_TOPIC;
  const value = text === null ? null : Buffer.from(text);
  return { topic, partition: 0, offset: 0, timestampMs, value, projectTier: null };
}

function add(map: Map<number, number>, key: number, count: number): void {
  map.set(key, (map.get(key) ?? 0) + count);
}

/**
 * Of now and of the hour before, of one hour of one past day (others would be ever more files), about to expire by either
 * retention, or ahead; null: the record's own time.
 */
function drawProbeTime(random: Random, nowUs: number, daysBack: number): number | null {
  if (random.chance(0.05)) return null;
  if (random.chance(0.5)) return nowUs - random.below(US_PER_SECOND);
  if (random.chance(0.3)) return nowUs - random.below(US_PER_HOUR);
  if (random.chance(0.5))
    return truncateUs(nowUs, US_PER_DAY) - daysBack * US_PER_DAY + NOON_US + random.below(US_PER_HOUR);
  if (random.chance(0.2)) return nowUs + random.below(50 * US_PER_MINUTE);
  const retentionUs = random.pick([US_PER_HOUR, US_PER_DAY, RETENTION_US]);
  return nowUs - retentionUs + random.below(EXPIRY_SPREAD_US);
}
