/** Keys for those who look often: what each does is in the dialog that `?` opens. */

import { found } from './dom.js';

const dialog = found('keys', HTMLDialogElement);
const openButton = found('keys-open', HTMLButtonElement);
const closeButton = found('keys-close', HTMLButtonElement);
const main = found('main', HTMLElement);

const ACTIONS: Readonly<Record<string, () => void>> = {
  '/': focusSearch,
  j: () => moveBy(1),
  k: () => moveBy(-1),
  '?': () => dialog.showModal(),
};

export function beginKeys(): void {
  openButton.hidden = false;
  openButton.addEventListener('click', () => dialog.showModal());
  closeButton.addEventListener('click', () => dialog.close());
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
    if (event.target instanceof Element && event.target.closest('input, select, textarea') !== null) return;
    if (!Object.hasOwn(ACTIONS, event.key)) return;
    event.preventDefault();
    ACTIONS[event.key]();
  });
}

/** The filter where there is something to filter, else the project. */
function focusSearch(): void {
  const fields = visible('input[type="search"]').concat(visible('.controls input:not([type="radio"])'));
  fields[0]?.focus();
}

function moveBy(step: 1 | -1): void {
  const lines = visible('.entry-line');
  const entry = document.activeElement?.closest('.entry') ?? null;
  const at = lines.findIndex((line) => entry?.contains(line));
  const next = at < 0 ? lines[0] : lines[at + step];
  next?.focus();
  next?.scrollIntoView({ block: 'nearest' });
}

function visible(selector: string): HTMLElement[] {
  return [...main.querySelectorAll<HTMLElement>(selector)].filter((one) => one.checkVisibility());
}
