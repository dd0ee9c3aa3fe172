/**
 * Asks at a steady rate, whatever comes back, and judges every answer: its status, its shape, what never
 * falls, and, where it is about a probe, what it says.
 */

import { appendFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { US_PER_SECOND } from '../../engine/time.js';
import { Random } from '../../src/demo/random.js';
import { monotonicUs, wallClockUs } from '../../src/system-clock.js';
import { type Answer, rowsOf, timesOf } from './answer.js';
import type { AskOptions, Client } from './client.js';
import type { Ledger, Probe } from './ledger.js';
import { countsOf, probeProblem } from './probe-check.js';
import { drawQuestion, pathOf, type Question, type Subject } from './questions.js';
import { shapeProblem } from './shape-check.js';

export interface AskerPorts {
  readonly client: Client;
  readonly ledger: Ledger;
  readonly queriesPerSecond: number;
  readonly seed: number;
  readonly mass: readonly Subject[];
  /** Where wrong answers are written with their questions. */
  readonly wrongFile: string;
  /** Goes up with each start of the service and each of its ends: a request that saw both may fail. */
  readonly turn: () => number;
  /** Whether the service may be away. */
  readonly isAway: () => boolean;
}

export interface AskFigures {
  asked: number;
  /** Answers 200, those about probes among them, and those that said that they are older. */
  answered: number;
  probed: number;
  stale: number;
  cached: number;
  /** 503 with Retry-After. */
  refused: number;
  /** Requests without an answer while the service was killed. */
  lost: number;
  wrong: number;
}

const TICK_MS = 5;
/**
 * What is due while so many wait is not asked: on a machine that is too slow they would only grow in number.
 */
const UNDERWAY_LIMIT = 200;
const PROBE_SHARE = 0.3;
const STANDING_SHARE = 0.01;
/**
 * Expressions that the service knows nothing of: each is searched for in all URLs, beside ingest on the same
 * cores, and kept up to date from then on. After the first ones they come rarely, each in the place of the oldest, so
 * that what is kept does not grow with the hour.
 */
const NEW_EXPRESSION_EVERY_US = US_PER_SECOND;
const MANY_EXPRESSIONS = 600;
const LATER_EXPRESSION_EVERY_US = 60 * US_PER_SECOND;
/** Finds every URL of the mass. */
export const MASS_EXPRESSION = 'supabase';
const WRONG_BODY_BYTES = 20_000;

export class Asker {
  readonly figures: AskFigures = {
    asked: 0,
    answered: 0,
    probed: 0,
    stale: 0,
    cached: 0,
    refused: 0,
    lost: 0,
    wrong: 0,
  };
  readonly #ports: AskerPorts;
  readonly #random: Random;
  /**
   * Of the standing question: the most that an answer had of each day but the first, and when it was asked.
   */
  #highest = new Map<string, number>();
  /** What the service was asked since it started: expressions, and the probes that they are about. */
  #known = new Map<string, Probe | null>();
  #knownSinceTurn = -1;
  #newExpressionsDueUs = 0;

  constructor(ports: AskerPorts) {
    this.#ports = ports;
    this.#random = new Random(ports.seed);
  }

  async run(signal: AbortSignal): Promise<void> {
    const startUs = monotonicUs();
    const underway = new Set<Promise<void>>();
    let drawn = 0;
    while (!signal.aborted) {
      const due = Math.floor((this.#ports.queriesPerSecond * (monotonicUs() - startUs)) / US_PER_SECOND);
      for (; drawn < due; drawn++) {
        if (underway.size >= UNDERWAY_LIMIT) continue;
        const asking = this.#askOne().finally(() => underway.delete(asking));
        underway.add(asking);
      }
      await delay(TICK_MS);
    }
    await Promise.all(underway);
  }

  async #askOne(): Promise<void> {
    const { ledger, mass } = this.#ports;
    const random = this.#random;
    if (random.chance(STANDING_SHARE)) return await this.#askStanding();
    const probe = random.chance(PROBE_SHARE) && ledger.probes.length > 0 ? ledger.drawProbe(random) : null;
    const subject =
      probe === null ? random.pick(mass) : { project: probe.name, functionIds: ['f1', 'f2', 'fx'] };
    const drawn = drawQuestion(random, subject, wallClockUs());
    const { question, about } = this.#knownOrDue(drawn, probe);
    const headers: Record<string, string> = {};
    if (random.chance(0.5)) headers['Cache-Control'] = 'no-cache';
    if (random.chance(0.4)) headers['Accept-Encoding'] = 'gzip';
    const method = random.chance(0.05) ? ('HEAD' as const) : ('GET' as const);
    const answer = await this.#answerTo(question, { method, headers });
    if (answer === null) return;
    const problem = this.#problemOf(question, about, method, answer);
    if (problem !== null) this.#noteWrong(question, problem, answer);
  }

  /** The question, and the probe that it is about; with a known expression where a new one is not due yet. */
  #knownOrDue(question: Question, probe: Probe | null): { question: Question; about: Probe | null } {
    const turn = this.#ports.turn();
    if (turn !== this.#knownSinceTurn) this.#known.clear();
    this.#knownSinceTurn = turn;
    if (question.endpoint !== 'usage.api-counts') return { question, about: probe };
    const { expression } = question;
    const nowUs = monotonicUs();
    if (!this.#known.has(expression) && (nowUs >= this.#newExpressionsDueUs || this.#known.size === 0)) {
      this.#newExpressionsDueUs =
        nowUs + (this.#known.size < MANY_EXPRESSIONS ? NEW_EXPRESSION_EVERY_US : LATER_EXPRESSION_EVERY_US);
      this.#known.set(expression, probe);
      const [oldest] = this.#known.keys();
      if (this.#known.size > MANY_EXPRESSIONS) this.#known.delete(oldest);
    }
    if (this.#known.has(expression)) return { question, about: probe };
    const [known, about] = this.#random.pick([...this.#known]);
    return { question: { ...question, expression: known }, about };
  }

  /** null when none came, which is wrong unless the service may be away. */
  async #answerTo(question: Question, options: AskOptions): Promise<Answer | null> {
    const { client, turn, isAway } = this.#ports;
    const before = turn();
    this.figures.asked += 1;
    try {
      return await client.ask(pathOf(question), options);
    } catch (error) {
      if (isAway() || turn() !== before) this.figures.lost += 1;
      else this.#noteWrong(question, `no answer: ${error}`, null);
      return null;
    }
  }

  #problemOf(question: Question, probe: Probe | null, method: string, answer: Answer): string | null {
    const { status, headers, body } = answer;
    if (status === 503) {
      this.figures.refused += 1;
      return headers['retry-after'] === undefined ? '503 without Retry-After' : null;
    }
    if (status !== 200) return `status ${status}`;
    this.figures.answered += 1;
    if (headers['logring-stale-seconds'] !== undefined) this.figures.stale += 1;
    if (Number(headers.age ?? 0) > 0) this.figures.cached += 1;
    if (method === 'HEAD') return body.length === 0 ? null : 'HEAD with a body';
    const problem = shapeProblem(question, answer);
    if (problem !== null || probe === null) return problem;
    this.figures.probed += 1;
    return probeProblem(probe, question, answer, timesOf(answer));
  }

  /** The mass's counts of a whole day never fall, unless an answer says that it is older. */
  async #askStanding(): Promise<void> {
    const question: Question = {
      endpoint: 'usage.api-counts',
      expression: MASS_EXPRESSION,
      interval: 'daily',
    };
    const highest = this.#highest;
    const answer = await this.#answerTo(question, { headers: { 'Cache-Control': 'no-cache' } });
    if (answer === null) return;
    const problem = this.#problemOf(question, null, 'GET', answer);
    if (problem !== null) this.#noteWrong(question, problem, answer);
    if (problem !== null || answer.status !== 200 || answer.headers['logring-stale-seconds'] !== undefined)
      return;
    const counts = new Map(
      rowsOf(answer)
        .slice(1)
        .map((row) => [String(row.timestamp), countsOf(row).reduce((a, b) => a + b)]),
    );
    for (const [start, count] of counts) {
      // An answer that was asked for meanwhile is not compared.
      const least = highest === this.#highest ? (highest.get(start) ?? 0) : 0;
      if (count < least) this.#noteWrong(question, `${start} had ${least} requests, now ${count}`, answer);
    }
    if (highest === this.#highest) this.#highest = counts;
  }

  #noteWrong(question: Question, problem: string, answer: Answer | null): void {
    this.figures.wrong += 1;
    const body = answer?.body.toString().slice(0, WRONG_BODY_BYTES);
    const line = JSON.stringify({ path: pathOf(question), problem, ...answer, body });
    appendFileSync(this.#ports.wrongFile, `${line}\n`);
  }
}
