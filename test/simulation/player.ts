/**
 * Plays a short history to the service in simulated lives and to the model side by side, and compares every
 * answer.
 */

import { SegmentError } from '../../engine/segments.js';
import { SeriesMerge } from '../../engine/stats/series-merge.js';
import { Random } from '../../src/demo/random.js';
import { DiskFullError } from '../../src/store/disk/disk-room.js';
import { LogTable } from '../../src/store/log-table.js';
import type { StatsMemo } from '../model/engine-answers.js';
import type { Question, Topic } from '../model/history.js';
import { type ModelPartition, ModelReader } from '../model/model-reader.js';
import { answerProblem, countersProblem, lettersProblem } from './answer-checks.js';
import type { Delivery } from './delivery.js';
import { ArmedError, type CrashKind, Faults, LifeEnded, type Operation } from './faults.js';
import { LogDelivery } from './log-delivery.js';
import { PostDelivery, Posts, readLogEnd, takeRecords } from './post-delivery.js';
import { rowFilesProblem } from './row-file-check.js';
import type { Action, ShortHistory, Step } from './short-history.js';
import { DiskOfLife, SimulatedDisk } from './simulated-disk.js';
import { type Assembly, DATA_FOLDER, Life, type World } from './simulated-service.js';

/** What happened in a history, to see that histories reach what they are for. */
export interface Figures {
  /** Where armed crashes came. */
  readonly crashedAt: Readonly<Partial<Record<Operation, number>>>;
  lives: number;
  killed: number;
  powerCuts: number;
  errors: number;
  removalErrors: number;
  compactions: number;
  commits: number;
  filesSeen: number;
}

/** More than any history needs until nothing is left to do. */
const SETTLE_STEPS = 20_000;

/** What is known of a partition at one time. */
interface Remembered {
  readonly nextOffset: number;
  readonly goBack: () => void;
}

interface Undecided {
  readonly partition: ModelPartition;
  readonly either: readonly [Remembered, Remembered];
}

/** Ends a history: the service disagrees with the model. */
class Problem extends Error {}

export class Player {
  readonly figures: Figures;
  readonly #history: ShortHistory;
  readonly #assembly: Assembly;
  readonly #reader: ModelReader;
  readonly #world: World;
  #random: Random;
  #nowUs: number;
  #monotonicUs = 0;
  #life!: Life;
  #delivery!: Delivery;
  readonly #posts = new Posts();
  readonly #stats: StatsMemo = new SeriesMerge((row) => row);
  /** By partition, what its last save wrote, and what its last commit left: a crash leaves either. */
  readonly #saved = new Map<ModelPartition, Remembered>();
  readonly #committed = new Map<ModelPartition, Remembered>();

  constructor(history: ShortHistory, assembly: Assembly) {
    this.#history = history;
    this.#assembly = assembly;
    this.#reader = new ModelReader(history);
    this.#nowUs = history.startUs;
    this.#random = new Random(1);
    for (const partition of this.#reader.partitions) {
      this.#remember(partition);
      this.#committed.set(partition, this.#saved.get(partition)!);
    }
    this.#world = {
      disk: new SimulatedDisk([DATA_FOLDER]),
      faults: new Faults(),
    };
    this.figures = {
      crashedAt: this.#world.faults.crashedAt,
      lives: 0,
      killed: 0,
      powerCuts: 0,
      errors: 0,
      removalErrors: 0,
      compactions: 0,
      commits: 0,
      filesSeen: 0,
    };
  }

  async begin(): Promise<void> {
    await this.#beginLife();
  }

  async play({ turns, seed, ...action }: Step): Promise<void> {
    this.#random = new Random(seed);
    await this.#living(() => this.#do(action));
    await this.#living(() => this.#life.run(turns));
  }

  /** What must hold when all is over, and after one more start. */
  async finish(): Promise<void> {
    this.#random = new Random(2);
    this.#world.faults.disarm();
    // An error that was met before may end the life at the first stop, but not at the second.
    for (const action of ['settle', 'round', 'settle', 'restart', 'settle', 'restart'] as const)
      await this.#living(() => this.#do({ do: action }));
    for (const { topic, partition, log, nextOffset } of this.#reader.partitions) {
      const endOffset = (log.at(-1)?.offset ?? -1) + 1;
      if (nextOffset !== endOffset)
        throw new Problem(`${topic}/${partition} was read up to ${nextOffset} of ${endOffset}`);
    }
    const isExact = this.#history.judgedBy === 'arrival';
    this.#expect(lettersProblem(this.#reader, this.#life.parts.deadLetters, isExact));
    this.#expect(this.#posts.problem(this.#reader));
  }

  /** Does something in the present life; should that end by it, the next one begins. */
  async #living(task: () => Promise<unknown>): Promise<void> {
    try {
      await task();
    } catch (error) {
      if (!(error instanceof LifeEnded)) throw error;
    }
    if (this.#life.isOver) await this.#beginLife();
    if (this.#life.damage !== null) throw this.#life.damage;
  }

  async #do(action: Action): Promise<void> {
    const { faults } = this.#world;
    switch (action.do) {
      case 'deliver':
        return this.#delivery.deliver(this.#reader.of(action.topic, action.partition), action.records);
      case 'redeliver':
        return this.#delivery.redeliver(this.#reader.of(action.topic, action.partition), action.back);
      case 'pass':
        this.#nowUs += action.byUs;
        this.#monotonicUs += action.byUs;
        this.#posts.timePassed(action.byUs);
        return;
      case 'set-clock':
        this.#nowUs += action.byUs;
        return;
      case 'round':
        return this.#round();
      case 'commit':
        this.#life.parts.committer.commit().catch((error) => this.#life.end(error));
        return;
      case 'settle':
        return this.#settle();
      case 'ask':
        this.#delivery.readAlong();
        return this.#ask(action);
      case 'restart':
        return this.#restart();
      case 'crash':
        return faults.armCrashes(action.crashes);
      case 'fail':
        return faults.armError(action.operation, action.error, action.part);
    }
  }

  #round(): void {
    this.#delivery.readAlong();
    this.#expireModel();
    this.#life.parts.committer.round().catch((error) => this.#life.end(error));
  }

  /**
   * By the time that the service trusts, as the round after it does; test/trusted-time has what that may be.
   */
  #expireModel(): void {
    const { time } = this.#life.parts;
    time.observe(this.#nowUs, this.#monotonicUs);
    this.#reader.model.expire(time.trustedUs(this.#nowUs, this.#monotonicUs));
  }

  async #settle(): Promise<void> {
    this.#delivery.deliverAll();
    if (await this.#life.run(SETTLE_STEPS)) throw new Problem('the service does not come to rest');
    if (this.#life.isOver) return;
    this.#checkAll();
    const { errorCount, removalErrorCount } = this.#world.faults;
    // A removal that failed is made with the next question to the storage thread.
    if (errorCount + removalErrorCount === 0) this.#checkFiles();
  }

  async #restart(): Promise<void> {
    const { compactor, committer, store } = this.#life.parts;
    store.room.stopWaiting();
    await this.#delivery.stop();
    if (this.#life.isOver) return;
    compactor.stop();
    if ((await this.#life.finish(committer.stop().then(() => true))) === null) return;
    if ((await this.#life.finish(store.close().then(() => true))) === null) return;
    this.#world.faults.ended = 'process';
  }

  #noteCommit(): void {
    this.figures.commits += 1;
    for (const [partition, saved] of this.#saved) this.#committed.set(partition, saved);
  }

  async #beginLife(): Promise<void> {
    const { faults, disk } = this.#world;
    const { figures } = this;
    do {
      if (this.#life !== undefined) this.#bury(faults, figures);
      if (faults.ended === 'power') disk.cutPower(this.#random);
      faults.beginLife();
      figures.lives += 1;
      this.#life = new Life(
        {
          world: this.#world,
          random: () => this.#random,
          nowUs: () => this.#nowUs,
          monotonicUs: () => this.#monotonicUs,
          judgedBy: this.#history.judgedBy,
          source: this.#history.source,
          onSaved: ({ topic, partition }) => {
            this.#delivery.readAlong();
            this.#remember(this.#reader.of(topic as Topic, partition));
          },
          onCommitted: () => this.#noteCommit(),
          onAppended: (topic, records) => takeRecords(this.#reader, topic, records),
        },
        this.#assembly,
      );
      await this.#life.begin();
    } while (this.#life.isOver);
    const undecided = this.#goBack();
    this.#expireModel();
    const { embeddedLog, store } = this.#life.parts;
    this.#delivery =
      embeddedLog === null
        ? new LogDelivery(this.#reader, this.#life, () => this.#nowUs)
        : new PostDelivery(this.#reader, this.#life, embeddedLog, this.#posts);
    try {
      if (embeddedLog !== null) await this.#readLogEnd(new LogTable(store));
      this.#checkOffsets();
      this.#checkFiles();
      this.#checkAny(undecided);
    } catch (error) {
      const cause = error instanceof SegmentError ? error.cause : error;
      if (!(cause instanceof LifeEnded)) throw error;
      await this.#beginLife();
      return;
    }
    this.#delivery.deliverAll();
  }

  async #readLogEnd(log: LogTable): Promise<void> {
    try {
      this.#expect(await readLogEnd(log, this.#reader));
    } catch (error) {
      const cause = error instanceof SegmentError ? error.cause : error;
      if (!(cause instanceof ArmedError)) throw error;
      await this.#readLogEnd(log);
    }
  }

  /**
   * To what the crash has left of each partition: its last commit, or the save whose commit it cut off. Returns
   * partitions of which these are at the same offset, and differ in what had expired; they are at the former.
   */
  #goBack(): Undecided[] {
    const undecided: Undecided[] = [];
    for (const partition of this.#reader.partitions) {
      const { topic, partition: index } = partition;
      const stored = this.#life.parts.shards.of({ topic, partition: index }).nextOffset ?? 0;
      const [committed, saved] = [this.#committed, this.#saved].map((of) => of.get(partition)!);
      const left = [committed, saved].find(({ nextOffset }) => nextOffset === stored);
      if (left === undefined) throw new Problem(`${topic} goes on at ${stored}, which no commit has saved`);
      if (saved !== committed && saved.nextOffset === committed.nextOffset)
        undecided.push({ partition, either: [committed, saved] });
      this.#goBackTo(partition, left);
    }
    return undecided;
  }

  #goBackTo(partition: ModelPartition, left: Remembered): void {
    left.goBack();
    this.#remember(partition);
    this.#committed.set(partition, this.#saved.get(partition)!);
  }

  /** That all is right with one or the other of each undecided partition. */
  #checkAny(undecided: readonly Undecided[]): void {
    for (let choice = 0; ; ) {
      try {
        this.#checkAll();
        return;
      } catch (error) {
        choice += 1;
        if (!(error instanceof Problem) || choice === 2 ** undecided.length) throw error;
        for (const [i, { partition, either }] of undecided.entries())
          this.#goBackTo(partition, either[(choice >> i) & 1]);
        this.#expireModel();
      }
    }
  }

  #remember(partition: ModelPartition): void {
    const { nextOffset } = partition;
    this.#saved.set(partition, { nextOffset, goBack: this.#reader.remember(partition) });
  }

  #bury(faults: Faults, figures: Figures): void {
    const { fatal, damage, compactionCount, hasBegun } = this.#life;
    figures.compactions += compactionCount;
    figures.errors += faults.errorCount;
    figures.removalErrors += faults.removalErrorCount;
    if (damage !== null) throw damage;
    // What passes by itself is waited for, but by the start, which fails, and by a stop.
    const excuses = hasBegun ? faults.lastingErrorCount : faults.errorCount;
    if (fatal !== null && excuses === 0 && !(fatal instanceof DiskFullError)) throw fatal;
    const kind: CrashKind = faults.ended ?? 'process';
    if (kind === 'power') figures.powerCuts += 1;
    else figures.killed += 1;
  }

  #checkOffsets(): void {
    for (const { topic, partition, nextOffset } of this.#reader.partitions) {
      const stored = this.#life.parts.shards.of({ topic, partition }).nextOffset ?? 0;
      if (stored !== nextOffset) throw new Problem(`${topic} goes on at ${stored}, expected ${nextOffset}`);
    }
  }

  #checkFiles(): void {
    this.figures.filesSeen += this.#world.disk.files().size;
    const { disk, faults } = this.#world;
    const { store } = this.#life.parts;
    this.#expect(this.#retried(() => rowFilesProblem(DATA_FOLDER, new DiskOfLife(disk, faults), store)));
  }

  /** The questions that show everything that there is. */
  #checkAll(): void {
    this.#delivery.readAlong();
    this.#expect(countersProblem(this.#reader, this.#life.parts.shards));
    for (const project of this.#history.projects) {
      this.#ask({ ask: 'logs', project, tier: 'ENTERPRISE', afterUs: null, untilUs: null });
      this.#ask({ ask: 'stats', project, functionId: null, interval: '7day' });
      this.#ask({ ask: 'stats', project, functionId: null, interval: '1hr' });
      for (const interval of ['daily', 'minutely'])
        this.#ask({ ask: 'events', project, tier: 'ENTERPRISE', interval });
    }
    this.#ask({ ask: 'counts', expression: '.', interval: 'daily' });
  }

  #ask(question: Question): void {
    const { parts } = this.#life;
    this.#expect(
      this.#retried(() => answerProblem(this.#stats, question, this.#reader.model, parts, this.#nowUs)),
    );
  }

  #expect(problem: string | null): void {
    if (problem !== null) throw new Problem(problem);
  }

  /** A request that fails for the disk is answered so, and asked again. */
  #retried<Result>(ask: () => Result): Result {
    try {
      return ask();
    } catch (error) {
      const cause = error instanceof SegmentError ? error.cause : error;
      if (!(cause instanceof ArmedError)) throw error;
      return this.#retried(ask);
    }
  }
}
