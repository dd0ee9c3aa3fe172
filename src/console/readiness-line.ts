/** Above every part: why answers are missing, or how old they are, as `/readyz` says it. */

import type { ApiClient, Health } from './api-client.js';
import { element, found } from './dom.js';

const REFRESH_MS = 3000;

const line = found('readiness', HTMLDivElement);

export class ReadinessLine {
  readonly #client: ApiClient;
  #shown = '';

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
    if (health === null) return [];
    this.#show(health);
    return health.reasons;
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
