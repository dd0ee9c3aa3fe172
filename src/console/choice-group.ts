/** A row of radio buttons that looks like one switch. */

import { element } from './dom.js';

/** By their values. */
type Choices = Readonly<Record<string, { readonly label: string }>>;

export class ChoiceGroup {
  readonly #radios: readonly HTMLInputElement[];

  /** Fills a fieldset that has its legend; `chosen` is called when the reader changes the choice. */
  constructor(fieldset: HTMLFieldSetElement, choices: Choices, chosen: () => void) {
    this.#radios = Object.keys(choices).map((value) =>
      element('input', { type: 'radio', name: fieldset.id, value }),
    );
    const labels = Object.values(choices).map(({ label }, i) =>
      element('label', {}, this.#radios[i], element('span', {}, label)),
    );
    fieldset.append(element('div', { class: 'switch' }, ...labels));
    fieldset.addEventListener('change', chosen);
  }

  get value(): string {
    return this.#radios.find(({ checked }) => checked)?.value ?? '';
  }

  set value(value: string) {
    for (const radio of this.#radios) radio.checked = radio.value === value;
  }
}
