/**
 * Brokers, service, producer and askers together for a time: what is killed, when, and what is written down.
 *
 *   directory/brokers/  store/     their data
 *   directory/ledger.json          what was produced, written when a soak is stopped or over: it goes on from there
 *   directory/samples.ndjson       what the service held, a line each sampleSeconds
 *   directory/wrong.ndjson         wrong answers with their questions
 */

import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Kafka } from 'kafkajs';
import { createLedTopics } from '../../bench/led-topics.js';
import { monotonicUs } from '../../src/system-clock.js';
import { allocatorOf, MEMORY_SETTINGS } from '../child-service.js';
import { createKafka, EDGE_TOPIC, RELAY_TOPIC } from '../crash/kafka-producers.js';
import { pause } from '../eventually.js';
import { type Broker, startCluster } from '../kafka/broker/broker.js';
import { Asker, type AskFigures } from './asker.js';
import { Client } from './client.js';
import { finalProblems } from './final-check.js';
import { Ledger } from './ledger.js';
import { Lives } from './lives.js';
import type { SoakOptions } from './options.js';
import { SoakProducer } from './producer.js';
import { type Sample, takeSample } from './samples.js';
import { type Finding, verdictOf } from './verdict.js';

/** Of all replicas of all partitions together: some minutes of traffic, so that nothing unread is removed. */
const TOPIC_BYTES = 6 * 2 ** 30;
const SEGMENTS = 8;
const REPLICAS = 3;

export interface SoakReport {
  readonly isOver: boolean;
  readonly elapsedSeconds: number;
  readonly figures: AskFigures;
  /** Empty when it was stopped before its end. */
  readonly problems: readonly string[];
  readonly findings: readonly Finding[];
}

export async function runSoak(
  options: SoakOptions,
  tell: (text: string) => void,
  stop: AbortSignal,
): Promise<SoakReport> {
  const soak = await Soak.begin(options, tell, stop);
  try {
    await soak.run();
    return await soak.conclude();
  } finally {
    await soak.end();
  }
}

class Soak {
  readonly #options: SoakOptions;
  readonly #tell: (text: string) => void;
  readonly #stop: AbortSignal;
  /** Aborted when the time is up or something has failed. */
  readonly #ended = new AbortController();
  /** Aborts at that or when it is told to stop. */
  readonly #over: AbortSignal;
  readonly #ledger: Ledger;
  readonly #brokers: readonly Broker[];
  readonly #kafka: Kafka;
  readonly #lives: Lives;
  readonly #producer: SoakProducer;
  readonly #client: Client;
  readonly #asker: Asker;
  readonly #samples: Sample[];
  #failure: unknown = null;

  private constructor(
    options: SoakOptions,
    tell: (text: string) => void,
    stop: AbortSignal,
    ledger: Ledger,
    brokers: readonly Broker[],
    lives: Lives,
  ) {
    this.#options = options;
    this.#tell = tell;
    this.#stop = stop;
    this.#ledger = ledger;
    this.#brokers = brokers;
    this.#kafka = createKafka(brokers.flatMap((broker) => broker.brokers));
    this.#lives = lives;
    this.#producer = new SoakProducer(this.#kafka, options, ledger);
    this.#client = new Client(lives.url);
    this.#asker = new Asker({
      client: this.#client,
      ledger,
      queriesPerSecond: options.queriesPerSecond,
      seed: options.seed + ledger.elapsedSeconds,
      mass: this.#producer.asked.map(({ ref, functions }) => {
        return { project: ref, functionIds: functions.map(({ id }) => id) };
      }),
      wrongFile: this.#file('wrong.ndjson'),
      turn: () => lives.turn,
      isAway: () => lives.isAway,
    });
    this.#samples = readLines(this.#file('samples.ndjson'));
    this.#over = AbortSignal.any([stop, this.#ended.signal]);
  }

  static async begin(options: SoakOptions, tell: (text: string) => void, stop: AbortSignal): Promise<Soak> {
    const { directory, budgetMb, restartSeconds } = options;
    const saved = join(directory, 'ledger.json');
    const isNew = !existsSync(saved);
    if (isNew && existsSync(join(directory, 'store')))
      throw new Error(
        `${directory} is of a soak that was not stopped in order; begin with another directory`,
      );
    mkdirSync(directory, { recursive: true });
    const ledger = isNew ? new Ledger() : Ledger.load(saved);
    // What is said there is no longer so from now on.
    rmSync(saved, { force: true });
    const brokers = await startCluster(
      // Three brokers on a small machine miss heartbeats of half a second.
      {
        version: '4.1',
        properties: { 'broker.session.timeout.ms': '6000' },
        isForLong: restartSeconds === 0,
      },
      3,
      join(directory, 'brokers'),
    );
    const lives = await Lives.create(
      {
        LOGRING_DATA_DIR: join(directory, 'store'),
        LOGRING_KAFKA_BROKERS: brokers.flatMap((broker) => broker.brokers).join(),
        LOGRING_MEMORY_BUDGET_MB: String(budgetMb),
        LOGRING_CACHE_SECONDS: '900',
        ...MEMORY_SETTINGS,
      },
      (error) => soak.#fail(error),
    );
    const soak = new Soak(options, tell, stop, ledger, brokers, lives);
    if (isNew) await soak.#createTopics();
    return soak;
  }

  /** All at once, until the time is up or it is told to stop. */
  async run(): Promise<void> {
    const { seconds, killSeconds, restartSeconds, sampleSeconds } = this.#options;
    await this.#producer.connect();
    if (this.#ledger.elapsedSeconds === 0) {
      await this.#producer.producePast(this.#over);
      this.#tell(`produced ${this.#ledger.sums.entries} entries of the past`);
    }
    // The time counts from when questions are answered.
    await this.#lives.begin('ready');
    this.#tell(`the service is process ${this.#lives.processId}, ${allocatorOf(this.#lives.processId)}`);
    const before = this.#ledger.elapsedSeconds;
    const startUs = monotonicUs();
    const elapsed = () => before + (monotonicUs() - startUs) / 1e6;
    await Promise.all([
      this.#untilOver(this.#producer.run(this.#over)),
      this.#untilOver(this.#asker.run(this.#over)),
      this.#untilOver(this.#every(killSeconds, () => this.#kill())),
      this.#untilOver(this.#every(restartSeconds, (turn) => this.#restartBroker(turn))),
      this.#untilOver(this.#every(sampleSeconds, () => this.#sample(elapsed()))),
      this.#untilOver(this.#every(60, async () => this.#tell(this.#line(elapsed())))),
      this.#untilOver(pause((seconds - before) * 1000, this.#over).finally(() => this.#ended.abort())),
    ]);
    this.#ledger.elapsedSeconds = elapsed();
    if (this.#failure !== null) throw this.#failure;
  }

  async conclude(): Promise<SoakReport> {
    const { figures } = this.#asker;
    const { elapsedSeconds } = this.#ledger;
    const isOver = !this.#stop.aborted;
    if (!isOver) return { isOver, elapsedSeconds, figures, problems: [], findings: [] };
    this.#tell(this.#line(elapsedSeconds));
    const problems = await finalProblems({
      kafka: this.#kafka,
      client: this.#client,
      url: this.#lives.url,
      ledger: this.#ledger,
      massProjects: this.#producer.projects.map(({ ref }) => ref),
    });
    return {
      isOver,
      elapsedSeconds,
      figures,
      problems,
      findings: verdictOf(this.#samples, this.#options.queriesPerSecond),
    };
  }

  async end(): Promise<void> {
    await this.#producer.disconnect();
    this.#client.close();
    await this.#lives.end('SIGTERM');
    await Promise.all(this.#brokers.map((broker) => broker.stop()));
    if (this.#failure === null) this.#ledger.save(this.#file('ledger.json'));
  }

  #file(name: string): string {
    return join(this.#options.directory, name);
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#ended.abort();
  }

  /** A failure of one of them ends them all. */
  #untilOver(work: Promise<void>): Promise<void> {
    return work.catch((error: unknown) => this.#fail(error));
  }

  async #every(seconds: number, task: (turn: number) => Promise<void>): Promise<void> {
    if (seconds === 0) return;
    for (let turn = 0; ; turn++) {
      await pause(seconds * 1000, this.#over);
      if (this.#over.aborted) return;
      await task(turn);
    }
  }

  async #kill(): Promise<void> {
    await this.#lives.end('SIGKILL');
    await this.#lives.begin('listening');
    this.#tell(`killed; life ${this.#lives.count} has begun`);
  }

  async #restartBroker(turn: number): Promise<void> {
    const broker = this.#brokers[turn % this.#brokers.length];
    if (broker.canBeKilled) await broker.restart();
  }

  async #sample(second: number): Promise<void> {
    const lives = this.#lives;
    const { turn } = lives;
    if (lives.isAway) return;
    try {
      const sample = await takeSample(second, {
        lives,
        ledger: this.#ledger,
        figures: this.#asker.figures,
        storeDirectory: join(this.#options.directory, 'store'),
        brokersDirectory: existsSync(this.#file('brokers')) ? this.#file('brokers') : null,
      });
      this.#samples.push(sample);
      appendFileSync(this.#file('samples.ndjson'), `${JSON.stringify(sample)}\n`);
    } catch (error) {
      // Killed meanwhile: the next life has samples of its own.
      if (lives.turn === turn) throw error;
    }
  }

  #line(second: number): string {
    const { asked, answered, probed, stale, cached, refused, lost, wrong } = this.#asker.figures;
    const last = this.#samples.at(-1);
    const mb = (bytes = Number.NaN) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
    return [
      `${Math.round(second)} s: life ${this.#lives.count}, ${this.#ledger.sums.entries} entries produced`,
      `${asked} asked, ${answered} answered (${probed} held against the model, ${cached} cached, ${stale} older)`,
      `${refused} refused, ${lost} lost to kills, ${this.#client.resentCount} sent again, ${wrong} WRONG`,
      `heap ${mb(last?.heapBytes)}, resident ${mb(last?.residentBytes)}, counted ${mb(last?.countedBytes)}`,
      `${last?.descriptors} descriptors, store ${mb(last?.storeBytes)}, topics ${mb(last?.topicBytes)}`,
    ].join('; ');
  }

  async #createTopics(): Promise<void> {
    const { edgePartitions, relayPartitions } = this.#options;
    const retentionBytes = Math.floor(TOPIC_BYTES / REPLICAS / (edgePartitions + relayPartitions));
    const configEntries = [
      { name: 'retention.bytes', value: String(retentionBytes) },
      { name: 'segment.bytes', value: String(Math.floor(retentionBytes / SEGMENTS)) },
    ];
    const admin = this.#kafka.admin();
    await admin.connect();
    await createLedTopics(admin, [
      { topic: EDGE_TOPIC, numPartitions: edgePartitions, configEntries },
      { topic: RELAY_TOPIC, numPartitions: relayPartitions, configEntries },
    ]);
    await admin.disconnect();
  }
}

function readLines<Line>(file: string): Line[] {
  if (!existsSync(file)) writeFileSync(file, '');
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
}
