/** What a part says in the place of what it would show. */

import { element, visibleText } from './dom.js';

export function sayInstead(place: HTMLElement, lead: string, ...more: readonly string[]): void {
  place.hidden = false;
  place.replaceChildren(element('p', { class: 'lead' }, lead), ...more.map((line) => element('p', {}, line)));
}

/** The server's reason why it does not answer the question, and never will. */
export function sayRefused(place: HTMLElement, reason: string): void {
  place.hidden = false;
  place.replaceChildren(
    element('p', { class: 'lead' }, 'Logring cannot answer this.'),
    element('p', { class: 'refusal', role: 'alert' }, visibleText(reason)),
  );
}
