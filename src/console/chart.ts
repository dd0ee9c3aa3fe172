/** One chart on uPlot: bars and lines over buckets of time, in the page's colours, as wide as its place. */

import type { Buckets } from './buckets.js';
import { axisTimes, DAY_MS } from './formats.js';
import { shownDate } from './time-zone.js';
import uPlot from './uplot.js';

export interface Series {
  readonly name: string;
  /** The CSS variable that has its colour, such as `--series-1`. */
  readonly color: string;
  /** Lines are told apart by more than their colour: lengths of dashes and gaps. */
  readonly dash?: number[];
  /** One for each bucket; null is a gap. */
  readonly values: readonly (number | null)[];
}

export interface ChartContent {
  readonly buckets: Buckets;
  /**
   * `over`: bars one in front of the other, the first at the back; `stacked`: one on top of the other, the
   * first lowest.
   */
  readonly kind: 'lines' | 'over' | 'stacked';
  readonly series: readonly Series[];
  /** How a value reads at the axis. */
  readonly format: (value: number) => string;
  /** What stands out, of all that is shown. */
  readonly mark?: Span | null;
}

/** Time from the start of a bucket up to the end of the same or another, ms since the epoch. */
export interface Span {
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface ChartEvents {
  /** Which bucket the pointer is at. */
  readonly pointAt: (bucket: number | null) => void;
  /** What the pointer was drawn over, the bucket that was clicked, or, by a double click, null for all. */
  readonly choose: (span: Span | null, how: 'drag' | 'click') => void;
}

/**
 * Up to here every value of a line has a point; beyond only values between gaps, which no line would show.
 */
const POINTS_UP_TO = 61;
/** Seconds between two ticks of the time axis; never within a bucket. */
const TIME_STEPS_S = [
  1, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400, 172_800,
  604_800, 1_209_600, 2_592_000,
];
/** Between two ticks of an axis of counts: there are no parts of one. */
const COUNT_STEPS = Array.from({ length: 15 }, (_, power) =>
  [1, 2, 5].map((step) => step * 10 ** power),
).flat();
const BAR_SHARE = 0.8;
const BAR_MAX_PX = 48;

export class Chart {
  readonly #place: HTMLElement;
  readonly #events: ChartEvents;
  #plot: uPlot | null = null;
  #content: ChartContent | null = null;
  #zoom: Span | null = null;

  constructor(place: HTMLElement, events: ChartEvents) {
    this.#place = place;
    this.#events = events;
    new ResizeObserver(() => this.#plot?.setSize(sizeOf(place))).observe(place);
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#redraw());
  }

  draw(content: ChartContent): void {
    const isAlike =
      this.#content?.kind === content.kind && this.#content.buckets.stepMs === content.buckets.stepMs;
    this.#content = content;
    if (this.#plot !== null && isAlike) this.#plot.setData(dataOf(content));
    else this.#redraw();
  }

  /** Shows a span of what there is; null: all. */
  zoom(span: Span | null): void {
    this.#zoom = span;
    if (this.#content !== null) this.#plot?.setData(dataOf(this.#content));
  }

  /** From the beginning: in other colours, or with other axes. */
  #redraw(): void {
    const content = this.#content;
    if (content === null) return;
    this.#plot?.destroy();
    this.#plot = new uPlot(this.#options(content), dataOf(content), this.#place);
  }

  #options({ buckets, kind, series, format }: ChartContent): uPlot.Options {
    const style = getComputedStyle(document.documentElement);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = {
      stroke: color('--muted'),
      font: `12px ${color('--sans')}`,
      grid: { stroke: color('--line'), width: 1 },
      ticks: { show: false },
    };
    return {
      ...sizeOf(this.#place),
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: kind === 'lines' },
        drag: { x: true, y: false, setScale: false },
      },
      padding: [12, 28, 0, 0],
      scales: {
        x: { range: () => this.#extentSeconds() },
        y: { range: (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
      },
      axes: [
        {
          ...axis,
          size: 28,
          space: 60,
          incrs: TIME_STEPS_S.filter((step) => step * 1000 >= buckets.stepMs),
          splits: (_, __, firstS, lastS, step) =>
            this.#tickMiddles(step).filter((second) => second >= firstS && second <= lastS),
          values: (_, middles, __, ___, step) =>
            axisTimes(
              middles.map((second) => second - buckets.stepMs / 2000),
              step,
            ),
        },
        {
          ...axis,
          size: 52,
          space: 36,
          ...(kind === 'lines' ? {} : { incrs: COUNT_STEPS }),
          values: (_, splits) => splits.map((value) => format(value)),
        },
      ],
      series: [
        {},
        ...drawnOrder(kind, series).map((one) => seriesOptions(kind, one, color, buckets.startsMs.length)),
      ],
      hooks: {
        setCursor: [(plot) => this.#events.pointAt(plot.cursor.idx ?? null)],
        setSelect: [(plot) => this.#chooseDragged(plot)],
        draw: [(plot) => this.#showMark(plot)],
        ready: [
          ({ over, cursor }) => {
            over.addEventListener('click', () => this.#chooseBucket(cursor.idx ?? null));
            over.addEventListener('dblclick', () => this.#events.choose(null, 'click'));
          },
        ],
      },
    };
  }

  #extentSeconds(): [number, number] {
    if (this.#zoom !== null) return [this.#zoom.fromMs / 1000, this.#zoom.untilMs / 1000];
    const { startsMs, stepMs } = this.#content!.buckets;
    return [startsMs[0] / 1000, (startsMs.at(-1)! + stepMs) / 1000];
  }

  /**
   * Where the ticks of the time axis stand, in seconds: in the middle of the first bucket of each step of the
   * clock. Their labels say when that bucket begins.
   */
  #tickMiddles(stepSeconds: number): number[] {
    const { startsMs, stepMs } = this.#content!.buckets;
    const clockMs = (ms: number) => (stepMs < DAY_MS ? shownDate(ms).getTime() : ms);
    return startsMs
      .filter((startMs) => clockMs(startMs) % (1000 * stepSeconds) < stepMs)
      .map((startMs) => (startMs + stepMs / 2) / 1000);
  }

  #chooseBucket(bucket: number | null): void {
    if (bucket === null) return;
    const { startsMs, stepMs } = this.#content!.buckets;
    const fromMs = startsMs[bucket];
    this.#events.choose({ fromMs, untilMs: fromMs + stepMs }, 'click');
  }

  /** All buckets that it touches. */
  #chooseDragged(plot: uPlot): void {
    const { left, width } = plot.select;
    const { startsMs, stepMs } = this.#content!.buckets;
    const bucketAt = (px: number) => (1000 * plot.posToVal(px, 'x') - startsMs[0]) / stepMs;
    const first = Math.max(0, Math.floor(bucketAt(left)));
    const last = Math.min(startsMs.length, Math.max(first + 1, Math.ceil(bucketAt(left + width)))) - 1;
    this.#showMark(plot);
    this.#events.choose({ fromMs: startsMs[first], untilMs: startsMs[last] + stepMs }, 'drag');
  }

  #showMark(plot: uPlot): void {
    const mark = this.#content?.mark ?? null;
    const [firstS, lastS] = this.#extentSeconds();
    const px = (ms: number) => plot.valToPos(Math.min(lastS, Math.max(firstS, ms / 1000)), 'x');
    const left = mark === null ? 0 : px(mark.fromMs);
    const width = mark === null ? 0 : Math.max(2, px(mark.untilMs) - left);
    plot.setSelect({ left, top: 0, width, height: plot.over.clientHeight }, false);
  }
}

/** Of a stack the highest is drawn first: what is lower covers it. */
function drawnOrder(kind: ChartContent['kind'], series: readonly Series[]): readonly Series[] {
  return kind === 'stacked' ? series.toReversed() : series;
}

/** Values stand in the middle of their buckets. */
function dataOf({ buckets, kind, series }: ChartContent): uPlot.AlignedData {
  const { startsMs, stepMs } = buckets;
  const middles = startsMs.map((startMs) => (startMs + stepMs / 2) / 1000);
  let heights = series.map(({ values }) => [...values]);
  if (kind === 'stacked') {
    for (let i = 1; i < heights.length; i++)
      heights[i] = heights[i].map((value, at) => (value === null ? null : value + (heights[i - 1][at] ?? 0)));
    heights = heights.toReversed();
  }
  return [middles, ...heights];
}

function seriesOptions(
  kind: ChartContent['kind'],
  { name, color: variable, dash }: Series,
  color: (name: string) => string,
  bucketCount: number,
): uPlot.Series {
  const paint = color(variable);
  if (kind !== 'lines') {
    const bars = uPlot.paths.bars!({ size: [BAR_SHARE, BAR_MAX_PX * devicePixelRatio] });
    return { label: name, fill: paint, width: 0, paths: bars, points: { show: false } };
  }
  const filter = (plot: uPlot, index: number) =>
    bucketCount <= POINTS_UP_TO ? null : betweenGaps(plot.data[index] as readonly (number | null)[]);
  return {
    label: name,
    stroke: paint,
    width: 2,
    ...(drawsDashes(bucketCount) ? { dash } : {}),
    points: { show: true, size: 5, fill: paint, stroke: paint, filter },
  };
}

/** Of many short buckets, dashes are no longer than what they are between. */
export function drawsDashes(bucketCount: number): boolean {
  return bucketCount <= POINTS_UP_TO;
}

function betweenGaps(values: readonly (number | null)[]): number[] {
  const isGap = (value: number | null | undefined) => value === null || value === undefined;
  return values.flatMap((value, i) =>
    !isGap(value) && isGap(values[i - 1]) && isGap(values[i + 1]) ? [i] : [],
  );
}

function sizeOf(place: HTMLElement): { width: number; height: number } {
  return { width: Math.max(200, place.clientWidth), height: Math.max(100, place.clientHeight) };
}
