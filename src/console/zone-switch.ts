/** The button in the header that changes between UTC and local time; this tab remembers it. */

import { found } from './dom.js';
import { showsLocalTime, showTimesBy, zoneName } from './time-zone.js';

const ZONE_ITEM = 'logring-zone';
const button = found('zone', HTMLButtonElement);

/** `changed` shows what is shown once more. */
export function beginZoneSwitch(changed: () => void): void {
  if (sessionStorage.getItem(ZONE_ITEM) === 'local') showTimesBy('local');
  button.hidden = false;
  name();
  button.addEventListener('click', () => {
    const clock = showsLocalTime() ? 'UTC' : 'local';
    sessionStorage.setItem(ZONE_ITEM, clock);
    showTimesBy(clock);
    name();
    changed();
  });
}

function name(): void {
  button.textContent = showsLocalTime() ? 'Local' : 'UTC';
  button.title = showsLocalTime() ? 'Show times in UTC' : 'Show times in local time';
  for (const place of document.querySelectorAll('[data-zone]')) place.textContent = zoneName();
}
