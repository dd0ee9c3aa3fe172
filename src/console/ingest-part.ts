/** Ingest: how far the logs were read and how fast, what is kept, what it takes, and what went wrong. */

import { DataTable } from './data-table.js';
import { DeadLetterPanel } from './dead-letter-panel.js';
import { element, found } from './dom.js';
import {
  bytesText,
  clockText,
  counted,
  countText,
  rateText,
  shareText,
  spanText,
  timeText,
} from './formats.js';
import type { Part, PartPorts } from './part.js';
import { Questions } from './questions.js';
import type {
  FigureUnit,
  MemberStatus,
  PartitionFigures,
  ServiceStatus,
  ViewStatus,
} from './service-status.js';
import { showTiles } from './tiles.js';
import { zoneName } from './time-zone.js';

const REFRESH_MS = 2000;
/** Rates are of so much time, or of what there is of it. */
const RATE_WINDOW_US = 10_000_000;
const TIER_NAMES: Readonly<Record<string, string>> = { '1d': '1 day', '7d': '7 days', '90d': '90 days' };

const shown = found('ingest-shown', HTMLDivElement);
const missing = found('ingest-missing', HTMLUListElement);
const tiles = found('ingest-tiles', HTMLDListElement);
const viewCards = found('ingest-views', HTMLDivElement);
const members = found('ingest-members', HTMLDivElement);
const summary = found('ingest-summary', HTMLParagraphElement);

export class IngestPart implements Part {
  readonly #questions: Questions;
  readonly #members = tableIn(
    'ingest-members',
    'Members',
    ['Member', 'Zone', 'Answers', 'Reads', 'Copies', 'Age'],
    'None.',
  );
  readonly #partitions = tableIn(
    'ingest-partitions',
    'Partitions',
    ['Topic', 'Partition', 'Next offset', 'Lag', 'Entries', 'Rate'],
    'None yet.',
  );
  readonly #memory = tableIn('ingest-memory', 'Memory', ['Part', 'Bytes', 'Of the budget'], 'None.');
  readonly #caches = tableIn(
    'ingest-caches',
    'Caches',
    ['Cache', 'Bytes', 'Hits', 'Misses', 'Hit rate'],
    'None.',
  );
  /** By the names of the views. */
  readonly #views = new Map<string, DataTable>();
  readonly #gaps = tableIn(
    'ingest-gaps',
    'Gaps',
    ['Partition and reason', 'Expected', 'Went on at'],
    'No gaps to acknowledge.',
  );
  readonly #deadLetters = new DeadLetterPanel(found('ingest-dead-letters', HTMLDivElement));
  /** The last readings, oldest first, for rates. */
  #readings: ServiceStatus[] = [];

  constructor(ports: PartPorts) {
    this.#questions = new Questions(ports);
  }

  show(): void {
    this.#questions.drop();
    this.#readings = [];
    void this.#refresh();
  }

  hide(): void {
    this.#questions.drop();
  }

  async #refresh(): Promise<void> {
    const reply = await this.#questions.ask<ServiceStatus>('api/status', {});
    if (reply !== null) this.#draw(reply.value);
    this.#questions.later(REFRESH_MS, () => this.#refresh());
  }

  #draw(status: ServiceStatus): void {
    this.#readings.push(status);
    while (this.#readings.length > 2 && status.nowUs - this.#readings[1].nowUs >= RATE_WINDOW_US)
      this.#readings.shift();
    shown.hidden = false;
    const lacking = missingSentences(status);
    missing.hidden = lacking.length === 0;
    missing.replaceChildren(...lacking.map((sentence) => element('li', {}, sentence)));
    this.#showTiles(status);
    members.hidden = status.members === null;
    this.#members.show((status.members ?? []).map(memberLine));
    this.#partitions.show(
      status.partitions.map((figures) => [
        figures.topic,
        `${figures.partition}${figures.isRead ? '' : ' (not read)'}${figures.isHeld ? ' (held)' : ''}`,
        figures.nextOffset === null ? '–' : countText(figures.nextOffset),
        lagText(figures),
        countText(figures.received),
        this.#rateText([figures]),
      ]),
    );
    for (const view of status.views) this.#showView(view, status.nowUs);
    const { parts, budgetBytes } = status.memory;
    this.#memory.show(
      [...parts, { part: 'all', bytes: heldBytes(status) }].map(({ part, bytes }) => [
        part.replace('-', ' '),
        bytesText(bytes),
        shareText(bytes, budgetBytes),
      ]),
    );
    this.#showCaches(status);
    this.#gaps.show(
      status.gaps.map(({ topic, partition, reason, expectedOffset, resumedOffset }) => [
        `${topic}/${partition}, ${reason}`,
        countText(expectedOffset),
        countText(resumedOffset),
      ]),
    );
    this.#deadLetters.show(status.deadLetters);
    summary.textContent = `Logring ${status.version}, logs from ${status.logSource === 'Kafka' ? 'Kafka' : 'the embedded log'}, as of ${clockText(status.nowUs / 1000)} ${zoneName()}`;
  }

  #showTiles(status: ServiceStatus): void {
    const lags = status.partitions.map(lagOf);
    const lag = lags.reduce<number>((sum, one) => sum + (one ?? 0), 0);
    const deadCount = status.deadLetters.counts.reduce((sum, { count }) => sum + count, 0);
    showTiles(tiles, [
      { name: 'Entries', value: this.#rateText(status.partitions) },
      { name: 'Lag', value: countText(lag), note: lag === 1 ? 'record' : 'records' },
      { name: 'Rows kept', value: countText(figureSum(status.views, 'rows')) },
      { name: 'Store', value: bytesText(status.store.usedBytes), note: 'on disk' },
      {
        name: 'Memory',
        value: bytesText(heldBytes(status)),
        note: `of ${bytesText(status.memory.budgetBytes)}`,
      },
      { name: 'Dead letters', value: countText(deadCount) },
    ]);
  }

  #showView({ name, title, label, figures, lines }: ViewStatus, nowUs: number): void {
    let table = this.#views.get(name);
    if (table === undefined) {
      const card = element('div', { class: 'card full', id: `ingest-view-${name}` });
      viewCards.append(card);
      const columns = [label === null ? 'All' : label, ...figures.map((figure) => figure.title)];
      table = new DataTable(card, title, columns, 'None yet.');
      this.#views.set(name, table);
    }
    table.show(
      lines.map((line) => [
        line.label === null ? 'All' : (TIER_NAMES[line.label] ?? line.label),
        ...line.values.map((value, i) => figureText(figures[i].unit, value, nowUs)),
      ]),
    );
  }

  #showCaches({ resultCache, blockCache }: ServiceStatus): void {
    const line = (name: string, { bytes, hits, misses }: ServiceStatus['blockCache']) => [
      name,
      bytesText(bytes),
      countText(hits),
      countText(misses),
      hits + misses === 0 ? '–' : shareText(hits, hits + misses),
    ];
    const results =
      resultCache === null
        ? ['Results (off)', '–', '–', '–', '–']
        : line(`Results (${countText(resultCache.entries)})`, resultCache);
    this.#caches.show([results, line('Blocks of rows', blockCache)]);
  }

  /** Of the entries of some partitions together. */
  #rateText(partitions: readonly PartitionFigures[]): string {
    const first = this.#readings[0];
    const last = this.#readings.at(-1);
    if (first === undefined || last === undefined || last.nowUs <= first.nowUs) return '…';
    const before = partitions.reduce((sum, { topic, partition }) => {
      const then = first.partitions.find((one) => one.topic === topic && one.partition === partition);
      return sum + (then?.received ?? 0);
    }, 0);
    const now = partitions.reduce((sum, { received }) => sum + received, 0);
    return rateText(Math.max(0, ((now - before) * 1_000_000) / (last.nowUs - first.nowUs)));
  }
}

function tableIn(id: string, title: string, columns: readonly string[], nothing: string): DataTable {
  return new DataTable(found(id, HTMLDivElement), title, columns, nothing);
}

function memberLine({ url, zone, answers, readCount, copyCount, ageSeconds }: MemberStatus): string[] {
  return [
    url === '' ? 'this one' : url,
    zone === '' ? '–' : zone,
    answers === null ? '…' : answers ? 'yes' : 'no',
    countText(readCount),
    countText(copyCount),
    readCount === 0 ? '–' : ageSeconds === null ? 'not whole yet' : `${Math.round(ageSeconds)} s`,
  ];
}

/** What it means for the answers. */
function missingSentences({ missing: { url, status, time } }: ServiceStatus): string[] {
  const had = (count: number, one: string, many: string, what: string) =>
    count === 0 ? [] : [`Since the start ${counted(count, one, many)} had ${what}.`];
  return [
    ...had(
      url,
      'edge entry',
      'edge entries',
      'no URL: usage.api-counts does not count them; LOGRING_URL_FROM_PATH=true makes one from the path',
    ),
    ...had(status, 'invocation', 'invocations', 'no status: they do not count as errors'),
    ...had(time, 'invocation', 'invocations', 'no execution time: they count, but not in the times'),
  ];
}

function figureText(unit: FigureUnit, value: number | null, nowUs: number): string {
  if (value === null) return '–';
  if (unit === 'bytes') return bytesText(value);
  if (unit === 'count') return countText(value);
  return `${timeText(value * 1_000_000).slice(0, 16)} (${spanText(nowUs / 1000 - value * 1000)} ago)`;
}

/** Over all lines. */
function figureSum(views: readonly ViewStatus[], figure: string): number {
  let sum = 0;
  for (const { figures, lines } of views) {
    const i = figures.findIndex(({ name }) => name === figure);
    if (i >= 0) for (const { values } of lines) sum += values[i] ?? 0;
  }
  return sum;
}

function lagOf({ endOffset, nextOffset }: PartitionFigures): number | null {
  return endOffset === null ? null : Math.max(0, endOffset - (nextOffset ?? 0));
}

function lagText(figures: PartitionFigures): string {
  const lag = lagOf(figures);
  return lag === null ? 'not known' : countText(lag);
}

function heldBytes({ memory }: ServiceStatus): number {
  return memory.parts.reduce((sum, { bytes }) => sum + bytes, 0);
}
