/** What a part shows while no project is chosen: some to take. */

import { element } from './dom.js';
import type { PartPorts } from './part.js';

const OFFERED_COUNT = 8;

/** Fills the place and shows it; `take` is called with the project that was chosen. */
export async function offerProjects(
  place: HTMLElement,
  question: string,
  { projects, lacking }: PartPorts,
  take: (project: string) => void,
): Promise<void> {
  const lead = element('p', { class: 'lead' }, question);
  place.hidden = false;
  place.replaceChildren(lead);
  const known = await projects();
  const reasons = known.length === 0 ? await lacking() : [];
  // Something else may be shown there by now.
  if (lead.parentElement !== place) return;
  if (known.length === 0) {
    place.append(
      element(
        'p',
        {},
        reasons.length === 0
          ? 'There are no logs yet. Once some have come in, their projects are offered here.'
          : `Which projects there are is not known: ${reasons.join('; ')}.`,
      ),
    );
    return;
  }
  const choices = known.slice(0, OFFERED_COUNT).map((project) => {
    const choice = element('button', { type: 'button', class: 'choice' }, project);
    choice.addEventListener('click', () => take(project));
    return choice;
  });
  place.append(
    element('p', {}, 'Type a project above, or take one of these:'),
    element('div', { class: 'choices' }, ...choices),
  );
}
