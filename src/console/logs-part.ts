/**
 * Logs: the entries of a project in a window of time, newest first; older ones by asking on from the oldest
 * shown.
 */

import { browserNowMs } from './clock.js';
import { found, visibleText } from './dom.js';
import { EntryList } from './entry-list.js';
import { counted, countText, timeText } from './formats.js';
import { sayInstead, sayRefused } from './instead.js';
import type { LogRow } from './log-entry.js';
import type { Part, PartPorts } from './part.js';
import { offerProjects } from './project-offer.js';
import { Questions } from './questions.js';
import type { Settings } from './route.js';
import { fieldText, type TimeWindow, windowOf, windowParameters } from './time-range.js';

/** What one answer holds at most: the contract's limit of `logs.all`. */
const ROW_LIMIT = 100;
const FOLLOW_EVERY_MS = 2000;
/** While following, entries that come so late are still found. */
const FOLLOW_OVERLAP_US = 30_000_000;
const DEFAULTS: Settings = { tier: 'ENTERPRISE', range: 'all' };

const form = found('logs-form', HTMLFormElement);
const projectField = found('logs-project', HTMLInputElement);
const tierField = found('logs-tier', HTMLSelectElement);
const rangeField = found('logs-range', HTMLSelectElement);
const betweenFields = found('logs-between', HTMLDivElement);
const fromField = found('logs-from', HTMLInputElement);
const toField = found('logs-to', HTMLInputElement);
const followButton = found('logs-follow', HTMLButtonElement);
const bar = found('logs-bar', HTMLDivElement);
const summary = found('logs-summary', HTMLParagraphElement);
const filterField = found('logs-filter', HTMLInputElement);
const empty = found('logs-empty', HTMLDivElement);
const olderButton = found('logs-older', HTMLButtonElement);

export class LogsPart implements Part {
  readonly #ports: PartPorts;
  readonly #questions: Questions;
  readonly #list = new EntryList(found('logs-entries', HTMLOListElement));
  #settings: Settings = DEFAULTS;
  #isFollowing = false;

  constructor(ports: PartPorts) {
    this.#ports = ports;
    this.#questions = new Questions(ports, (reason) => {
      this.#list.clear();
      bar.hidden = true;
      olderButton.hidden = true;
      sayRefused(empty, reason);
    });
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.#submit();
    });
    for (const field of [tierField, rangeField]) field.addEventListener('change', () => this.#choose());
    followButton.addEventListener('click', () => this.#follow(!this.#isFollowing));
    filterField.addEventListener('input', () => {
      this.#list.filter(filterField.value);
      this.#summarise();
    });
    olderButton.addEventListener('click', () => void this.#older());
  }

  show(settings: Settings): void {
    this.#settings = { ...DEFAULTS, ...settings };
    const { project = '', tier, range, from = '', to = '', follow = '' } = this.#settings;
    projectField.value = project;
    tierField.value = tier;
    rangeField.value = range;
    // The address may say what can't be chosen.
    if (tierField.value === '') tierField.value = DEFAULTS.tier;
    if (rangeField.value === '') rangeField.value = DEFAULTS.range;
    this.#settings = { ...this.#settings, tier: tierField.value, range: rangeField.value };
    fromField.value = from;
    toField.value = to;
    betweenFields.hidden = rangeField.value !== 'between';
    this.#isFollowing = follow !== '';
    void this.#search();
  }

  hide(): void {
    this.#questions.drop();
  }

  /** A tier or range was chosen: shown at once, except for the range whose moments are still to be given. */
  #choose(): void {
    const isBetween = rangeField.value === 'between';
    if (isBetween && fromField.value === '' && toField.value === '') {
      const nowMs = browserNowMs();
      fromField.value = fieldText(nowMs - 3_600_000);
      toField.value = fieldText(nowMs);
    }
    betweenFields.hidden = !isBetween;
    if (!isBetween && projectField.value !== '') this.#submit();
  }

  #submit(): void {
    const isBetween = rangeField.value === 'between';
    this.#settings = {
      project: projectField.value.trim(),
      tier: tierField.value,
      range: rangeField.value,
      from: isBetween ? fromField.value : '',
      to: isBetween ? toField.value : '',
      follow: this.#isFollowing && !isBetween ? '1' : '',
    };
    this.#isFollowing = this.#settings.follow !== '';
    this.#ports.remember(this.#settings);
    void this.#search();
  }

  #follow(isFollowing: boolean): void {
    if (isFollowing && rangeField.value === 'between') rangeField.value = 'all';
    betweenFields.hidden = rangeField.value !== 'between';
    this.#isFollowing = isFollowing;
    this.#submit();
  }

  /** Asks again. */
  async #search(): Promise<void> {
    this.#questions.drop();
    followButton.setAttribute('aria-pressed', String(this.#isFollowing));
    olderButton.hidden = true;
    olderButton.disabled = false;
    const { project = '' } = this.#settings;
    if (project === '') {
      this.#list.clear();
      bar.hidden = true;
      await offerProjects(empty, 'Whose logs?', this.#ports, (chosen) => {
        projectField.value = chosen;
        this.#submit();
      });
      return;
    }
    const window = this.#window();
    const rows = await this.#ask(window);
    if (rows === null) {
      if (this.#isFollowing) this.#questions.later(FOLLOW_EVERY_MS, () => this.#search());
      return;
    }
    this.#list.clear();
    this.#list.addOlder(rows);
    olderButton.hidden = rows.length < ROW_LIMIT;
    this.#summarise();
    this.#sayNothingFound(window);
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

  #summarise(): void {
    const { entries, visibleCount } = this.#list;
    bar.hidden = entries.length === 0;
    if (entries.length === 0) {
      summary.textContent = '';
      return;
    }
    const oldest = timeText(entries.at(-1)!.row.timestamp).slice(0, 19);
    const span = `${counted(entries.length, 'entry', 'entries')} back to ${oldest} UTC`;
    summary.textContent =
      filterField.value.trim() === '' ? span : `${countText(visibleCount)} of ${span} match the filter`;
  }

  #sayNothingFound({ afterUs, untilUs }: TimeWindow): void {
    empty.hidden = this.#list.entries.length > 0;
    if (!empty.hidden) {
      const tier = tierField.selectedOptions[0]?.text ?? '';
      const bounds = afterUs === null && untilUs === null ? '' : ' in this time';
      sayInstead(
        empty,
        `No entries of ${visibleText(this.#settings.project)}${bounds}.`,
        `The tier ${tier} decides how far back they are kept; a longer time or another tier may have some.`,
      );
    }
  }
}
