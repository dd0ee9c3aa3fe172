/** The entries that are shown, newest first, and which of them the filter lets through. */

import { keyOf, LogEntry, type LogRow } from './log-entry.js';

/** Following goes on for hours: the list keeps so many entries then. */
const FOLLOWED_ENTRIES = 500;

export class EntryList {
  readonly #list: HTMLElement;
  readonly #actionsOf: (row: LogRow) => HTMLElement;
  #entries: LogEntry[] = [];
  #filter = '';
  #isTrimmed = false;

  /** `actionsOf` makes what an opened entry offers. */
  constructor(list: HTMLElement, actionsOf: (row: LogRow) => HTMLElement) {
    this.#list = list;
    this.#actionsOf = actionsOf;
    list.addEventListener('keydown', (event) => this.#move(event));
  }

  get entries(): readonly LogEntry[] {
    return this.#entries;
  }

  /** Those that the filter lets through. */
  get visible(): readonly LogEntry[] {
    return this.#entries.filter(({ element }) => !element.hidden);
  }

  /** Whether the oldest had to go to make room for newer ones. */
  get isTrimmed(): boolean {
    return this.#isTrimmed;
  }

  clear(): void {
    this.#isTrimmed = false;
    this.#entries = [];
    this.#list.replaceChildren();
  }

  /**
   * Rows newest first, all of them older than those that are shown, or at the time of the last one. Returns
   * how many were new.
   */
  addOlder(rows: readonly LogRow[]): number {
    const added = this.#unknown(rows).map((row) => new LogEntry(row, this.#actionsOf));
    this.#applyFilter(added);
    this.#entries.push(...added);
    this.#list.append(...added.map((entry) => entry.element));
    return added.length;
  }

  /**
   * Rows newest first, as they are now; each goes to its place by time, and is marked until the next ones come.
   * Returns how many were new.
   */
  addNewer(rows: readonly LogRow[]): number {
    const unknown = this.#unknown(rows);
    if (unknown.length > 0) for (const { element } of this.#entries) element.classList.remove('fresh');
    for (const row of unknown.toReversed()) {
      const entry = new LogEntry(row, this.#actionsOf);
      entry.element.classList.add('fresh');
      const at = this.#entries.findIndex((shown) => shown.row.timestamp <= row.timestamp);
      const index = at < 0 ? this.#entries.length : at;
      this.#applyFilter([entry]);
      this.#list.insertBefore(entry.element, this.#entries[index]?.element ?? null);
      this.#entries.splice(index, 0, entry);
    }
    const trimmed = this.#entries.splice(FOLLOWED_ENTRIES);
    for (const { element } of trimmed) element.remove();
    this.#isTrimmed ||= trimmed.length > 0;
    return unknown.length;
  }

  /** Opens the entry of that time and id, in the middle of the window. Returns whether there is one. */
  open(timestampUs: number, id: string): boolean {
    const sought = this.#entries.find(({ row }) => row.timestamp === timestampUs && row.id === id);
    sought?.seek();
    return sought !== undefined;
  }

  filter(text: string): void {
    this.#filter = text.trim().toLowerCase();
    this.#applyFilter(this.#entries);
  }

  /** The rows without those that are shown. Two entries may be alike: then each counts. */
  #unknown(rows: readonly LogRow[]): LogRow[] {
    const known = new Map<string, number>();
    for (const { row } of this.#entries) known.set(keyOf(row), (known.get(keyOf(row)) ?? 0) + 1);
    return rows.filter((row) => {
      const count = known.get(keyOf(row)) ?? 0;
      known.set(keyOf(row), count - 1);
      return count <= 0;
    });
  }

  #applyFilter(entries: readonly LogEntry[]): void {
    for (const entry of entries) entry.element.hidden = this.#filter !== '' && !entry.matches(this.#filter);
  }

  /** Arrow keys go from line to line. */
  #move(event: KeyboardEvent): void {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0;
    if (step === 0 || !(event.target instanceof HTMLButtonElement)) return;
    const { target } = event;
    if (!target.classList.contains('entry-line')) return;
    const { visible } = this;
    const next = visible[visible.findIndex(({ element }) => element.contains(target)) + step];
    if (next === undefined) return;
    event.preventDefault();
    next.focus();
  }
}
