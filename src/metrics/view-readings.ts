/** What the views hold, added up over their shards. Counted once a scrape. */

import type { ViewKind } from '../../engine/view.js';
import { VIEWS } from '../../engine/views.js';
import type { Shards } from '../service/shards.js';
import { type ViewFigures, viewFigures } from '../service/view-figures.js';
import type { Readings } from './readings.js';

export class ViewReadings {
  readonly #shards: Shards;
  #figures: readonly ViewFigures[] = [];

  constructor(readings: Readings, shards: Shards) {
    this.#shards = shards;
    for (const { kind } of VIEWS) this.#read(readings, kind);
  }

  /** To be called before a scrape. */
  count(): void {
    this.#figures = viewFigures(this.#shards);
  }

  #read(readings: Readings, kind: ViewKind): void {
    const labels = kind.label === null ? [] : [kind.label];
    kind.figures.forEach(({ name, help }, i) => {
      readings.read(`logring_${name}`, help, labels, (add) => {
        const lines = this.#figures.find((one) => one.kind === kind)?.lines ?? [];
        for (const { label, values } of lines) {
          const value = values[i];
          if (value !== null) add(kind.label === null ? {} : { [kind.label]: label! }, value);
        }
      });
    });
  }
}
