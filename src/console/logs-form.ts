/** The form above the list of logs: which project, tier and time. */

import { browserNowMs } from './clock.js';
import { found } from './dom.js';
import { MomentField } from './moment-field.js';
import type { Settings } from './route.js';
import { utcText } from './time-zone.js';

/** How far back each tier keeps entries. */
export const TIER_DAYS: Readonly<Record<string, number>> = { FREE: 1, PRO: 7, PAYG: 90, ENTERPRISE: 90 };
export const DEFAULTS: Settings = { tier: 'ENTERPRISE', range: 'all' };

const form = found('logs-form', HTMLFormElement);
const projectField = found('logs-project', HTMLInputElement);
const tierField = found('logs-tier', HTMLSelectElement);
const rangeField = found('logs-range', HTMLSelectElement);
const betweenFields = found('logs-between', HTMLDivElement);
const fromField = new MomentField(found('logs-from', HTMLInputElement));
const toField = new MomentField(found('logs-to', HTMLInputElement));

export class LogsForm {
  readonly #submit: () => void;
  /** The settings of a moment: no field shows them. */
  #moment: Settings = {};

  /** `submit` is called when the reader has chosen something. */
  constructor(submit: () => void) {
    this.#submit = submit;
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      submit();
    });
    for (const field of [tierField, rangeField]) field.addEventListener('change', () => this.#choose());
  }

  set project(project: string) {
    projectField.value = project;
  }

  get tierText(): string {
    return tierField.selectedOptions[0]?.text ?? '';
  }

  /** A moment, or a time between two, is no time to follow. */
  get canFollow(): boolean {
    return rangeField.value !== 'between' && rangeField.value !== 'around';
  }

  set range(range: string) {
    rangeField.value = range;
    // The address may say what can't be chosen.
    if (rangeField.value === '') rangeField.value = DEFAULTS.range;
    betweenFields.hidden = rangeField.value !== 'between';
  }

  show({ project = '', tier, range, from = '', to = '', at = '', entry = '' }: Settings): void {
    projectField.value = project;
    tierField.value = tier;
    if (tierField.value === '') tierField.value = DEFAULTS.tier;
    this.range = range;
    fromField.utc = from;
    toField.utc = to;
    this.#moment = { at, entry };
  }

  settings(): Settings {
    const range = rangeField.value;
    return {
      project: projectField.value.trim(),
      tier: tierField.value,
      range,
      ...(range === 'between' ? { from: fromField.utc, to: toField.utc } : {}),
      ...(range === 'around' ? this.#moment : {}),
    };
  }

  /** Shown at once, except for the range whose moments are still to be given. */
  #choose(): void {
    this.range = rangeField.value;
    if (rangeField.value === 'between') {
      if (!fromField.isEmpty || !toField.isEmpty) return;
      const nowMs = browserNowMs();
      fromField.utc = utcText(nowMs - 3_600_000);
      toField.utc = utcText(nowMs);
    } else if (projectField.value !== '') this.#submit();
  }
}
