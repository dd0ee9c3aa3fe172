/** The reader's clipboard. */

import { element } from './dom.js';

/** Returns whether the text is there. */
export async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Browsers have no such clipboard where the page came without TLS.
    return copySelection(text);
  }
}

function copySelection(text: string): boolean {
  const focused = document.activeElement;
  const area = element('textarea', { class: 'unseen', 'aria-label': 'What is copied' });
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  if (focused instanceof HTMLElement) focused.focus();
  return isCopied;
}
