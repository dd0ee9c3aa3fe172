/** A few figures that sum up what is shown, large. */

import { element } from './dom.js';

export interface Tile {
  readonly name: string;
  readonly value: string;
  readonly note?: string;
  /** The CSS variable of the series that it is the sum of. */
  readonly color?: string;
}

export function showTiles(list: HTMLDListElement, tiles: readonly Tile[]): void {
  list.replaceChildren(
    ...tiles.map(({ name, value, note, color }) => {
      const term = element('dt', {}, name);
      if (color !== undefined) {
        const swatch = element('span', { class: 'swatch' });
        swatch.style.setProperty('background', `var(${color})`);
        term.prepend(swatch);
      }
      const noted = note === undefined ? [] : [' ', element('small', {}, note)];
      return element('div', {}, term, element('dd', {}, value, ...noted));
    }),
  );
}
