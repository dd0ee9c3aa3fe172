/** Logs: the entries of a project in a window of time, newest first; older ones by asking on from the oldest shown. */

import type { Answer } from './api-client.js';
import { browserNowMs } from './clock.js';
import { element, found } from './dom.js';
import { EntryList } from './entry-list.js';
import { counted, countText, timeText } from './formats.js';
import type { LogRow } from './log-entry.js';
import { type Part, type PartPorts, UNREACHABLE } from './part.js';
import type { Settings } from './route.js';
import { fieldText, type TimeWindow, windowOf, windowParameters } from './time-range.js';

/** What one answer holds at most: the contract's limit of `logs.all`. */
const ROW_LIMIT = 100;
const FOLLOW_EVERY_MS = 2000;
/** While following, entries that come so late are still found. */
const FOLLOW_OVERLAP_US = 30_000_000;
const OFFERED_PROJECTS = 8;
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
  readonly #list = new EntryList(found('logs-entries', HTMLOListElement));
  #settings: Settings = DEFAULTS;
  #requests = new AbortController();
  #followTimer = 0;
  #isFollowing = false;

  constructor(ports: PartPorts) {
    this.#ports = ports;
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
    fromField.value = from;
    toField.value = to;
    betweenFields.hidden = range !== 'between';
    this.#isFollowing = follow !== '';
    void this.#search();
  }

  hide(): void {
    this.#requests.abort();
    window.clearTimeout(this.#followTimer);
  }

  /** A tier or range was chosen: shown at once, but for the range whose moments are still to be given. */
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

  /** Asks anew. */
  async #search(): Promise<void> {
    this.hide();
    this.#requests = new AbortController();
    followButton.setAttribute('aria-pressed', String(this.#isFollowing));
    olderButton.hidden = true;
    const { project = '' } = this.#settings;
    if (project === '') {
      this.#list.clear();
      bar.hidden = true;
      await this.#offerProjects();
      return;
    }
    const window = this.#window();
    const answer = await this.#ask(window);
    const rows = this.#rowsOf(answer);
    if (rows === null) return;
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
      rows = this.#rowsOf(await this.#ask({ ...window, untilUs }));
      if (rows === null) break;
      addedCount = this.#list.addOlder(rows);
      // As many entries as an answer holds are of this microsecond: what else is of it can't be had.
      untilUs -= 1;
    } while (addedCount === 0 && rows.length === ROW_LIMIT);
    olderButton.disabled = false;
    if (rows === null) return;
    olderButton.hidden = rows.length < ROW_LIMIT;
    this.#summarise();
  }

  #followOn(): void {
    if (!this.#isFollowing) return;
    this.#followTimer = window.setTimeout(() => void this.#newer(), FOLLOW_EVERY_MS);
  }

  async #newer(): Promise<void> {
    if (document.hidden) {
      this.#followOn();
      return;
    }
    const newest = this.#list.entries[0]?.row.timestamp;
    const bounds = this.#window();
    const sinceUs = newest === undefined ? bounds.afterUs : newest - FOLLOW_OVERLAP_US;
    const afterUs = sinceUs === null ? bounds.afterUs : Math.max(sinceUs, bounds.afterUs ?? sinceUs);
    const answer = await this.#ask({ ...bounds, afterUs });
    if (answer.kind === 'dropped') return;
    const rows = this.#rowsOf(answer);
    if (rows !== null) {
      const addedCount = this.#list.addNewer(rows);
      // Between these and what was shown there may be more than one answer holds.
      if (addedCount === ROW_LIMIT && this.#list.entries.length > ROW_LIMIT) {
        this.#list.clear();
        this.#list.addOlder(rows);
        olderButton.hidden = false;
      }
      this.#summarise();
      this.#sayNothingFound(bounds);
    }
    this.#followOn();
  }

  #window(): TimeWindow {
    return windowOf(this.#settings, browserNowMs());
  }

  #ask(window: TimeWindow): Promise<Answer<{ result: LogRow[] }>> {
    const { project = '', tier } = this.#settings;
    return this.#ports.client.get(
      'api/endpoints/query/logs.all',
      { project, project_tier: tier, ...windowParameters(window) },
      { signal: this.#requests.signal },
    );
  }

  /** null when there is no answer; then that is said, and what is shown stays. */
  #rowsOf(answer: Answer<{ result: LogRow[] }>): readonly LogRow[] | null {
    switch (answer.kind) {
      case 'answered':
        this.#ports.tellProblem(null);
        return answer.value.result;
      case 'refused':
        this.#ports.tellProblem(answer.message);
        return null;
      case 'unreachable':
        this.#ports.tellProblem(UNREACHABLE);
        return null;
      case 'dropped':
        return null;
    }
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
      empty.replaceChildren(
        element('p', { class: 'lead' }, `No entries of ${this.#settings.project}${bounds}.`),
        element(
          'p',
          {},
          `The tier ${tier} decides how far back they are kept; a longer time or another tier may have some.`,
        ),
      );
    }
  }

  async #offerProjects(): Promise<void> {
    empty.hidden = false;
    empty.replaceChildren(element('p', { class: 'lead' }, 'Whose logs?'));
    const projects = await this.#ports.projects();
    if (this.#settings.project !== undefined && this.#settings.project !== '') return;
    if (projects.length === 0) {
      empty.append(
        element('p', {}, 'There are no logs yet. Once some have come in, their projects are offered here.'),
      );
      return;
    }
    const choices = projects.slice(0, OFFERED_PROJECTS).map((project) => {
      const choice = element('button', { type: 'button', class: 'choice' }, project);
      choice.addEventListener('click', () => {
        projectField.value = project;
        this.#submit();
      });
      return choice;
    });
    empty.append(
      element('p', {}, 'Type a project above, or take one of these:'),
      element('div', { class: 'choices' }, ...choices),
    );
  }
}
