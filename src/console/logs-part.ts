/**
 * Logs: the entries of a project in a window of time, newest first; older ones by asking on from the oldest
 * shown.
 */

import type { Span } from './chart.js';
import { browserNowMs } from './clock.js';
import { found } from './dom.js';
import { entryActions } from './entry-actions.js';
import { EntryList } from './entry-list.js';
import { exportButtons } from './export.js';
import { FollowPause } from './follow-pause.js';
import { counted, countText, DAY_MS, timeText } from './formats.js';
import { sayInstead, sayRefused } from './instead.js';
import type { LogRow } from './log-entry.js';
import { LogHistogram } from './log-histogram.js';
import { DEFAULTS, LogsForm, TIER_DAYS } from './logs-form.js';
import type { Part, PartPorts } from './part.js';
import { offerProjects } from './project-offer.js';
import { Questions } from './questions.js';
import type { Settings } from './route.js';
import { aroundUs, type TimeWindow, windowOf, windowParameters } from './time-range.js';
import { utcText, zoneName } from './time-zone.js';

/** What one answer holds at most: the contract's limit of `logs.all`. */
const ROW_LIMIT = 100;
const FOLLOW_EVERY_MS = 2000;
/** While following, entries that come so late are still found. */
const FOLLOW_OVERLAP_US = 30_000_000;
/** Around a moment: so much after it, or what one answer holds of that. */
const AROUND_US = 600_000_000;

const followButton = found('logs-follow', HTMLButtonElement);
const bar = found('logs-bar', HTMLDivElement);
const summary = found('logs-summary', HTMLParagraphElement);
const filterField = found('logs-filter', HTMLInputElement);
const empty = found('logs-empty', HTMLDivElement);
const olderButton = found('logs-older', HTMLButtonElement);

export class LogsPart implements Part {
  readonly #ports: PartPorts;
  readonly #questions: Questions;
  readonly #form = new LogsForm(() => this.#submit());
  readonly #histogram: LogHistogram;
  readonly #list = new EntryList(found('logs-entries', HTMLOListElement), (row) =>
    entryActions(row, this.#settings, (settings) => this.#go(settings)),
  );
  #settings: Settings = DEFAULTS;
  /** What was shown before a time was chosen in the histogram. */
  #lastRange = DEFAULTS.range;
  readonly #pause = new FollowPause(found('logs-entries', HTMLOListElement), () =>
    this.#questions.later(0, () => this.#newer()),
  );
  #isFollowing = false;

  constructor(ports: PartPorts) {
    this.#ports = ports;
    this.#questions = new Questions(ports, (reason) => {
      this.#clear();
      sayRefused(empty, reason);
    });
    this.#histogram = new LogHistogram(found('logs-histogram', HTMLDivElement), this.#questions, (span) =>
      this.#chooseSpan(span),
    );
    followButton.addEventListener('click', () => this.#follow(!this.#isFollowing));
    filterField.addEventListener('input', () => {
      this.#list.filter(filterField.value);
      this.#summarise();
    });
    found('logs-export', HTMLDivElement).append(
      exportButtons(
        () => `logs-${this.#settings.project}`,
        () => this.#list.visible.map(({ row }) => row),
      ),
    );
    olderButton.addEventListener('click', () => void this.#older());
  }

  show(settings: Settings): void {
    this.#form.show({ ...DEFAULTS, ...settings });
    this.#isFollowing = (settings.follow ?? '') !== '' && this.#form.canFollow;
    this.#take();
  }

  hide(): void {
    this.#pause.isFollowing = false;
    this.#questions.drop();
  }

  /** Takes what the form says. */
  #take(): void {
    this.#settings = { ...this.#form.settings(), follow: this.#isFollowing ? '1' : '' };
    if (this.#form.canFollow) this.#lastRange = this.#settings.range;
    void this.#search();
  }

  /** With a step, the browser goes back to what was shown before. */
  #submit(isStep = false): void {
    this.#isFollowing &&= this.#form.canFollow;
    this.#take();
    this.#ports.remember(this.#settings, isStep);
  }

  #go(settings: Settings): void {
    this.#form.show(settings);
    this.#submit(true);
  }

  #chooseSpan(span: Span | null): void {
    const range =
      span === null
        ? { range: this.#lastRange }
        : { range: 'between', from: utcText(span.fromMs), to: utcText(span.untilMs) };
    this.#go({ ...this.#settings, ...range });
  }

  #follow(isFollowing: boolean): void {
    if (isFollowing && !this.#form.canFollow) this.#form.range = DEFAULTS.range;
    this.#isFollowing = isFollowing;
    this.#submit();
  }

  #clear(): void {
    this.#list.clear();
    this.#histogram.hide();
    bar.hidden = true;
    olderButton.hidden = true;
  }

  /** Asks again. */
  async #search(): Promise<void> {
    this.#questions.drop();
    this.#pause.isFollowing = this.#isFollowing;
    followButton.setAttribute('aria-pressed', String(this.#isFollowing));
    olderButton.hidden = true;
    olderButton.disabled = false;
    const { project = '', entry = '' } = this.#settings;
    if (project === '') {
      this.#clear();
      await offerProjects(empty, 'Whose logs?', this.#ports, (chosen) => {
        this.#form.project = chosen;
        this.#submit();
      });
      return;
    }
    void this.#histogram.show(this.#settings);
    const window = this.#window();
    const momentUs = aroundUs(this.#settings);
    const rows = momentUs === null ? await this.#ask(window) : await this.#askAround(momentUs);
    if (rows === null) {
      if (this.#isFollowing) this.#questions.later(FOLLOW_EVERY_MS, () => this.#search());
      return;
    }
    this.#list.clear();
    this.#list.addOlder(rows);
    olderButton.hidden = rows.length < ROW_LIMIT;
    this.#summarise();
    this.#sayNothingFound(window);
    if (momentUs !== null && !this.#list.open(momentUs, entry))
      summary.textContent += '; the entry of this moment is not there any more';
    this.#followOn();
  }

  async #older(): Promise<void> {
    const oldest = this.#list.entries.at(-1);
    if (oldest === undefined) return;
    olderButton.disabled = true;
    const window = this.#window();
    let untilUs = oldest.row.timestamp;
    let addedCount = 0;
    let rows: readonly LogRow[] | null = [];
    do {
      rows = await this.#ask({ ...window, untilUs });
      if (rows === null) break;
      addedCount = this.#list.addOlder(rows);
      // As many entries as an answer holds are of this microsecond: the rest of it cannot be fetched.
      untilUs -= 1;
    } while (addedCount === 0 && rows.length === ROW_LIMIT);
    olderButton.disabled = false;
    if (rows === null) return;
    olderButton.hidden = rows.length < ROW_LIMIT;
    this.#summarise();
  }

  #followOn(): void {
    if (this.#isFollowing) this.#questions.later(FOLLOW_EVERY_MS, () => this.#newer());
  }

  async #newer(): Promise<void> {
    if (this.#pause.isPaused) return this.#followOn();
    const newest = this.#list.entries[0]?.row.timestamp;
    const bounds = this.#window();
    const sinceUs = newest === undefined ? bounds.afterUs : newest - FOLLOW_OVERLAP_US;
    const afterUs = sinceUs === null ? bounds.afterUs : Math.max(sinceUs, bounds.afterUs ?? sinceUs);
    const rows = await this.#ask({ ...bounds, afterUs });
    if (rows !== null) {
      const addedCount = this.#list.addNewer(rows);
      // Between these and what was shown there may be more than one answer holds.
      if (addedCount === ROW_LIMIT && this.#list.entries.length > ROW_LIMIT) {
        this.#list.clear();
        this.#list.addOlder(rows);
        olderButton.hidden = false;
      }
      if (this.#list.isTrimmed) olderButton.hidden = false;
      this.#summarise();
      this.#sayNothingFound(bounds);
      if (addedCount > 0) void this.#histogram.show(this.#settings);
    }
    this.#followOn();
  }

  #window(): TimeWindow {
    return windowOf(this.#settings, browserNowMs());
  }

  /** Newest first; null when there is no answer. */
  async #ask(window: TimeWindow): Promise<readonly LogRow[] | null> {
    const { project = '', tier } = this.#settings;
    const reply = await this.#questions.ask<{ result: LogRow[] }>('api/endpoints/query/logs.all', {
      project,
      project_tier: tier,
      ...windowParameters(window),
    });
    return reply?.value.result ?? null;
  }

  /**
   * What came up to a moment, and after it: an answer holds the newest of its window, so that is made shorter
   * until all of it fits.
   */
  async #askAround(momentUs: number): Promise<readonly LogRow[] | null> {
    const before = await this.#ask({ afterUs: null, untilUs: momentUs });
    for (let spanUs = AROUND_US; before !== null; spanUs = Math.floor(spanUs / 8)) {
      const after = await this.#ask({ afterUs: momentUs, untilUs: momentUs + spanUs });
      if (after === null) return null;
      if (after.length < ROW_LIMIT || spanUs <= 1) return [...after, ...before];
    }
    return null;
  }

  #summarise(): void {
    const { entries, visible } = this.#list;
    bar.hidden = entries.length === 0;
    if (entries.length === 0) {
      summary.textContent = '';
      return;
    }
    const oldest = timeText(entries.at(-1)!.row.timestamp).slice(0, 19);
    const span = `${counted(entries.length, 'entry', 'entries')} back to ${oldest} ${zoneName()}${this.#tierLimit()}`;
    summary.textContent =
      filterField.value.trim() === '' ? span : `${countText(visible.length)} of ${span} match the filter`;
  }

  /** Where the tier ends the list before the time that is asked for: the histogram goes on beyond that. */
  #tierLimit(): string {
    const nowMs = browserNowMs();
    const { afterUs } = windowOf(this.#settings, nowMs);
    const days = TIER_DAYS[this.#settings.tier];
    if (afterUs === null || afterUs >= 1000 * (nowMs - days * DAY_MS)) return '';
    return `; this tier keeps none older than ${counted(days, 'day', 'days')}`;
  }

  #sayNothingFound({ afterUs, untilUs }: TimeWindow): void {
    empty.hidden = this.#list.entries.length > 0;
    if (empty.hidden) return;
    const bounds = afterUs === null && untilUs === null ? '' : ' in this time';
    sayInstead(
      empty,
      `No entries${bounds}.`,
      `The tier ${this.#form.tierText} decides how far back they are kept; a longer time or another tier may have some.`,
    );
  }
}
