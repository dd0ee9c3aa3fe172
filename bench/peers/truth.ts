/**
 * What the answers must be: the reference model over what the questions are about, and how answers are judged
 * by it.
 */

import { Model } from '../../test/model/model.js';
import { percentileProblem } from '../../test/model/quantiles.js';
import type { EntryBatch } from './entries.js';
import type { AnswerRow } from './peer.js';
import type { Question } from './question.js';

/** Sums of the same values in another order differ in their last digits. */
const MEAN_TOLERANCE = 1e-12;

interface ExpectedRow {
  readonly row: AnswerRow;
  /** Of a bucket of statistics, all execution times in rising order. */
  readonly sortedMs: readonly number[];
}

export class Truth {
  readonly #project: string;
  readonly #nowUs: number;
  readonly #model = new Model();

  constructor(project: string, nowUs: number) {
    this.#project = project;
    this.#nowUs = nowUs;
  }

  /** Keeps what questions about the project can find: its own entries, and others whose URL names it. */
  insert({ edge, relay }: EntryBatch): void {
    for (const entry of edge) {
      const { timestampUs, project, id, url } = entry;
      if (project !== this.#project && !url.includes(this.#project)) continue;
      const path = ['rest', 'storage', 'auth', 'realtime']
        .map((area) => (entry[area as 'rest'] === 1 ? `/${area}` : ''))
        .join('');
      this.#model.applyEdge({
        timestampUs,
        project,
        keptDays: 90,
        idHash: 0,
        row: Buffer.from(id),
        url,
        path,
        statusCode: 0,
      });
    }
    for (const { timestampUs, project, statusCode, executionTimeMs } of relay) {
      if (project !== this.#project) continue;
      this.#model.applyRelay({ timestampUs, project, functionId: null, statusCode, executionTimeMs });
    }
  }

  /** Of logs, rows are ids only. */
  expected(question: Question): ExpectedRow[] {
    switch (question.kind) {
      case 'logs':
        return this.#model
          .logs({ ...question, tier: 'ENTERPRISE' }, this.#nowUs)
          .map((id) => ({ row: [id.toString()], sortedMs: [] }));
      case 'stats':
        return this.#model
          .invocationStats({ ...question, functionId: null }, this.#nowUs)
          .map(({ startUs, count, errorCount, meanMs, sortedMs }) => ({
            row: [
              startUs,
              count,
              errorCount,
              sortedMs[0],
              sortedMs.at(-1)!,
              meanMs,
              rank(sortedMs, 95),
              rank(sortedMs, 99),
            ],
            sortedMs,
          }));
      case 'counts':
        return this.#model
          .apiCounts(question, this.#nowUs)
          .map(({ startUs, counts }) => ({ row: [startUs, ...counts], sortedMs: [] }));
    }
  }
}

/** The nearest rank, reckoned in whole numbers. */
function rank(sortedMs: readonly number[], percent: number): number {
  return sortedMs[Math.ceil((percent * sortedMs.length) / 100) - 1];
}

/**
 * Says what is wrong with an answer; null when nothing is. Percentiles of many values may be as far off as
 * Logring says.
 */
export function answerProblem(
  question: Question,
  expected: readonly ExpectedRow[],
  answered: readonly AnswerRow[],
): string | null {
  if (expected.length !== answered.length) return `${answered.length} rows, expected ${expected.length}`;
  for (let i = 0; i < expected.length; i++) {
    const problem = rowProblem(question, expected[i], answered[i]);
    if (problem !== null) return `row ${i}: ${problem}`;
  }
  return null;
}

function rowProblem({ kind }: Question, { row, sortedMs }: ExpectedRow, answered: AnswerRow): string | null {
  for (let column = 0; column < row.length; column++) {
    const value = answered[column];
    if (kind === 'stats' && column >= 6) {
      const problem = percentileProblem(sortedMs, column === 6 ? 95 : 99, value as number);
      if (problem !== null) return problem;
    } else if (kind === 'stats' && column === 5) {
      const mean = Number(row[5]);
      if (!(Math.abs(Number(value) - mean) <= MEAN_TOLERANCE * mean))
        return `mean ${value}, expected ${mean}`;
    } else if (value !== row[column]) return `column ${column} is ${value}, expected ${row[column]}`;
  }
  return null;
}
