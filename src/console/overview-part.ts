/** Overview: the last hour of a project: its requests, its functions, and what of its API is used. */

import { areaSeries, startMsOf, type UsageRow } from './api-counts.js';
import { type Buckets, bucketsOf } from './buckets.js';
import type { Series, Span } from './chart.js';
import { ChartPanel } from './chart-panel.js';
import { browserNowMs } from './clock.js';
import { found, visibleText } from './dom.js';
import { type CountedEvents, countSeries } from './event-counts.js';
import { clockText, counted, countText, HOUR_MS, MINUTE_MS, shareText, shortCountText } from './formats.js';
import { FunctionRanking } from './function-ranking.js';
import { sayInstead, sayRefused } from './instead.js';
import { invocationSeries, type StatsRow } from './invocation-stats.js';
import type { Part, PartPorts } from './part.js';
import { offerProjects } from './project-offer.js';
import { LASTING_REFUSALS, Questions, type SettledAnswer, UNREACHABLE } from './questions.js';
import { hashOf, type Settings } from './route.js';
import { showTiles, type Tile } from './tiles.js';
import { utcText, zoneName } from './time-zone.js';

const REFRESH_MS = 30_000;

const form = found('overview-form', HTMLFormElement);
const projectField = found('overview-project', HTMLInputElement);
const shown = found('overview-shown', HTMLDivElement);
const summary = found('overview-summary', HTMLParagraphElement);
const tiles = found('overview-tiles', HTMLDListElement);
const empty = found('overview-empty', HTMLDivElement);

interface Rows<Row> {
  readonly result: readonly Row[];
}

export class OverviewPart implements Part {
  readonly #ports: PartPorts;
  readonly #questions: Questions;
  readonly #requests = new ChartPanel(found('overview-requests', HTMLDivElement), 'Requests', (span) =>
    this.#showLogs(span),
  );
  readonly #invocations = new ChartPanel(found('overview-invocations', HTMLDivElement), 'Invocations');
  readonly #api = new ChartPanel(found('overview-api', HTMLDivElement), 'API requests');
  readonly #ranking: FunctionRanking;
  /** Whose overview it is: the field may have been edited since. */
  #project = '';

  constructor(ports: PartPorts) {
    this.#ports = ports;
    this.#questions = new Questions(ports);
    this.#ranking = new FunctionRanking(found('overview-functions', HTMLDivElement), this.#questions);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#choose();
    });
  }

  show({ project = '' }: Settings): void {
    projectField.value = project;
    this.#project = project.trim();
    void this.#begin();
  }

  hide(): void {
    this.#questions.drop();
  }

  #choose(): void {
    this.#project = projectField.value.trim();
    this.#ports.remember({ project: this.#project });
    void this.#begin();
  }

  async #begin(): Promise<void> {
    this.#questions.drop();
    shown.hidden = true;
    this.#ranking.clear();
    if (this.#project !== '') return this.#refresh();
    await offerProjects(empty, 'Which project?', this.#ports, (chosen) => {
      projectField.value = chosen;
      this.#choose();
    });
  }

  /** Asks, shows, and comes again after a while, then for what the server has at hand. */
  async #refresh(): Promise<void> {
    const project = this.#project;
    const query = 'api/endpoints/query/';
    const [events, stats, usage] = await Promise.all([
      this.#questions.tryAsk<Rows<CountedEvents>>(`${query}logs.event-counts`, {
        project,
        // The minutes of the last hour are those of every tier.
        project_tier: 'FREE',
        interval: 'minutely',
      }),
      this.#questions.tryAsk<Rows<StatsRow>>(`${query}functions.invocation-stats`, {
        project,
        interval: '1hr',
      }),
      this.#questions.tryAsk<Rows<UsageRow>>(`${query}usage.api-counts`, { project, interval: 'minutely' }),
    ]);
    const isRefused = events.kind === 'refused' && stats.kind === 'refused' && usage.kind === 'refused';
    if (isRefused && LASTING_REFUSALS.has(events.status)) {
      this.#ports.tellProblem(null);
      shown.hidden = true;
      sayRefused(empty, events.message);
      return;
    }
    const isAway = [events, stats, usage].some(({ kind }) => kind === 'unreachable');
    this.#ports.tellProblem(isAway ? UNREACHABLE : isRefused ? events.message : null);
    if (!isAway && !isRefused) this.#draw(project, events, stats, usage);
    this.#questions.later(REFRESH_MS, () => this.#refresh());
  }

  #draw(
    project: string,
    events: SettledAnswer<Rows<CountedEvents>>,
    stats: SettledAnswer<Rows<StatsRow>>,
    usage: SettledAnswer<Rows<UsageRow>>,
  ): void {
    const eventRows = rowsOf(events);
    const statsRows = rowsOf(stats);
    const usageRows = rowsOf(usage);
    const isEmpty = eventRows.length + statsRows.length + usageRows.length === 0;
    shown.hidden = isEmpty;
    empty.hidden = !isEmpty;
    if (isEmpty) {
      const waiting = [events, stats].find(
        (answer) => answer.kind === 'refused' && !LASTING_REFUSALS.has(answer.status),
      );
      if (waiting?.kind === 'refused')
        sayInstead(empty, 'Not all of this can be answered now.', visibleText(waiting.message));
      else
        sayInstead(
          empty,
          `No entries of ${visibleText(project)} in the last hour.`,
          'Logs, functions and usage may have older ones.',
        );
      return;
    }
    showFigures(events, stats);
    const starts = (rows: readonly { readonly timestamp: number }[]) =>
      rows.map((row) => row.timestamp / 1000);
    const panels = [
      [this.#requests, events, 'stacked', starts(eventRows), (at: Buckets) => countSeries(at, eventRows)],
      [this.#invocations, stats, 'over', starts(statsRows), (at: Buckets) => invocationSeries(at, statsRows)],
      [this.#api, usage, 'stacked', usageRows.map(startMsOf), (at: Buckets) => areaSeries(at, usageRows)],
    ] as const;
    for (const [panel, answer, kind, startsMs, seriesOf] of panels) {
      if (answer.kind === 'refused' || startsMs.length === 0) {
        panel.showNothing(answer.kind === 'refused' ? answer.message : 'None in the last hour.');
        continue;
      }
      const buckets = bucketsOf(startsMs, computedMsOf(answer), HOUR_MS, MINUTE_MS);
      const series: readonly Series[] = seriesOf(buckets);
      panel.show({ buckets, kind, series, format: shortCountText, inFull: countText, hasSums: true });
    }
    // From the cache, they may be of different ages.
    const answered = [events, stats, usage].filter(({ kind }) => kind === 'answered');
    const asOfMs = Math.min(...answered.map(computedMsOf));
    summary.textContent = `The last hour, as of ${clockText(asOfMs)} ${zoneName()}. A click or a drag in the requests shows their logs.`;
    void this.#ranking.show(project, asOfMs);
  }

  #showLogs(span: Span | null): void {
    if (span === null) return;
    const settings = {
      project: this.#project,
      range: 'between',
      from: utcText(span.fromMs),
      to: utcText(span.untilMs),
    };
    location.hash = hashOf({ part: 'logs', settings });
  }
}

function computedMsOf(answer: SettledAnswer<unknown>): number {
  return (answer.kind === 'answered' ? answer.computedMs : null) ?? browserNowMs();
}

function rowsOf<Row>(answer: SettledAnswer<Rows<Row>>): readonly Row[] {
  return answer.kind === 'answered' ? answer.value.result : [];
}

function showFigures(
  eventAnswer: SettledAnswer<Rows<CountedEvents>>,
  statsAnswer: SettledAnswer<Rows<StatsRow>>,
): void {
  const events = rowsOf(eventAnswer);
  const stats = rowsOf(statsAnswer);
  const known = (answer: SettledAnswer<unknown>, figures: readonly Tile[]) =>
    answer.kind === 'answered' ? figures : figures.map(({ name }) => ({ name, value: '–' }));
  const sum = <Row>(rows: readonly Row[], pick: (row: Row) => number) =>
    rows.reduce((total, row) => total + pick(row), 0);
  const errorCount = sum(events, ({ error_count }) => error_count);
  const warningCount = sum(events, ({ warning_count }) => warning_count);
  const requestCount = sum(events, ({ ok_count }) => ok_count) + warningCount + errorCount;
  const invocationCount = sum(stats, ({ count }) => count);
  const failedCount = sum(stats, ({ error_count }) => error_count);
  showTiles(tiles, [
    ...known(eventAnswer, [
      { name: 'Requests', value: countText(requestCount) },
      {
        name: 'Error rate',
        value: shareText(errorCount, requestCount),
        note: counted(errorCount, 'error', 'errors'),
      },
      {
        name: 'Warnings',
        value: shareText(warningCount, requestCount),
        note: counted(warningCount, 'request', 'requests'),
      },
    ]),
    ...known(statsAnswer, [
      { name: 'Invocations', value: countText(invocationCount) },
      {
        name: 'Invocation errors',
        value: shareText(failedCount, invocationCount),
        note: counted(failedCount, 'error', 'errors'),
      },
    ]),
  ]);
}
