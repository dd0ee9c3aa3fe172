/**
 * In the header of every part: whether Logring is ready and how old the answers are; below it, why, as
 * `/readyz` says it.
 */

import type { ApiClient, Health } from './api-client.js';
import { element, found } from './dom.js';
import { spanText } from './formats.js';

const REFRESH_MS = 3000;

const state = found('state', HTMLSpanElement);
const line = found('readiness', HTMLDivElement);

export class ReadinessLine {
  readonly #client: ApiClient;
  /** How old the last answers of the part that is shown were, by path; 0: fresh. */
  readonly #ages = new Map<string, number>();
  #shown = '';
  #health: Health | null = null;

  constructor(client: ApiClient) {
    this.#client = client;
  }

  /** From now on, for as long as the page is there. */
  begin(): void {
    void this.reasons();
    window.setInterval(() => {
      if (!document.hidden) void this.reasons();
    }, REFRESH_MS);
  }

  /** Why the service is not ready; empty when it is, or when it does not answer, which is said elsewhere. */
  async reasons(): Promise<readonly string[]> {
    const health = await this.#client.health();
    this.#health = health;
    this.#showState();
    if (health === null) return [];
    this.#show(health);
    return health.reasons;
  }

  tellAge(path: string, staleSeconds: number): void {
    this.#ages.set(path, staleSeconds);
    if (this.#health !== null) this.#showState();
  }

  /** Another part is shown. */
  forgetAges(): void {
    this.#ages.clear();
  }

  #showState(): void {
    const age = Math.max(0, ...this.#ages.values());
    const [tone, text] =
      this.#health === null
        ? ['bad', 'Not reachable']
        : this.#health.reasons.length > 0
          ? ['bad', 'Not ready']
          : age > 0
            ? ['odd', `Ready, answers ${spanText(1000 * age)} old`]
            : ['good', 'Ready'];
    state.hidden = false;
    state.className = `state ${tone}`;
    // Set again, it would be read out again.
    if (state.textContent !== text) state.textContent = text;
  }

  /** Only when it has changed: it is read out. */
  #show({ reasons, notes = [] }: Health): void {
    const text = JSON.stringify([reasons, notes]);
    if (text === this.#shown) return;
    this.#shown = text;
    const said = [...reasons, ...notes];
    line.hidden = said.length === 0;
    line.className = reasons.length === 0 ? 'readiness' : 'readiness bad';
    const lead = reasons.length === 0 ? 'Ready, but:' : 'Not ready:';
    line.replaceChildren(
      element('p', {}, lead),
      element('ul', {}, ...said.map((sentence) => element('li', {}, sentence))),
    );
  }
}
