/** What can be done with an opened entry: copied, linked to, asked for by curl, seen among its neighbours. */

import { copyText } from './clipboard.js';
import { element } from './dom.js';
import { writtenJson } from './json-tree.js';
import type { LogRow } from './log-entry.js';
import { hashOf, type Settings } from './route.js';
import { windowParameters } from './time-range.js';

/** `around` is called with the settings that show the entry among what came before and after it. */
export function entryActions(
  row: LogRow,
  { project = '', tier = '' }: Settings,
  around: (settings: Settings) => void,
): HTMLElement {
  const moment = { project, tier, range: 'around', at: String(row.timestamp), entry: row.id };
  const said = element('span', { class: 'hint', role: 'status' });
  const action = (name: string, act: () => void) => {
    const button = element('button', { type: 'button', class: 'small' }, name);
    button.addEventListener('click', act);
    return button;
  };
  const copy = (name: string, what: string, text: () => string) =>
    action(name, async () => {
      said.textContent = (await copyText(text())) ? `${what} copied.` : 'The browser does not let us copy.';
    });
  return element(
    'div',
    { class: 'entry-actions' },
    copy('Copy JSON', 'Entry', () => writtenJson(row)),
    copy('Copy link', 'Link', () => new URL(hashOf({ part: 'logs', settings: moment }), location.href).href),
    copy('Copy as curl', 'Command', () => curlCommand(row, project, tier)),
    action('Logs around this moment', () => around(moment)),
    said,
  );
}

/** Asks for all rows of the entry's microsecond. In single quotes, which nothing in the address ends. */
function curlCommand({ timestamp }: LogRow, project: string, tier: string): string {
  const address = new URL('api/endpoints/query/logs.all', location.href);
  address.search = new URLSearchParams({
    project,
    project_tier: tier,
    ...windowParameters({ afterUs: timestamp - 1, untilUs: timestamp }),
  }).toString();
  return `curl -H "X-API-KEY: $LOGRING_API_KEY" '${address.href.replaceAll("'", '%27')}'`;
}
