/**
 * A chart with what belongs to it: a heading, a legend that says the values under the pointer, and all values
 * as a table.
 */

import { Chart, type ChartContent, type ChartEvents, drawsDashes, type Series, type Span } from './chart.js';
import { element } from './dom.js';
import { type ExportRecord, exportButtons } from './export.js';
import { bucketsText, bucketText, DAY_MS } from './formats.js';
import { zoneName } from './time-zone.js';

export interface PanelContent extends ChartContent {
  /** How a value reads in full, in the legend and the table. */
  readonly inFull: (value: number) => string;
  /**
   * Whether the legend says the sums of the series while the pointer is elsewhere; where there may be a mark,
   * those of what it touches, and of which time they are.
   */
  readonly hasSums?: boolean;
}

export class ChartPanel {
  readonly #legend = element('ul', { class: 'legend' });
  readonly #table = element('table', {});
  readonly #wholeButton = element(
    'button',
    { type: 'button', class: 'small', hidden: '' },
    'Show the whole range',
  );
  readonly #details: HTMLDetailsElement;
  readonly #chart: Chart;
  readonly #canvas = element('div', { class: 'plot', 'aria-hidden': 'true' });
  /** Why there is no chart. */
  readonly #reason = element('p', { class: 'hint', hidden: '' });
  readonly #title: string;
  #content: PanelContent | null = null;
  #zoom: Span | null = null;

  /** Without a `choose` a drag shows what it is over, and the whole time again by a button. */
  constructor(
    place: HTMLElement,
    title: string,
    choose: ChartEvents['choose'] = (span, how) => {
      if (span === null || how === 'drag') this.zoom(span);
    },
  ) {
    this.#title = title;
    this.#wholeButton.addEventListener('click', () => choose(null, 'click'));
    const scroller = element(
      'div',
      { class: 'scroller', tabindex: '0', role: 'region', 'aria-label': `${title} as a table` },
      this.#table,
    );
    this.#details = element('details', { class: 'numbers' }, element('summary', {}, 'Numbers'), scroller);
    this.#details.append(
      exportButtons(
        () => title.toLowerCase(),
        () => this.#records(),
      ),
    );
    this.#details.addEventListener('toggle', () => this.#fillTable());
    place.append(
      element('div', { class: 'panel-head' }, element('h2', {}, title), this.#wholeButton, this.#legend),
      this.#reason,
      this.#canvas,
      this.#details,
    );
    this.#chart = new Chart(this.#canvas, { pointAt: (bucket) => this.#say(bucket), choose });
  }

  /** Says why instead of a chart. */
  showNothing(reason: string): void {
    this.#content = null;
    this.#reason.textContent = reason;
    this.#legend.replaceChildren();
    this.#lay(false);
  }

  #lay(hasChart: boolean): void {
    this.#reason.hidden = hasChart;
    this.#canvas.hidden = !hasChart;
    this.#details.hidden = !hasChart;
  }

  zoom(span: Span | null): void {
    this.#zoom = span;
    this.#chart.zoom(span);
    this.#wholeButton.hidden = span === null;
  }

  show(content: PanelContent): void {
    const { startsMs, stepMs } = content.buckets;
    const isOther = stepMs !== this.#content?.buckets.stepMs;
    if (this.#zoom !== null && (isOther || this.#zoom.fromMs < startsMs[0])) this.zoom(null);
    if (content.mark !== undefined) this.#wholeButton.hidden = content.mark === null;
    this.#content = content;
    this.#lay(true);
    this.#say(null);
    this.#chart.draw(content);
    this.#fillTable();
  }

  /** The legend; with the values of a bucket when the pointer is at one. */
  #say(bucket: number | null): void {
    const content = this.#content;
    if (content === null) return;
    const { series, buckets, inFull, hasSums = false } = content;
    const [first, last] = summedBuckets(content);
    const items = series.map((one) => {
      const value = bucket === null ? sumOf(one.values.slice(first, last + 1)) : one.values[bucket];
      const said = bucket === null && !hasSums ? '' : (value ?? null) === null ? '–' : inFull(value!);
      return element('li', {}, swatchOf(content, one), one.name, ' ', element('b', {}, said));
    });
    const { startsMs, stepMs } = buckets;
    const summed =
      hasSums && content.mark !== undefined ? bucketsText(startsMs[first], startsMs[last], stepMs) : '';
    const when = bucket === null ? summed : bucketText(startsMs[bucket], stepMs);
    this.#legend.replaceChildren(element('li', { class: 'when' }, when), ...items);
  }

  #records(): readonly ExportRecord[] {
    const { series, buckets } = this.#content!;
    return buckets.startsMs.map((startMs, i) => ({
      timestamp: 1000 * startMs,
      ...Object.fromEntries(series.map(({ name, values }) => [name, values[i]])),
    }));
  }

  #fillTable(): void {
    const content = this.#content;
    if (content === null || !this.#details.open) return;
    const { series, buckets, inFull } = content;
    const zone = buckets.stepMs >= DAY_MS ? 'UTC' : zoneName();
    const head = element('tr', {}, ...[`Time (${zone})`, ...series.map(({ name }) => name)].map(columnHead));
    const rows = buckets.startsMs.map((startMs, i) => {
      const cells = series.map(({ values }) => {
        const value = values[i];
        return element('td', {}, value === null ? '–' : inFull(value));
      });
      return element(
        'tr',
        {},
        element('th', { scope: 'row' }, bucketText(startMs, buckets.stepMs)),
        ...cells,
      );
    });
    this.#table.replaceChildren(
      element('caption', { class: 'unseen' }, this.#title),
      element('thead', {}, head),
      element('tbody', {}, ...rows.toReversed()),
    );
  }
}

/** The first and the last bucket that the mark touches; of all buckets when it is a moment or elsewhere. */
function summedBuckets({ buckets: { startsMs, stepMs }, mark = null }: PanelContent): [number, number] {
  const all: [number, number] = [0, startsMs.length - 1];
  if (mark === null || mark.fromMs >= mark.untilMs) return all;
  const first = startsMs.findIndex((startMs) => startMs + stepMs > mark.fromMs);
  const last = startsMs.findLastIndex((startMs) => startMs < mark.untilMs);
  return first >= 0 && first <= last ? [first, last] : all;
}

/** As the chart draws it. */
function swatchOf({ kind, buckets }: PanelContent, { color, dash }: Series): HTMLElement {
  const swatch = element('span', { class: kind === 'lines' ? 'swatch line' : 'swatch' });
  let paint = `var(${color})`;
  if (dash !== undefined && drawsDashes(buckets.startsMs.length)) {
    const [length, gap] = dash;
    paint = `repeating-linear-gradient(90deg, ${paint} 0 ${length}px, transparent 0 ${length + gap}px)`;
  }
  swatch.style.setProperty('background', paint);
  return swatch;
}

function sumOf(values: readonly (number | null)[]): number {
  return values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
}

function columnHead(name: string): HTMLElement {
  return element('th', { scope: 'col' }, name);
}
