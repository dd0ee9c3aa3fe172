/**
 * Holds an answer about a probe against the reference model twice: over the entries that must be in it, and
 * over those that may. Where both are the same, which is the rule, the answer must be the model's; else it
 * lies between them.
 */

import { statsProblem as exactStatsProblem, type SystemStatsRow } from '../model/answers.js';
import {
  type CountsAnswer,
  type CountsQuestion,
  type EventsQuestion,
  type LogsQuestion,
  Model,
  type StatsQuestion,
} from '../model/model.js';
import { type Answer, type AnswerTimes, rowsOf } from './answer.js';
import type { Held, Probe } from './ledger.js';
import type { Question } from './questions.js';

/** Rows of an answer of `logs.all`. */
const ROW_LIMIT = 100;
const HEAD = '{"result":[';
const TAIL = ']}';

/** null when the answer is right. */
export function probeProblem(
  probe: Probe,
  question: Question,
  answer: Answer,
  times: AnswerTimes,
): string | null {
  const bounds = new Bounds(answer, times);
  if (question.endpoint === 'functions.invocation-stats') {
    bounds.take(probe.relay, (model, entry) => model.applyRelay(entry));
    return bounds.statsProblem(question);
  }
  bounds.take(probe.edge, (model, entry) => model.applyEdge(entry));
  switch (question.endpoint) {
    case 'logs.all':
      return bounds.logsProblem(question);
    case 'usage.api-counts':
      return bounds.countsProblem(question);
    case 'logs.event-counts':
      return bounds.eventsProblem(question);
  }
}

class Bounds {
  readonly #answer: Answer;
  readonly #times: AnswerTimes;
  /** Of what must be in the answer, and of what may. */
  readonly #sure = new Model();
  readonly #possible = new Model();

  constructor(answer: Answer, times: AnswerTimes) {
    this.#answer = answer;
    this.#times = times;
  }

  take<Entry>(all: readonly Held<Entry>[], apply: (model: Model, entry: Entry) => void): void {
    const open: Entry[] = [];
    for (const { entry, request } of all) {
      if (request.ackedUs <= this.#times.settledUs) {
        apply(this.#sure, entry);
        apply(this.#possible, entry);
      } else if (request.sentUs <= this.#answer.answeredUs) open.push(entry);
    }
    // Of equal rows those that are sure come first, here and so in the model's order.
    for (const entry of open) apply(this.#possible, entry);
  }

  logsProblem(question: LogsQuestion): string | null {
    const { fromUs, toUs } = this.#times;
    const { body } = this.#answer;
    const sure = new Set(this.#sure.logs(question, toUs, Number.POSITIVE_INFINITY));
    if (body.toString('latin1', 0, HEAD.length) !== HEAD) return 'the answer has no rows';
    let position = HEAD.length;
    let rowCount = 0;
    for (const row of this.#possible.logs(question, fromUs, Number.POSITIVE_INFINITY)) {
      if (rowCount === ROW_LIMIT) break;
      if (body.subarray(position, position + row.length).equals(row)) {
        position += row.length;
        rowCount += 1;
        if (body[position] === 0x2c) position += 1;
      } else if (sure.has(row)) return `after ${rowCount} rows the answer lacks\n  ${row}`;
    }
    const rest = body.toString('utf8', position);
    return rest === TAIL ? null : `after ${rowCount} rows the answer has\n  ${rest.slice(0, 1_000)}`;
  }

  statsProblem(question: StatsQuestion): string | null {
    const { fromUs, toUs } = this.#times;
    const bucketsOf = (model: Model, nowUs: number) =>
      new Map(model.invocationStats(question, nowUs).map((bucket) => [bucket.startUs, bucket]));
    const possible = new Map([...bucketsOf(this.#possible, fromUs), ...bucketsOf(this.#possible, toUs)]);
    const sureTo = bucketsOf(this.#sure, toUs);
    const sure = new Map([...bucketsOf(this.#sure, fromUs)].filter(([startUs]) => sureTo.has(startUs)));
    let lastUs = Number.NEGATIVE_INFINITY;
    for (const row of rowsOf(this.#answer).map(statsRow)) {
      const startUs = row.bucketStartUs;
      if (startUs <= lastUs) return `bucket ${startUs} comes after ${lastUs}`;
      lastUs = startUs;
      const most = possible.get(startUs);
      if (most === undefined) return `there is no bucket ${startUs}`;
      const least = sure.get(startUs) ?? { count: 1, errorCount: 0 };
      sure.delete(startUs);
      if (least.count === most.count && 'sortedMs' in least) {
        const problem = exactStatsProblem([most], [row]);
        if (problem !== null) return problem;
      }
      for (const name of ['count', 'errorCount'] as const)
        if (row[name] < least[name] || row[name] > most[name])
          return `bucket ${startUs}: ${name} is ${row[name]}, expected ${least[name]} to ${most[name]}`;
    }
    const missing = [...sure.keys()];
    return missing.length === 0 ? null : `there are no buckets ${missing}`;
  }

  countsProblem(question: CountsQuestion): string | null {
    return this.#bucketsProblem(usageBuckets, (model, nowUs) => model.apiCounts(question, nowUs));
  }

  eventsProblem(question: EventsQuestion): string | null {
    return this.#bucketsProblem(eventBuckets, (model, nowUs) => model.eventCounts(question, nowUs));
  }

  #bucketsProblem(
    bucketsIn: (answer: Answer) => Bucket[],
    ask: (model: Model, nowUs: number) => CountsAnswer[],
  ): string | null {
    const { fromUs, toUs } = this.#times;
    const bucketsOf = (model: Model, nowUs: number): Buckets =>
      new Map(ask(model, nowUs).map(({ startUs, counts }) => [startUs, counts]));
    return countsProblem(
      bucketsIn(this.#answer),
      [bucketsOf(this.#sure, fromUs), bucketsOf(this.#sure, toUs)],
      [bucketsOf(this.#possible, fromUs), bucketsOf(this.#possible, toUs)],
    );
  }
}

export type Buckets = Map<number, readonly number[]>;
/** Of an answer. */
type Bucket = readonly [startUs: number, counts: readonly number[]];

export function usageBuckets(answer: Answer): Bucket[] {
  return rowsOf(answer).map((row) => [Date.parse(`${row.timestamp}Z`) * 1000, countsOf(row)]);
}

function eventBuckets(answer: Answer): Bucket[] {
  return rowsOf(answer).map((row) => [row.timestamp as number, eventsOf(row)]);
}

/**
 * As now goes on, the counts of a bucket only fall (the first) or only rise (the last): those of an answer
 * lie between those at the two ends of the time in which it was made.
 */
export function countsProblem(
  answer: readonly Bucket[],
  sure: readonly [Buckets, Buckets],
  possible: readonly [Buckets, Buckets],
): string | null {
  const left = new Set([...sure[0].keys()].filter((startUs) => sure[1].has(startUs)));
  let lastUs = Number.NEGATIVE_INFINITY;
  for (const [startUs, counts] of answer) {
    if (startUs <= lastUs) return `bucket ${startUs} comes after ${lastUs}`;
    lastUs = startUs;
    if (!possible.some((buckets) => buckets.has(startUs))) return `there is no bucket ${isoOf(startUs)}`;
    const [leastFrom, leastTo, mostFrom, mostTo] = [...sure, ...possible].map(
      (buckets) => buckets.get(startUs) ?? [0, 0, 0, 0],
    );
    for (const [column, count] of counts.entries()) {
      const least = Math.min(leastFrom[column], leastTo[column]);
      const most = Math.max(mostFrom[column], mostTo[column]);
      if (!(count >= least && count <= most))
        return `bucket ${isoOf(startUs)}, column ${column} is ${count}, expected ${least} to ${most}`;
    }
    left.delete(startUs);
  }
  return left.size === 0 ? null : `there are no buckets ${[...left].map(isoOf)}`;
}

function isoOf(timestampUs: number): string {
  return new Date(timestampUs / 1000).toISOString();
}

export function eventsOf(row: Record<string, unknown>): number[] {
  return ['ok', 'warning', 'error'].map((outcome) => row[`${outcome}_count`] as number);
}

export function countsOf(row: Record<string, unknown>): number[] {
  return ['rest', 'storage', 'auth', 'realtime'].map((area) => row[`total_${area}_requests`] as number);
}

export function statsRow(row: Record<string, unknown>): SystemStatsRow {
  return {
    bucketStartUs: row.timestamp as number,
    count: row.count as number,
    errorCount: row.error_count as number,
    minMs: row.min_execution_time as number | null,
    maxMs: row.max_execution_time as number | null,
    meanMs: row.avg_execution_time as number | null,
    p95Ms: row.p95_execution_time as number | null,
    p99Ms: row.p99_execution_time as number | null,
  };
}
