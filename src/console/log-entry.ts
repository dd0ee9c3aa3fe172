/** One log entry in the list: a line that says when and what, and all of it when it is opened. */

import { element, visibleText } from './dom.js';
import { isoText, timeText } from './formats.js';
import { jsonText, jsonTree } from './json-tree.js';

/** A row of `logs.all`. */
export interface LogRow {
  readonly id: string;
  /** µs since the epoch. */
  readonly timestamp: number;
  readonly event_message: string | null;
  readonly metadata: unknown;
}

/** Rows with one key are alike in all that tells entries apart; two entries may still share it. */
export function keyOf({ id, timestamp, event_message }: LogRow): string {
  return `${timestamp} ${id} ${event_message ?? ''}`;
}

let lastBodyNumber = 0;

export class LogEntry {
  readonly row: LogRow;
  readonly element: HTMLLIElement;
  readonly #button: HTMLButtonElement;
  readonly #actionsOf: (row: LogRow) => HTMLElement;
  #body: HTMLElement | null = null;
  #searchText: string | null = null;

  /** `actionsOf` makes what the opened entry offers. */
  constructor(row: LogRow, actionsOf: (row: LogRow) => HTMLElement) {
    this.row = row;
    this.#actionsOf = actionsOf;
    this.#button = element(
      'button',
      { type: 'button', class: 'entry-line', 'aria-expanded': 'false' },
      ...line(row),
    );
    this.#button.addEventListener('click', () => this.#toggle());
    this.element = element('li', { class: 'entry' }, this.#button);
  }

  /** Whether the text, in lower case, occurs in it. */
  matches(text: string): boolean {
    this.#searchText ??=
      `${this.row.id}\n${this.row.event_message ?? ''}\n${jsonText(this.row.metadata)}`.toLowerCase();
    return this.#searchText.includes(text);
  }

  focus(): void {
    this.#button.focus();
  }

  /** Opens it, in the middle of the window. */
  seek(): void {
    if (this.#body === null) this.#toggle();
    this.element.classList.add('sought');
    this.element.scrollIntoView({ block: 'center' });
    this.#button.focus({ preventScroll: true });
  }

  #toggle(): void {
    if (this.#body === null) {
      this.#body = body(this.row, this.#actionsOf(this.row));
      this.#button.setAttribute('aria-controls', this.#body.id);
      this.element.append(this.#body);
      this.#button.setAttribute('aria-expanded', 'true');
      return;
    }
    this.#body.hidden = !this.#body.hidden;
    this.#button.setAttribute('aria-expanded', String(!this.#body.hidden));
  }
}

function line({ timestamp, event_message, metadata }: LogRow): HTMLElement[] {
  const { status, method, target } = requestOf(metadata);
  const time = element('time', { datetime: isoText(timestamp) }, timeText(timestamp));
  const badge = element(
    'span',
    { class: `status ${statusClass(status)}` },
    status === null ? '–' : String(status),
  );
  const said = method === null || target === null ? (event_message ?? 'no message') : `${method} ${target}`;
  return [time, badge, element('span', { class: 'said' }, visibleText(said))];
}

function body({ id, timestamp, event_message, metadata }: LogRow, actions: HTMLElement): HTMLElement {
  const facts = element(
    'dl',
    { class: 'facts' },
    ...fact('Message', event_message === null ? 'none' : visibleText(event_message)),
    ...fact('Time', `${isoText(timestamp)}`),
    ...fact('Id', visibleText(id)),
  );
  lastBodyNumber += 1;
  return element(
    'div',
    { class: 'entry-body', id: `entry-${lastBodyNumber}` },
    actions,
    facts,
    jsonTree({ metadata }),
  );
}

function fact(name: string, text: string): HTMLElement[] {
  return [element('dt', {}, name), element('dd', {}, text)];
}

function statusClass(status: number | null): string {
  if (status === null || status < 100) return 'status-none';
  return status >= 500 ? 'status-bad' : status >= 400 ? 'status-odd' : 'status-good';
}

/** Of a request's metadata, in both of its forms: objects, or arrays of one object at every level. */
function requestOf(metadata: unknown): {
  status: number | null;
  method: string | null;
  target: string | null;
} {
  const request = memberOf(metadata, 'request');
  const status = memberOf(memberOf(metadata, 'response'), 'status_code');
  const method = memberOf(request, 'method');
  const path = memberOf(request, 'path');
  const search = memberOf(request, 'search');
  return {
    status: typeof status === 'number' ? status : null,
    method: typeof method === 'string' ? method : null,
    target: typeof path === 'string' ? `${path}${typeof search === 'string' ? search : ''}` : null,
  };
}

function memberOf(value: unknown, name: string): unknown {
  const one: unknown = Array.isArray(value) ? value[0] : value;
  return typeof one === 'object' && one !== null && Object.hasOwn(one, name)
    ? (one as Record<string, unknown>)[name]
    : undefined;
}
