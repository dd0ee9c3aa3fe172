/** A card's heading and its table, whose rows are replaced with every reading of the figures. */

import { element } from './dom.js';

export class DataTable {
  readonly #columns: readonly string[];
  readonly #body = element('tbody', { role: 'rowgroup' });
  readonly #nothing: string;

  /**
   * `nothing` is what the table says when it has no rows, unless show is given another reason. The first column is text, the others are figures.
   */
  constructor(place: HTMLElement, title: string, columns: readonly string[], nothing: string) {
    this.#columns = columns;
    this.#nothing = nothing;
    const heads = columns.map((column) => element('th', { scope: 'col', role: 'columnheader' }, column));
    // Roles are spelt out for phones, where the style lays rows out otherwise and so takes them away.
    const table = element(
      'table',
      { role: 'table' },
      element('caption', { class: 'unseen' }, title),
      element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...heads)),
      this.#body,
    );
    const scroller = element(
      'div',
      { class: 'scroller', role: 'region', 'aria-label': title, tabindex: '0' },
      table,
    );
    place.append(element('h2', {}, title), scroller);
  }

  /** Neither rows nor why there are none, until they are known. */
  clear(): void {
    this.#body.replaceChildren();
  }

  show(rows: readonly (readonly (string | HTMLElement)[])[], nothing = this.#nothing): void {
    const lines = rows.map(([head, ...cells]) =>
      element(
        'tr',
        { role: 'row' },
        element('th', { scope: 'row', role: 'rowheader' }, head),
        ...cells.map((cell, i) => element('td', { role: 'cell', 'data-column': this.#columns[i + 1] }, cell)),
      ),
    );
    const none = element(
      'tr',
      { role: 'row' },
      element('td', { role: 'cell', class: 'none', colspan: String(this.#columns.length) }, nothing),
    );
    this.#body.replaceChildren(...(lines.length === 0 ? [none] : lines));
  }
}
