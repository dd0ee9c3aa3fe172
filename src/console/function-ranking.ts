/** The functions of a project, the slowest first: how often each was called, failed, and what it took. */

import { DataTable } from './data-table.js';
import { element, visibleText } from './dom.js';
import { clockText, countText, durationText, HOUR_MS, shareText } from './formats.js';
import type { StatsRow } from './invocation-stats.js';
import { type Questions, type SettledAnswer, UNREACHABLE } from './questions.js';
import { hashOf } from './route.js';
import { zoneName } from './time-zone.js';

/** Each is a question. */
const RANKED_COUNT = 10;

export class FunctionRanking {
  readonly #questions: Questions;
  readonly #table: DataTable;
  readonly #hint = element('p', { class: 'hint' });

  constructor(place: HTMLElement, questions: Questions) {
    this.#questions = questions;
    this.#table = new DataTable(
      place,
      'Slowest functions',
      ['Function', 'Calls', 'Errors', 'p95 this hour', 'p95 before'],
      'None was called in these two hours.',
    );
    place.append(this.#hint);
  }

  /** What was ranked is not of the project that is asked for next. */
  clear(): void {
    this.#table.clear();
    this.#hint.textContent = '';
  }

  /**
   * The endpoints have percentiles of hours of the clock, not of the last 60 minutes. Without all answers there
   * is no ranking, but the reason.
   */
  async show(project: string, nowMs: number): Promise<void> {
    const known = await this.#questions.tryAsk<{ functions: readonly { id: string }[] }>('api/functions', {
      project,
    });
    if (known.kind !== 'answered') return this.#sayWhyNot(known);
    const ids = known.value.functions.map(({ id }) => id);
    const hourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
    const answers = await Promise.all(
      ids.slice(0, RANKED_COUNT).map(async (id) => ({ id, answer: await this.#askStats(project, id) })),
    );
    const figures: Figures[] = [];
    for (const { id, answer } of answers) {
      if (answer.kind !== 'answered') return this.#sayWhyNot(answer);
      figures.push(figuresOf(id, answer.value.result, hourMs));
    }
    const called = figures
      .filter(({ count }) => count > 0)
      .sort((a, b) => (b.p95 ?? b.p95Before ?? 0) - (a.p95 ?? a.p95Before ?? 0));
    this.#table.show(
      called.map(({ id, count, errorCount, p95, p95Before }) => [
        functionButton(project, id),
        countText(count),
        shareText(errorCount, count),
        p95 === null ? '–' : durationText(p95),
        p95Before === null ? '–' : durationText(p95Before),
      ]),
    );
    const ranked =
      ids.length > RANKED_COUNT
        ? `; of ${countText(ids.length)} functions the ${RANKED_COUNT} called most`
        : '';
    this.#hint.textContent = `Calls and errors since ${clockText(hourMs - HOUR_MS).slice(0, 5)} ${zoneName()}; this hour began at ${clockText(hourMs).slice(0, 5)}${ranked}.`;
  }

  #askStats(project: string, id: string): Promise<SettledAnswer<{ readonly result: readonly StatsRow[] }>> {
    const parameters = { project, function_id: id, interval: '1day' };
    return this.#questions.tryAsk('api/endpoints/query/functions.invocation-stats', parameters);
  }

  #sayWhyNot(answer: Unanswered): void {
    this.#hint.textContent = '';
    this.#table.show([], answer.kind === 'refused' ? visibleText(answer.message) : UNREACHABLE);
  }
}

type Unanswered = Exclude<SettledAnswer<unknown>, { readonly kind: 'answered' }>;

interface Figures {
  readonly id: string;
  readonly count: number;
  readonly errorCount: number;
  readonly p95: number | null;
  readonly p95Before: number | null;
}

function figuresOf(id: string, rows: readonly StatsRow[], hourMs: number): Figures {
  const now = rows.find(({ timestamp }) => timestamp === 1000 * hourMs);
  const before = rows.find(({ timestamp }) => timestamp === 1000 * (hourMs - HOUR_MS));
  return {
    id,
    count: (now?.count ?? 0) + (before?.count ?? 0),
    errorCount: (now?.error_count ?? 0) + (before?.error_count ?? 0),
    p95: now?.p95_execution_time ?? null,
    p95Before: before?.p95_execution_time ?? null,
  };
}

function functionButton(project: string, id: string): HTMLElement {
  const button = element('button', { type: 'button', class: 'link' }, visibleText(id));
  button.addEventListener('click', () => {
    location.hash = hashOf({ part: 'functions', settings: { project, function: id } });
  });
  return button;
}
