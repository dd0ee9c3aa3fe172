/**
 * What a part asks the server: answers that were overtaken are dropped, what stands in the way is said in one
 * place.
 */

import type { Answer } from './api-client.js';
import type { PartPorts } from './part.js';

export const UNREACHABLE = 'Logring can’t be reached. What is shown may be old.';

export interface Reply<Value> {
  readonly value: Value;
  /** When it was computed, ms since the epoch by the server's clock; null where the server doesn't say. */
  readonly computedMs: number | null;
}

export class Questions {
  readonly #ports: PartPorts;
  #open = new AbortController();
  #timer = 0;

  constructor(ports: PartPorts) {
    this.#ports = ports;
  }

  /** Nobody waits any more for what was asked so far, nor for what was to be done later: neither goes on. */
  drop(): void {
    this.#open.abort();
    this.#open = new AbortController();
    window.clearTimeout(this.#timer);
  }

  /** null when there is no answer: that is said to the reader. Never resolves when drop comes first. */
  async ask<Value>(
    path: string,
    parameters: Readonly<Record<string, string>>,
    fresh = false,
  ): Promise<Reply<Value> | null> {
    const { signal } = this.#open;
    const answer: Answer<Value> = await this.#ports.client.get(path, parameters, { signal, fresh });
    if (answer.kind === 'dropped' || signal.aborted) return new Promise(() => undefined);
    this.#ports.tellProblem(problemOf(answer));
    return answer.kind === 'answered' ? answer : null;
  }

  /** Does it after a while, and then only while somebody looks; not at all when drop comes first. */
  later(waitMs: number, task: () => Promise<void>): void {
    window.clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => {
      if (document.hidden) this.later(waitMs, task);
      else void task();
    }, waitMs);
  }
}

function problemOf(answer: Answer<unknown>): string | null {
  if (answer.kind === 'unreachable') return UNREACHABLE;
  return answer.kind === 'refused' ? answer.message : null;
}
