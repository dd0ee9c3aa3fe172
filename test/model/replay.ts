/** Plays a history to the model and to a system side by side, and compares every answer. */

import type { DeadLetter } from '../../ingest/dead-letters.js';
import type { LogRecord } from '../../ingest/log-source.js';
import {
  countsText,
  eventsProblem,
  rowsProblem,
  type SystemCountsRow,
  type SystemStatsRow,
  statsProblem,
} from './answers.js';
import type { History, Question, Step, Topic } from './history.js';
import type { CountsQuestion, EventsQuestion, LogsQuestion, StatsQuestion } from './model.js';
import { type ModelPartition, ModelReader } from './model-reader.js';

export interface PartitionCounts {
  readonly received: number;
  readonly applied: number;
  readonly rejectedByReason: ReadonlyMap<string, number>;
}

export interface Delivery {
  readonly topic: Topic;
  readonly partition: number;
  /** Of these the first ones may have been applied before. */
  readonly records: readonly LogRecord[];
  /** Where the partition goes on after them. */
  readonly nextOffset: number;
  readonly nowUs: number;
  /** Called whenever the system gives way in the middle. */
  readonly onTurn: () => void;
  readonly isCurrent: () => boolean;
}

/** The engine with what feeds it, as a history drives it. */
export interface System {
  /** All dead letters so far. */
  readonly letters: readonly DeadLetter[];
  /** The next offset that the partition's shard wants. */
  nextOffset(topic: Topic, partition: number): number;
  deliver(delivery: Delivery): Promise<void>;
  expire(nowUs: number): void;
  commit(): void;
  /** Goes on with the compactions of stored rows by so many steps, or begins them. */
  compact(stepCount: number, nowUs: number): void;
  /** Goes on from the last commit, as a new process would. */
  reload(): void;
  logs(question: LogsQuestion, nowUs: number): Uint8Array[];
  stats(question: StatsQuestion, nowUs: number): readonly SystemStatsRow[];
  events(question: EventsQuestion, nowUs: number): readonly SystemCountsRow[];
  /** Begins to count, and returns what finishes it. */
  beginCounts(question: CountsQuestion, nowUs: number): () => readonly SystemCountsRow[];
  partitionCounts(topic: Topic, partition: number): PartitionCounts;
}

export interface Disagreement {
  readonly stepIndex: number;
  /** null when it is about the end. */
  readonly step: Step | null;
  readonly nowUs: number;
  readonly problem: string;
}

/** null when every answer agrees. An exception of the system is a disagreement too. */
export async function replay(history: History, system: System): Promise<Disagreement | null> {
  const player = new Player(history, system);
  for (const [stepIndex, step] of history.steps.entries()) {
    const problem = await problemOf(() => player.play(step));
    if (problem !== null) return { stepIndex, step, nowUs: player.nowUs, problem };
  }
  const problem = await problemOf(async () => player.finish());
  return problem === null
    ? null
    : { stepIndex: history.steps.length, step: null, nowUs: player.nowUs, problem };
}

async function problemOf(play: () => Promise<string | null>): Promise<string | null> {
  try {
    return await play();
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
}

/** Counts that were asked for and are not answered yet. */
interface PendingCounts {
  readonly question: CountsQuestion;
  readonly nowUs: number;
  readonly finish: () => readonly SystemCountsRow[];
  /** What the answer would be at each moment since: it may be any of them. */
  readonly acceptable: Set<string>;
}

class Player {
  nowUs: number;
  readonly #system: System;
  readonly #reader: ModelReader;
  #goBack: readonly (() => void)[];
  #pending: PendingCounts | null = null;

  constructor(history: History, system: System) {
    this.nowUs = history.startUs;
    this.#system = system;
    this.#reader = new ModelReader(history);
    this.#goBack = this.#remember();
  }

  async play(step: Step): Promise<string | null> {
    switch (step.do) {
      case 'clock':
        this.nowUs += step.byUs;
        return null;
      case 'deliver':
        this.#reader.append(this.#reader.of(step.topic, step.partition), step.records);
        return this.#deliver(this.#reader.of(step.topic, step.partition), 0, step);
      case 'redeliver':
        return this.#deliver(this.#reader.of(step.topic, step.partition), step.back);
      case 'expire': {
        // An answer that is still worked on may keep what expires meanwhile: then it is no moment's answer.
        const problem = this.#finishCounts();
        this.#system.expire(this.nowUs);
        this.#reader.model.expire(this.nowUs);
        return problem;
      }
      case 'commit':
        this.#commit();
        return null;
      case 'compact':
        this.#system.compact(step.stepCount, this.nowUs);
        return null;
      case 'restart':
        this.#commit();
        return this.#reload();
      case 'crash':
        return this.#reload();
      case 'begin-counts':
        return this.#finishCounts() ?? this.#beginCounts(step);
      case 'finish-counts':
        return this.#finishCounts();
      case 'ask':
        return this.#ask(step);
    }
  }

  /** What must hold when all is over. */
  finish(): string | null {
    const written = new Set(
      this.#system.letters.map(({ topic, partition, offset, index, reason }) => {
        return `${topic}/${partition}/${offset}/${index} ${reason}`;
      }),
    );
    const missing = [...this.#reader.letters].filter((letter) => !written.has(letter));
    return missing.length === 0 ? this.#finishCounts() : `there is no dead letter ${missing.join(', ')}`;
  }

  #commit(): void {
    this.#system.commit();
    this.#goBack = this.#remember();
  }

  #remember(): (() => void)[] {
    return this.#reader.partitions.map((partition) => this.#reader.remember(partition));
  }

  async #reload(): Promise<string | null> {
    this.#pending = null;
    this.#system.reload();
    for (const goBack of this.#goBack) goBack();
    for (const partition of this.#reader.partitions) {
      const { topic, nextOffset } = partition;
      const answered = this.#system.nextOffset(topic, partition.partition);
      if (answered !== nextOffset) return `${topic} goes on at ${answered}, expected ${nextOffset}`;
      const problem = this.#countsProblem(partition) ?? (await this.#deliver(partition, 0));
      if (problem !== null) return problem;
    }
    return null;
  }

  /**
   * Delivers what was not read yet, and `back` records before that. The model reads what the system says it
   * read.
   */
  async #deliver(
    known: ModelPartition,
    back: number,
    turns: { readonly commitAtTurn?: number; readonly stopAtTurn?: number } = {},
  ): Promise<string | null> {
    const { topic, partition, log, nextOffset } = known;
    const firstNew = log.findLastIndex(({ offset }) => offset < nextOffset) + 1;
    const records = log.slice(Math.max(0, firstNew - back));
    const endOffset = Math.max(nextOffset, (log.at(-1)?.offset ?? -1) + 1);
    let turn = 0;
    let isStopped = false;
    await this.#system.deliver({
      topic,
      partition,
      records,
      nextOffset: endOffset,
      nowUs: this.nowUs,
      onTurn: () => {
        turn += 1;
        this.#readAlong(known);
        if (turn === turns.commitAtTurn) this.#commit();
        if (turn === turns.stopAtTurn) isStopped = true;
      },
      isCurrent: () => !isStopped,
    });
    this.#readAlong(known);
    if (!isStopped && known.nextOffset !== endOffset) {
      return `${topic}/${partition} was read up to ${known.nextOffset}, expected ${endOffset}`;
    }
    return this.#countsProblem(known);
  }

  #readAlong(known: ModelPartition): void {
    const changed = this.#reader.readUpTo(
      known,
      this.#system.nextOffset(known.topic, known.partition),
      this.nowUs,
    );
    if (changed) this.#noteAcceptable();
  }

  #countsProblem({ topic, partition, applied, rejected }: ModelPartition): string | null {
    const counts = this.#system.partitionCounts(topic, partition);
    const total = [...rejected.values()].reduce((sum, count) => sum + count, applied);
    const answered = countersText(counts.received, counts.applied, counts.rejectedByReason);
    const expected = countersText(total, applied, rejected);
    return answered === expected ? null : `${topic}/${partition} says ${answered}; expected ${expected}`;
  }

  #ask(question: Question): string | null {
    const { model } = this.#reader;
    switch (question.ask) {
      case 'logs':
        return rowsProblem(model.logs(question, this.nowUs), this.#system.logs(question, this.nowUs));
      case 'stats': {
        const expected = model.invocationStats(question, this.nowUs);
        return statsProblem(expected, this.#system.stats(question, this.nowUs));
      }
      case 'events':
        return eventsProblem(
          model.eventCounts(question, this.nowUs),
          this.#system.events(question, this.nowUs),
        );
      case 'counts':
        return this.#finishCounts() ?? this.#beginCounts(question) ?? this.#finishCounts();
    }
  }

  #beginCounts(question: CountsQuestion): null {
    const finish = this.#system.beginCounts(question, this.nowUs);
    this.#pending = { question, nowUs: this.nowUs, finish, acceptable: new Set() };
    this.#noteAcceptable();
    return null;
  }

  #noteAcceptable(): void {
    if (this.#pending === null) return;
    const { question, nowUs, acceptable } = this.#pending;
    acceptable.add(countsText(this.#reader.model.apiCounts(question, nowUs)));
  }

  #finishCounts(): string | null {
    const pending = this.#pending;
    if (pending === null) return null;
    this.#pending = null;
    const rows = pending.finish();
    const answer = countsText(rows.map(({ bucketStartUs, counts }) => ({ startUs: bucketStartUs, counts })));
    if (pending.acceptable.has(answer)) return null;
    const asked = JSON.stringify(pending.question);
    return `${asked} is answered\n  ${answer}\nexpected\n  ${[...pending.acceptable].join('\nor\n  ')}`;
  }
}

function countersText(received: number, applied: number, rejected: ReadonlyMap<string, number>): string {
  const reasons = [...rejected].map(([reason, count]) => `${count} ${reason}`).sort();
  return `received ${received}, applied ${applied}, rejected ${reasons.join(', ') || 'none'}`;
}
