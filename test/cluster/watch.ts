/**
 * Records that come, and questions to all members all along: whether answers are right, as new as they say and never go
 * back, while members are killed or frozen.
 */

import { eventually, pause } from '../eventually.js';
import type { Rig } from '../kafka/rig.js';
import type { Answered, Members } from './members.js';

const COUNTS = 'logs.event-counts?project=p&project_tier=ENTERPRISE&interval=daily';
const PRODUCE_EVERY_MS = 200;
/** Beside the age that an answer may have: for clocks, and for a machine that is busy. */
const SLACK_MS = 1_000;
const MOST_UNDER_WAY = 500;

export interface WatchPlan {
  readonly topic: string;
  readonly partitionCount: number;
  readonly recordsPerSecond: number;
  readonly questionsPerSecond: number;
  /** As old as an answer may be that doesn't say how old it is. */
  readonly freshMs: number;
}

/** Whom clients are sent to. */
export interface Balancer {
  /** Whose turn it is; null: nobody can be asked. */
  choose(name: string): string | null;
  /** Instead of a member that there is no connection to. */
  instead(name: string): string | null;
}

/** A refused question, or an old answer. */
export interface Failure {
  readonly name: string;
  readonly atMs: number;
  readonly text: string;
}

export class Watch {
  readonly wrong: string[] = [];
  /** Of members that were not away, neither then nor when they were asked. */
  readonly refused: Failure[] = [];
  /** Right, and they said that they are old. */
  readonly stale: Failure[] = [];
  /** Microseconds, of answers. */
  latencies: number[] = [];
  askedCount = 0;
  producedCount = 0;
  /** null: each member is asked in turn, but those that are away. */
  balancer: Balancer | null = null;
  /** How often another was asked, as there was no connection. */
  insteadCount = 0;
  readonly #members: Members;
  readonly #names: readonly string[];
  readonly #rig: Rig;
  readonly #plan: WatchPlan;
  #partitionCount: number;
  readonly #away = new Set<string>();
  /** How often a member was away. */
  readonly #absences = new Map<string, number>();
  /** What each has counted last. */
  readonly #last = new Map<string, number>();
  /** How many records were acknowledged, and when. */
  readonly #acknowledged = [{ atMs: Date.now(), count: 0 }];
  readonly #ended = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  #loops: Promise<unknown> = Promise.resolve();

  constructor(members: Members, names: readonly string[], rig: Rig, plan: WatchPlan) {
    this.#members = members;
    this.#names = names;
    this.#rig = rig;
    this.#plan = plan;
    this.#partitionCount = plan.partitionCount;
  }

  /** From now on records come in so many. */
  set partitionCount(count: number) {
    this.#partitionCount = count;
  }

  /** Records come. */
  startProducing(): void {
    this.#loops = Promise.all([this.#loops, this.#produce()]);
  }

  startAsking(): void {
    this.#loops = Promise.all([this.#loops, this.#ask()]);
  }

  /** Nothing is expected of a member until it is `back`. */
  leaves(name: string): void {
    this.#away.add(name);
    this.#absences.set(name, this.#absencesOf(name) + 1);
  }

  back(name: string): void {
    this.#away.delete(name);
  }

  /** Its process has ended: another has answered nothing yet. */
  forget(name: string): void {
    this.#last.delete(name);
  }

  async untilAsked(more: number): Promise<void> {
    const enough = this.askedCount + more;
    await eventually(() => this.askedCount >= enough);
  }

  /** Resolves when all members count every record. */
  async stop(): Promise<void> {
    this.#ended.abort();
    await this.#loops;
    await Promise.all(this.#underWay);
    for (const name of this.#names) {
      let said = '';
      await eventually(
        async () => {
          const answer = await this.#members.ask(name, COUNTS).catch((error: unknown) => String(error));
          said = typeof answer === 'string' ? answer : answer.body;
          return (
            typeof answer !== 'string' && answer.status === 200 && countIn(answer) === this.producedCount
          );
        },
        () => `${name}: ${said} instead of ${this.producedCount}`,
      );
    }
  }

  #absencesOf(name: string): number {
    return this.#absences.get(name) ?? 0;
  }

  async #produce(): Promise<void> {
    const { topic, recordsPerSecond } = this.#plan;
    const { signal } = this.#ended;
    for (let next = 0, dueMs = Date.now(); !signal.aborted; ) {
      const count = Math.round((recordsPerSecond * PRODUCE_EVERY_MS) / 1000);
      const values: string[][] = Array.from({ length: this.#partitionCount }, () => []);
      for (let i = 0; i < count; i++, next++)
        values[next % values.length].push(
          JSON.stringify({ project: 'p', timestamp: Date.now() * 1000, event_message: 'x' }),
        );
      this.producedCount += count;
      await Promise.all(
        values.map((some, partition) => some.length > 0 && this.#rig.produce(topic, partition, some)),
      );
      this.#acknowledged.push({ atMs: Date.now(), count: this.producedCount });
      dueMs += PRODUCE_EVERY_MS;
      await pause(dueMs - Date.now(), signal);
    }
  }

  async #ask(): Promise<void> {
    const { signal } = this.#ended;
    const everyMs = 1000 / this.#plan.questionsPerSecond;
    for (let turn = 0, dueMs = Date.now(); !signal.aborted; turn++) {
      const due = this.#names[turn % this.#names.length];
      const name = this.balancer === null ? due : this.balancer.choose(due);
      if (name === null) this.#refuse(due, 'nobody can be asked');
      else if (this.balancer !== null || !this.#away.has(name)) {
        if (this.#underWay.size >= MOST_UNDER_WAY)
          this.#refuse(name, 'too many questions are not answered yet');
        else {
          const asking = this.#askOnce(name).finally(() => this.#underWay.delete(asking));
          this.#underWay.add(asking);
        }
      }
      dueMs += everyMs;
      await pause(dueMs - Date.now(), signal);
    }
  }

  #refuse(name: string, text: string): void {
    this.askedCount++;
    this.refused.push({ name, atMs: Date.now(), text });
  }

  async #askOnce(first: string): Promise<void> {
    let name = first;
    let last = this.#last.get(name) ?? 0;
    const absences = this.#absencesOf(name);
    const askedMs = Date.now();
    const started = performance.now();
    const answer = await this.#members.ask(name, COUNTS).catch((error: unknown) => {
      const other = this.balancer?.instead(name) ?? null;
      if (other === null) return String(error);
      this.insteadCount++;
      name = other;
      last = this.#last.get(other) ?? 0;
      return this.#members.ask(other, COUNTS).catch((second: unknown) => String(second));
    });
    if (this.#away.has(name) || (name === first && absences !== this.#absencesOf(name))) return;
    if (typeof answer === 'string' || answer.status !== 200) {
      this.#refuse(name, typeof answer === 'string' ? answer : `${answer.status} ${answer.body}`);
      return;
    }
    this.askedCount++;
    this.latencies.push((performance.now() - started) * 1000);
    const { staleSeconds } = answer;
    if (staleSeconds !== null) this.stale.push({ name, atMs: Date.now(), text: `${staleSeconds} s old` });
    const count = countIn(answer);
    const ageMs = staleSeconds === null ? this.#plan.freshMs : 1000 * Number(staleSeconds);
    const least = Math.max(last, this.#acknowledgedBefore(askedMs - ageMs - SLACK_MS));
    if (count < least || count > this.producedCount)
      this.wrong.push(`${name}: ${count}, of ${least} to ${this.producedCount}, ${staleSeconds}`);
    this.#last.set(name, Math.max(this.#last.get(name) ?? 0, count));
  }

  #acknowledgedBefore(atMs: number): number {
    return this.#acknowledged.findLast((one) => one.atMs <= atMs)?.count ?? 0;
  }
}

function countIn({ body }: Answered): number {
  const { result } = JSON.parse(body) as { result: { ok_count: number }[] };
  return result.reduce((sum, row) => sum + row.ok_count, 0);
}
