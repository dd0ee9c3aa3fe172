/** A card's heading and its table, whose rows are replaced with every reading of the figures. */

import { element } from './dom.js';

export class DataTable {
  readonly #columnCount: number;
  readonly #body = element('tbody', {});
  readonly #nothing: string;

  /**
   * `nothing` is what the table says when it has no rows. The first column is text, the others are figures.
   */
  constructor(place: HTMLElement, title: string, columns: readonly string[], nothing: string) {
    this.#columnCount = columns.length;
    this.#nothing = nothing;
    const heads = columns.map((column) => element('th', { scope: 'col' }, column));
    const table = element(
      'table',
      {},
      element('caption', { class: 'unseen' }, title),
      element('thead', {}, element('tr', {}, ...heads)),
      this.#body,
    );
    const scroller = element(
      'div',
      { class: 'scroller', role: 'region', 'aria-label': title, tabindex: '0' },
      table,
    );
    place.append(element('h2', {}, title), scroller);
  }

  show(rows: readonly (readonly string[])[]): void {
    const lines = rows.map(([head, ...cells]) =>
      element(
        'tr',
        {},
        element('th', { scope: 'row' }, head),
        ...cells.map((cell) => element('td', {}, cell)),
      ),
    );
    const none = element(
      'tr',
      {},
      element('td', { class: 'none', colspan: String(this.#columnCount) }, this.#nothing),
    );
    this.#body.replaceChildren(...(lines.length === 0 ? [none] : lines));
  }
}
