/**
 * The steps of the comparison: fill all with the same entries, compare the answers, then measure, round after
 * round.
 */

import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { allowAllCores, keepToLastCore } from '../cores.js';
import { ARRIVAL_MS, type ArrivalSizes, askWhileFed } from './arrivals.js';
import { openClickHouse } from './clickhouse.js';
import { openDuckDb } from './duckdb.js';
import { Entries, type EntryBatch, type EntrySizes, NOW_US } from './entries.js';
import { type LogringOptions, openLogring, startLogring } from './logring.js';
import type { AnswerRow, Ask, Peer, Reach, System } from './peer.js';
import { openPostgres } from './postgres.js';
import { type Question, questionsAbout } from './question.js';
import { openRedis, type RedisCache } from './redis.js';
import { type Figure, measureRounds, type RoundSizes, warmUp } from './rounds.js';
import { openSqlite } from './sqlite.js';
import { answerProblem, Truth } from './truth.js';

export interface PeerSizes extends EntrySizes, RoundSizes, ArrivalSizes {
  /** So many looks at Logring's disk without a change before it is asked. */
  readonly quietPolls: number;
  /** Those beside Logring; null: all. */
  readonly systems: readonly string[] | null;
}

export interface PeerColumn extends Pick<Peer, 'name' | 'version' | 'reach' | 'includes'> {
  /** By question; null: it has no way to answer it. */
  readonly figures: Readonly<Record<string, Figure | null>>;
}

/** What a peer answered, and how fast, while entries arrived. */
export interface FedColumn extends Pick<PeerColumn, 'name' | 'figures'> {
  readonly arrivedPerSecond: number;
}

export interface PeerReport {
  readonly questions: readonly string[];
  /** Logring is the first of each reach. */
  readonly columns: readonly PeerColumn[];
  /** Logring, over a socket, is the first. */
  readonly fed: readonly FedColumn[];
  /** Peers that are not there, each with the reason. */
  readonly absent: Readonly<Record<string, string>>;
  readonly answersHash: string;
}

/** Throws when an answer is not what it must be. */
export async function runPeers(
  sizes: PeerSizes,
  directory: string,
  tell: (line: string) => void,
): Promise<PeerReport> {
  const comparison = new Comparison(sizes, directory, tell);
  try {
    return await comparison.run();
  } finally {
    await comparison.close();
  }
}

function present(asks: readonly (Ask | null)[]): Ask[] {
  return asks.filter((ask) => ask !== null);
}

class Comparison {
  readonly #sizes: PeerSizes;
  readonly #directory: string;
  readonly #tell: (line: string) => void;
  readonly #entries: Entries;
  readonly #questions: readonly Question[];
  readonly #truth: Truth;
  readonly #systems = new Map<string, System>();
  readonly #absent: Record<string, string> = {};
  readonly #columns: PeerColumn[] = [];
  /** By question: the rows that all must answer, whole. */
  readonly #answers = new Map<Question, AnswerRow[]>();
  #redis: RedisCache | null = null;

  constructor(sizes: PeerSizes, directory: string, tell: (line: string) => void) {
    mkdirSync(directory, { recursive: true });
    this.#sizes = sizes;
    this.#directory = directory;
    this.#tell = tell;
    this.#entries = new Entries(sizes);
    this.#questions = questionsAbout(this.#entries.busiest, NOW_US);
    this.#truth = new Truth(this.#entries.busiest, NOW_US);
  }

  async run(): Promise<PeerReport> {
    const logring = {
      directory: join(this.#directory, 'logring'),
      nowUs: NOW_US,
      quietPolls: this.#sizes.quietPolls,
    };
    await this.#open(logring);
    await this.#fill();

    keepToLastCore(process.pid);
    await this.#measure('over a socket', this.#peers('over a socket'));
    allowAllCores(process.pid);
    await this.#systems.get('Logring')!.close();
    this.#systems.delete('Logring');
    const inProcess = await openLogring(logring);
    try {
      await this.#measure('in process', [inProcess.peer, ...this.#peers('in process')]);
    } finally {
      await inProcess.close();
    }
    const answersHash = this.#hash();
    const systems = [...this.#systems.values()];
    this.#systems.set('Logring', await startLogring(logring));
    return {
      questions: this.#questions.map(({ name }) => name),
      columns: this.#columns,
      fed: await this.#feedAll([this.#systems.get('Logring')!, ...systems]),
      absent: this.#absent,
      answersHash,
    };
  }

  async close(): Promise<void> {
    for (const system of this.#systems.values()) await system.close();
  }

  async #open(logring: LogringOptions): Promise<void> {
    const fileOf = (name: string) => join(this.#directory, name);
    const openers: Readonly<Record<string, () => Promise<System | string>>> = {
      Logring: () => startLogring(logring),
      PostgreSQL: () => openPostgres(NOW_US),
      SQLite: () => openSqlite(fileOf('sqlite'), NOW_US),
      DuckDB: () => openDuckDb(fileOf('duckdb'), NOW_US),
      ClickHouse: () => openClickHouse(fileOf('clickhouse'), NOW_US),
      Redis: async () => {
        const cache = await openRedis(fileOf('redis'));
        if (typeof cache !== 'string') this.#redis = cache;
        return cache;
      },
    };
    const { systems } = this.#sizes;
    const unknown = systems?.find((name) => !(name in openers));
    if (unknown !== undefined) throw new Error(`there is no ${unknown} here: ${Object.keys(openers)}`);
    const names = Object.keys(openers).filter(
      (name) => name === 'Logring' || systems?.includes(name) !== false,
    );
    const opened = await Promise.allSettled(names.map((name) => openers[name]()));
    opened.forEach((result, i) => {
      if (result.status === 'fulfilled') this.#add(names[i], result.value);
    });
    for (const result of opened) if (result.status === 'rejected') throw result.reason;
  }

  #add(name: string, system: System | string): void {
    if (typeof system === 'string') {
      this.#absent[name] = system;
      this.#tell(`${name}: left out: ${system}`);
    } else this.#systems.set(name, system);
  }

  #peers(reach: Reach): Peer[] {
    return [...this.#systems.values()].flatMap(({ peers }) => peers).filter((peer) => peer.reach === reach);
  }

  async #fill(): Promise<void> {
    // The next batch is made while the last is taken.
    let taken: Promise<unknown> = Promise.resolve();
    for (const batch of this.#entries.batches()) {
      this.#truth.insert(batch);
      await taken;
      taken = Promise.all([...this.#systems].map(([name, system]) => this.#insert(name, system, batch)));
    }
    await taken;
    for (const [name, system] of this.#systems) {
      await system.finish();
      this.#tell(`${name}: filled`);
    }
  }

  async #insert(name: string, system: System, batch: EntryBatch): Promise<void> {
    try {
      await system.insert(batch);
    } catch (error) {
      throw new Error(`${name} did not take its entries`, { cause: error });
    }
  }

  async #measure(reach: Reach, peers: readonly Peer[]): Promise<void> {
    const figures = peers.map((): Record<string, Figure | null> => ({}));
    const prepared = new Map<Question, readonly (Ask | null)[]>();
    // All of them before the first is measured: what filling has left to be done goes on for a while.
    for (const question of this.#questions) {
      const asks = peers.map((peer) => peer.prepare(question));
      prepared.set(question, asks);
      for (const [i, ask] of asks.entries()) if (ask !== null) await this.#compare(question, peers[i], ask);
      await warmUp(present(asks), this.#sizes);
    }
    for (const [question, asks] of prepared) {
      const measured = await measureRounds(present(asks), this.#sizes);
      let next = 0;
      asks.forEach((ask, i) => {
        figures[i][question.name] = ask === null ? null : measured[next++];
      });
      const told = peers.map(
        ({ name }, i) => `${name} ${figures[i][question.name]?.p50Ms.toFixed(3) ?? '–'}`,
      );
      this.#tell(`${question.name}, ${reach}, p50 in ms: ${told.join(', ')}`);
    }
    peers.forEach(({ name, version, includes }, i) => {
      this.#columns.push({ name, version, reach, includes, figures: figures[i] });
    });
  }

  /** Each system in turn is given the same entries; its peers are asked while their share of them arrives. */
  async #feedAll(systems: readonly System[]): Promise<FedColumn[]> {
    const { arrivals, arrivalRate } = this.#sizes;
    const batchEntries = Math.ceil((arrivalRate * ARRIVAL_MS) / 2_000);
    const batches = [...this.#entries.arrivals(arrivals, batchEntries)];
    for (const batch of batches) this.#truth.insert(batch);
    this.#answers.clear();
    const columns: FedColumn[] = [];
    for (const system of systems) columns.push(...(await this.#feed(system, batches)));
    return columns;
  }

  async #feed(system: System, batches: readonly EntryBatch[]): Promise<FedColumn[]> {
    const peers = system.peers.filter(({ refresh }) => refresh !== null);
    const shareOf = (i: number) => Math.round((batches.length * i) / peers.length);
    const asked = peers.map((peer) => ({
      peer,
      asks: this.#questions.flatMap((question) => {
        const ask = peer.prepare(question);
        return ask === null ? [] : { question, ask };
      }),
    }));
    const columns: FedColumn[] = [];
    for (const [i, { peer, asks }] of asked.entries()) {
      if (peer.reach === 'over a socket') keepToLastCore(process.pid);
      else allowAllCores(process.pid);
      const { perSecond, figures } = await askWhileFed(
        system,
        peer,
        asks.map(({ ask }) => ask),
        batches.slice(shareOf(i), shareOf(i + 1)),
        this.#sizes,
      );
      const byQuestion: Record<string, Figure | null> = {};
      for (const { name } of this.#questions) byQuestion[name] = null;
      asks.forEach(({ question }, k) => {
        byQuestion[question.name] = figures[k];
      });
      columns.push({ name: peer.name, arrivedPerSecond: perSecond, figures: byQuestion });
      this.#tell(`${peer.name}: asked while ${perSecond.toFixed(0)} entries a second arrived`);
    }
    for (const { peer, asks } of asked)
      for (const { question, ask } of asks) await this.#compare(question, peer, ask);
    return columns;
  }

  /**
   * The first peer asked is Logring: what it answers goes into Redis, and others must answer the same whole
   * rows.
   */
  async #compare(question: Question, peer: Peer, ask: Ask): Promise<void> {
    const result = await ask.run();
    const rows = ask.rows(result);
    const problem =
      answerProblem(question, this.#truth.expected(question), rows) ?? this.#differs(question, rows);
    if (problem !== null) throw new Error(`${peer.name}, ${peer.reach}: ${question.name}: ${problem}`);
    if (this.#answers.has(question)) return;
    if (rows.length === 0) throw new Error(`${question.name}: there is nothing to answer`);
    this.#answers.set(question, rows);
    await this.#redis?.keep(question, result as Uint8Array);
  }

  /** Of logs, the model knows ids only. */
  #differs(question: Question, rows: readonly AnswerRow[]): string | null {
    const first = this.#answers.get(question);
    if (question.kind !== 'logs' || first === undefined) return null;
    return JSON.stringify(rows) === JSON.stringify(first) ? null : 'other rows than Logring';
  }

  /** Of what must be answered, percentiles exactly. */
  #hash(): string {
    const hash = createHash('sha256');
    let rowCount = 0;
    for (const question of this.#questions) {
      const rows =
        question.kind === 'logs'
          ? this.#answers.get(question)!
          : this.#truth.expected(question).map(({ row }) => row);
      rowCount += rows.length;
      hash.update(JSON.stringify(rows));
    }
    return `${hash.digest('hex').slice(0, 16)} over ${rowCount} rows`;
  }
}
