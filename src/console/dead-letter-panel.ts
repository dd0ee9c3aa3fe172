/** What could not be used: how much of it for which reason, and what some of it looks like. */

import { DataTable } from './data-table.js';
import { element, visibleText } from './dom.js';
import { bytesText, countText } from './formats.js';
import type { DeadLetterSample, DeadLetterStatus } from './service-status.js';

export class DeadLetterPanel {
  readonly #counts: DataTable;
  readonly #samples = element('div', { class: 'samples' });
  #shown = '';

  constructor(place: HTMLElement) {
    this.#counts = new DataTable(
      place,
      'Dead letters',
      ['Reason and topic', 'Entries'],
      'None: all that came could be used.',
    );
    place.append(this.#samples);
  }

  show({ counts, samples }: DeadLetterStatus): void {
    this.#counts.show(counts.map(({ reason, topic, count }) => [`${reason}, ${topic}`, countText(count)]));
    // What the reader has opened stays open as long as it is the same.
    const text = JSON.stringify([counts.length > 0, samples]);
    if (text === this.#shown) return;
    this.#shown = text;
    if (counts.length > 0 && samples.length === 0)
      this.#samples.replaceChildren(
        element(
          'p',
          { class: 'hint' },
          'None of them came since Logring was started; what comes is shown here.',
        ),
      );
    else this.#samples.replaceChildren(...samples.map(sampleElement));
  }
}

function sampleElement({
  topic,
  partition,
  offset,
  index,
  reason,
  text,
  byteCount,
}: DeadLetterSample): HTMLElement {
  const origin = `${topic}/${partition}, offset ${offset}, element ${index}`;
  return element(
    'details',
    {},
    element('summary', {}, element('b', {}, reason), ` ${origin}, ${bytesText(byteCount)}`),
    element('pre', { tabindex: '0', 'aria-label': `Dead letter at ${origin}` }, visibleText(text)),
  );
}
