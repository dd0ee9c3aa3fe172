/** What the views hold, added up over their shards. Counted once a scrape. */

import { VIEWS } from '../../engine/views.js';
import type { Shards } from '../service/shards.js';
import { type ViewFigures, viewFigures } from '../service/view-figures.js';
import type { Readings } from './readings.js';

export function readViews(readings: Readings, shards: Shards): void {
  let counted: readonly ViewFigures[] = [];
  readings.before(() => {
    counted = viewFigures(shards);
  });
  for (const { kind } of VIEWS) {
    const labels = kind.label === null ? [] : [kind.label];
    kind.figures.forEach(({ name, help }, i) => {
      readings.read(`logring_${name}`, help, labels, (add) => {
        const lines = counted.find((one) => one.kind === kind)?.lines ?? [];
        for (const { label, values } of lines) {
          const value = values[i];
          if (value !== null) add(kind.label === null ? {} : { [kind.label]: label! }, value);
        }
      });
    });
  }
}
