/** Usage: a project's requests by area of its API, one area on top of the other. */

import { AREAS, areaSeries, startMsOf, type UsageRow } from './api-counts.js';
import { bucketsOf } from './buckets.js';
import { ChartPanel } from './chart-panel.js';
import { ChoiceGroup } from './choice-group.js';
import { browserNowMs } from './clock.js';
import { found, visibleText } from './dom.js';
import { clockText, countText, DAY_MS, HOUR_MS, MINUTE_MS, shortCountText } from './formats.js';
import { sayInstead, sayRefused } from './instead.js';
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
  /** How the window cuts its first bucket. */
  readonly note: string;
}

const INTERVALS: Readonly<Record<string, Interval>> = {
  minutely: {
    label: 'Hour by minute',
    backMs: HOUR_MS,
    stepMs: MINUTE_MS,
    refreshMs: MINUTE_MS / 6,
    note: 'The first minute is cut off where the hour begins.',
  },
  hourly: {
    label: 'Hour by hour',
    backMs: HOUR_MS,
    stepMs: HOUR_MS,
    refreshMs: MINUTE_MS,
    note: 'The last 60 minutes lie in two hours of the clock, so there are two bars: the first has what is left of its hour, the second what there is of its hour so far.',
  },
  daily: {
    label: '7 days by day',
    backMs: 7 * DAY_MS,
    stepMs: DAY_MS,
    refreshMs: MINUTE_MS,
    note: 'The first day is cut off where the seven days begin.',
  },
};
const DEFAULT_INTERVAL = 'minutely';

const form = found('usage-form', HTMLFormElement);
const projectField = found('usage-project', HTMLInputElement);
const shown = found('usage-shown', HTMLDivElement);
const summary = found('usage-summary', HTMLParagraphElement);
const tiles = found('usage-tiles', HTMLDListElement);
const empty = found('usage-empty', HTMLDivElement);

export class UsagePart implements Part {
  readonly #ports: PartPorts;
  readonly #questions: Questions;
  readonly #interval: ChoiceGroup;
  readonly #panel = new ChartPanel(found('usage-counts', HTMLDivElement), 'Requests');

  /** What was asked for last: the field may have been edited since. */
  #asked = { project: '', interval: DEFAULT_INTERVAL };
  /** What the chart is of. */
  #drawn = '';

  constructor(ports: PartPorts) {
    this.#ports = ports;
    this.#questions = new Questions(ports, (reason) => {
      shown.hidden = true;
      sayRefused(empty, reason);
    });
    const choose = () => this.#choose();
    this.#interval = new ChoiceGroup(found('usage-interval', HTMLFieldSetElement), INTERVALS, choose);
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#choose();
    });
  }

  show({ project = '', interval = DEFAULT_INTERVAL }: Settings): void {
    projectField.value = project;
    this.#interval.value = Object.hasOwn(INTERVALS, interval) ? interval : DEFAULT_INTERVAL;
    this.#takeForm();
    void this.#begin();
  }

  hide(): void {
    this.#questions.drop();
  }

  #choose(): void {
    this.#takeForm();
    this.#ports.remember(this.#asked);
    void this.#begin();
  }

  #takeForm(): void {
    this.#asked = { project: projectField.value.trim(), interval: this.#interval.value };
  }

  async #begin(): Promise<void> {
    this.#questions.drop();
    if (this.#asked.project !== '') return this.#refresh();
    shown.hidden = true;
    await offerProjects(empty, 'Whose requests?', this.#ports, (chosen) => {
      projectField.value = chosen;
      this.#choose();
    });
  }

  /** Asks, shows, and comes again after a while. */
  async #refresh(): Promise<void> {
    const { project, interval } = this.#asked;
    const reply = await this.#questions.ask<{ result: UsageRow[] }>('api/endpoints/query/usage.api-counts', {
      project,
      interval,
    });
    const asked = `${interval} ${project}`;
    if (reply !== null) {
      this.#drawn = asked;
      this.#draw(project, INTERVALS[interval], reply.value.result, reply.computedMs ?? browserNowMs());
    } else if (asked !== this.#drawn) {
      shown.hidden = true;
      empty.hidden = true;
    }
    this.#questions.later(INTERVALS[interval].refreshMs, () => this.#refresh());
  }

  #draw(project: string, { backMs, stepMs, note }: Interval, rows: readonly UsageRow[], nowMs: number): void {
    shown.hidden = rows.length === 0;
    empty.hidden = rows.length > 0;
    if (rows.length === 0) {
      sayInstead(
        empty,
        `No requests match ${visibleText(project)} in this time.`,
        'A project’s name is looked for in the URL of each request; so is a regular expression.',
      );
      return;
    }
    const startsMs = rows.map(startMsOf);
    const buckets = bucketsOf(startsMs, nowMs, backMs, stepMs);
    const series = areaSeries(buckets, rows);
    this.#panel.show({ buckets, kind: 'stacked', series, format: shortCountText, inFull: countText });
    showTiles(
      tiles,
      AREAS.map(({ name, column, color }) => {
        const sum = rows.reduce((total, row) => total + row[column], 0);
        return { name, value: countText(sum), color };
      }),
    );
    summary.textContent = `As of ${clockText(nowMs)} ${zoneName()}. ${note}`;
  }
}
