/**
 * The histogram above the list of logs: how many there were, bucket by bucket, by how they ended; what is
 * chosen in it becomes the time range of the list.
 */

import { bucketsOf } from './buckets.js';
import type { Span } from './chart.js';
import { ChartPanel } from './chart-panel.js';
import { browserNowMs } from './clock.js';
import { type CountedEvents, countSeries, type EventInterval } from './event-counts.js';
import { countText, DAY_MS, HOUR_MS, MINUTE_MS, shortCountText } from './formats.js';
import type { Questions } from './questions.js';
import type { Settings } from './route.js';
import { aroundUs, windowOf } from './time-range.js';

interface Interval {
  readonly name: EventInterval;
  readonly backMs: number;
  readonly stepMs: number;
}

/** Finest first. The first bucket is whole, so it may begin by its length before the window. */
const INTERVALS: readonly Interval[] = [
  { name: 'minutely', backMs: HOUR_MS, stepMs: MINUTE_MS },
  { name: 'hourly', backMs: DAY_MS, stepMs: HOUR_MS },
  { name: 'daily', backMs: 90 * DAY_MS, stepMs: DAY_MS },
];

export class LogHistogram {
  readonly #place: HTMLElement;
  readonly #panel: ChartPanel;
  readonly #questions: Questions;

  /** `choose` is called with what is chosen in it; null: what was shown before. */
  constructor(place: HTMLElement, questions: Questions, choose: (span: Span | null) => void) {
    this.#place = place;
    this.#questions = questions;
    this.#panel = new ChartPanel(place, 'Entries', choose);
  }

  hide(): void {
    this.#place.hidden = true;
  }

  async show(settings: Settings): Promise<void> {
    const interval = intervalOf(settings, browserNowMs());
    const answer = await this.#questions.tryAsk<{ result: CountedEvents[] }>(
      'api/endpoints/query/logs.event-counts',
      {
        project: settings.project ?? '',
        project_tier: settings.tier ?? '',
        interval: interval.name,
      },
    );
    // What stands in the way is said of the list, too.
    if (answer.kind !== 'answered') return this.hide();
    this.#draw(settings, interval, answer.value.result, answer.computedMs ?? browserNowMs());
  }

  #draw(
    settings: Settings,
    { backMs, stepMs }: Interval,
    rows: readonly CountedEvents[],
    nowMs: number,
  ): void {
    const { afterMs, untilMs } = boundsOf(settings, nowMs);
    const isRelative = afterMs !== null && settings.range !== 'between' && settings.range !== 'around';
    const startMs = isRelative
      ? afterMs
      : Math.max(nowMs - backMs, rows[0] === undefined ? 0 : rows[0].timestamp / 1000);
    const shown = isRelative ? rows.filter(({ timestamp }) => timestamp / 1000 > startMs - stepMs) : rows;
    this.#place.hidden = shown.length === 0;
    if (shown.length === 0) return;
    const startsMs = shown.map(({ timestamp }) => timestamp / 1000);
    const buckets = bucketsOf(startsMs, nowMs, nowMs - startMs, stepMs);
    this.#panel.show({
      buckets,
      kind: 'stacked',
      series: countSeries(buckets, shown),
      format: shortCountText,
      inFull: countText,
      hasSums: true,
      mark:
        isRelative || (afterMs === null && untilMs === null)
          ? null
          : // The lower bound, a microsecond before a bucket, is no part of the window.
            { fromMs: Math.ceil(afterMs ?? startMs), untilMs: Math.ceil(untilMs ?? nowMs) },
    });
  }
}

/** Of the window; a moment is both. */
function boundsOf(settings: Settings, nowMs: number): { afterMs: number | null; untilMs: number | null } {
  const momentUs = aroundUs(settings);
  if (momentUs !== null) return { afterMs: momentUs / 1000, untilMs: momentUs / 1000 };
  const { afterUs, untilUs } = windowOf(settings, nowMs);
  return {
    afterMs: afterUs === null ? null : afterUs / 1000,
    untilMs: untilUs === null ? null : untilUs / 1000,
  };
}

/** The finest that goes back as far as what is shown. */
function intervalOf(settings: Settings, nowMs: number): Interval {
  const { afterMs } = boundsOf(settings, nowMs);
  const finest = INTERVALS.find(
    ({ backMs, stepMs }) => afterMs !== null && nowMs - afterMs <= backMs + stepMs,
  );
  return finest ?? INTERVALS.at(-1)!;
}
