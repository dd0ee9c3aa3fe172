/**
 * Functions: how often the functions of a project were called, how often they failed, and how long they took.
 */

import { bucketsOf } from './buckets.js';
import type { ChartEvents } from './chart.js';
import { ChartPanel } from './chart-panel.js';
import { ChoiceGroup } from './choice-group.js';
import { browserNowMs } from './clock.js';
import { element, found, visibleText } from './dom.js';
import {
  clockText,
  counted,
  countText,
  DAY_MS,
  durationText,
  HOUR_MS,
  MINUTE_MS,
  shareText,
  shortCountText,
  unitText,
} from './formats.js';
import { sayInstead, sayRefused } from './instead.js';
import { invocationSeries, type StatsRow, timeSeries } from './invocation-stats.js';
import type { Part, PartPorts } from './part.js';
import { offerProjects } from './project-offer.js';
import { Questions } from './questions.js';
import type { Settings } from './route.js';
import { showTiles } from './tiles.js';
import { zoneName } from './time-zone.js';

interface Interval {
  readonly label: string;
  readonly backMs: number;
  readonly stepMs: number;
  readonly refreshMs: number;
}

const SECOND = 1000;

const INTERVALS: Readonly<Record<string, Interval>> = {
  '5min': { label: '5 min', backMs: 5 * MINUTE_MS, stepMs: SECOND, refreshMs: 5 * SECOND },
  '15min': { label: '15 min', backMs: 15 * MINUTE_MS, stepMs: MINUTE_MS, refreshMs: 10 * SECOND },
  '1hr': { label: '1 hour', backMs: HOUR_MS, stepMs: MINUTE_MS, refreshMs: 10 * SECOND },
  '1day': { label: '1 day', backMs: DAY_MS, stepMs: HOUR_MS, refreshMs: MINUTE_MS },
  '7day': { label: '7 days', backMs: 7 * DAY_MS, stepMs: DAY_MS, refreshMs: MINUTE_MS },
};
const DEFAULT_INTERVAL = '1hr';

const form = found('functions-form', HTMLFormElement);
const projectField = found('functions-project', HTMLInputElement);
const functionField = found('functions-function', HTMLSelectElement);
const shown = found('functions-shown', HTMLDivElement);
const summary = found('functions-summary', HTMLParagraphElement);
const tiles = found('functions-tiles', HTMLDListElement);
const empty = found('functions-empty', HTMLDivElement);

export class FunctionsPart implements Part {
  readonly #ports: PartPorts;
  readonly #questions: Questions;
  readonly #interval: ChoiceGroup;
  readonly #counts: ChartPanel;
  readonly #times: ChartPanel;
  /** Whose functions are in the list. */
  #listedProject = '';

  /** What was asked for last: the field may have been edited since. */
  #asked = { project: '', function: '', interval: DEFAULT_INTERVAL };
  /** What the charts are of. */
  #drawn = '';

  constructor(ports: PartPorts) {
    this.#ports = ports;
    this.#questions = new Questions(ports, (reason) => {
      shown.hidden = true;
      sayRefused(empty, reason);
    });
    // Both show the same time.
    const choose: ChartEvents['choose'] = (span, how) => {
      if (span === null || how === 'drag') for (const panel of [this.#counts, this.#times]) panel.zoom(span);
    };
    this.#counts = new ChartPanel(found('functions-counts', HTMLDivElement), 'Invocations', choose);
    this.#times = new ChartPanel(found('functions-times', HTMLDivElement), 'Execution time', choose);
    this.#interval = new ChoiceGroup(found('functions-interval', HTMLFieldSetElement), INTERVALS, () =>
      this.#choose(functionField.value),
    );
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#choose(projectField.value.trim() === this.#listedProject ? functionField.value : '');
    });
    functionField.addEventListener('change', () => this.#choose(functionField.value));
  }

  show({ project = '', function: functionId = '', interval = DEFAULT_INTERVAL }: Settings): void {
    projectField.value = project;
    this.#interval.value = Object.hasOwn(INTERVALS, interval) ? interval : DEFAULT_INTERVAL;
    this.#listFunctions([], functionId);
    this.#listedProject = '';
    this.#takeForm();
    void this.#begin();
  }

  hide(): void {
    this.#questions.drop();
  }

  #choose(functionId: string): void {
    const project = projectField.value.trim();
    if (project !== this.#listedProject) this.#listFunctions([], functionId);
    functionField.value = functionId;
    this.#takeForm();
    this.#ports.remember(this.#asked);
    void this.#begin();
  }

  #takeForm(): void {
    this.#asked = {
      project: projectField.value.trim(),
      function: functionField.value,
      interval: this.#interval.value,
    };
  }

  async #begin(): Promise<void> {
    this.#questions.drop();
    const { project } = this.#asked;
    if (project === '') {
      shown.hidden = true;
      await offerProjects(empty, 'Whose functions?', this.#ports, (chosen) => {
        projectField.value = chosen;
        this.#choose('');
      });
      return;
    }
    await this.#refresh();
    if (project === this.#listedProject) return;
    const known = await this.#questions.tryAsk<{ functions: KnownFunction[] }>('api/functions', { project });
    if (known.kind !== 'answered') return;
    this.#listFunctions(known.value.functions, functionField.value);
    this.#listedProject = project;
  }

  #listFunctions(functions: readonly KnownFunction[], chosen: string): void {
    const options = functions.map(({ id, count }) =>
      element('option', { value: id }, `${visibleText(id)} (${countText(count)})`),
    );
    if (chosen !== '' && !functions.some(({ id }) => id === chosen))
      options.push(element('option', { value: chosen }, visibleText(chosen)));
    functionField.replaceChildren(element('option', { value: '' }, 'All functions'), ...options);
    functionField.value = chosen;
  }

  /** Asks, shows, and comes again after a while. */
  async #refresh(): Promise<void> {
    const { project, function: functionId, interval } = this.#asked;
    const reply = await this.#questions.ask<{ result: StatsRow[] }>(
      'api/endpoints/query/functions.invocation-stats',
      { project, interval, ...(functionId === '' ? {} : { function_id: functionId }) },
    );
    const asked = `${interval} ${functionId} ${project}`;
    if (reply !== null) {
      this.#drawn = asked;
      this.#draw(project, INTERVALS[interval], reply.value.result, reply.computedMs ?? browserNowMs());
    } else if (asked !== this.#drawn) {
      shown.hidden = true;
      empty.hidden = true;
    }
    this.#questions.later(INTERVALS[interval].refreshMs, () => this.#refresh());
  }

  #draw(
    project: string,
    { label, backMs, stepMs }: Interval,
    rows: readonly StatsRow[],
    nowMs: number,
  ): void {
    shown.hidden = rows.length === 0;
    empty.hidden = rows.length > 0;
    if (rows.length === 0) {
      const lead = `No function of ${visibleText(project)} was called in the ${lastText(label)}.`;
      sayInstead(empty, lead, 'A longer interval may have some.');
      return;
    }
    const startsMs = rows.map(({ timestamp }) => timestamp / 1000);
    const buckets = bucketsOf(startsMs, nowMs, backMs, stepMs);
    this.#counts.show({
      buckets,
      kind: 'over',
      series: invocationSeries(buckets, rows),
      format: shortCountText,
      inFull: countText,
    });
    this.#times.show({
      buckets,
      kind: 'lines',
      series: timeSeries(buckets, rows),
      format: durationText,
      inFull: durationText,
    });
    showFigures(rows, stepMs);
    const gapCount = buckets.rowAt.filter((row) => row === null).length;
    const gaps =
      gapCount === 0
        ? ''
        : `, ${countText(gapCount)} of ${counted(buckets.startsMs.length, 'bucket', 'buckets')} without any call`;
    const unit = unitText(stepMs);
    const note =
      stepMs < HOUR_MS ? '' : ` The first ${unit} is shown whole: it began before the ${lastText(label)}.`;
    summary.textContent = `As of ${clockText(nowMs)} ${zoneName()}${gaps}.${note}`;
  }
}

/** `last 7 days`, `last hour` */
function lastText(label: string): string {
  return `last ${label.replace(/^1 /, '')}`;
}

interface KnownFunction {
  readonly id: string;
  readonly count: number;
}

function showFigures(rows: readonly StatsRow[], stepMs: number): void {
  const count = rows.reduce((sum, row) => sum + row.count, 0);
  const errorCount = rows.reduce((sum, row) => sum + row.error_count, 0);
  // The answer has percentiles of its buckets only: of all of them together, the highest is the upper bound.
  const highest = (pick: (row: StatsRow) => number | null) => {
    const values = rows.map(pick).filter((value) => value !== null);
    return values.length === 0 ? '–' : durationText(Math.max(...values));
  };
  const note = `in the slowest ${unitText(stepMs)}`;
  showTiles(tiles, [
    { name: 'Invocations', value: countText(count) },
    { name: 'Errors', value: countText(errorCount), note: shareText(errorCount, count) },
    { name: '95th percentile', value: highest((row) => row.p95_execution_time), note },
    { name: '99th percentile', value: highest((row) => row.p99_execution_time), note },
  ]);
}
