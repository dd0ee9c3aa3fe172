/**
 * What a part asks the server: answers that were overtaken are dropped, what stands in the way is said in one
 * place.
 */

import type { Answer } from './api-client.js';
import type { PartPorts } from './part.js';

export const UNREACHABLE = 'Logring can’t be reached, so nothing new is shown.';

/** What the same question would be refused with again. */
export const LASTING_REFUSALS: ReadonlySet<number> = new Set([400, 403, 404]);

export type SettledAnswer<Value> = Exclude<Answer<Value>, { readonly kind: 'dropped' }>;
type Reply<Value> = Extract<Answer<Value>, { readonly kind: 'answered' }>;

export class Questions {
  readonly #ports: PartPorts;
  readonly #refused: ((reason: string) => void) | null;
  #open = new AbortController();
  #timer = 0;

  /**
   * `refused` says in the place of the answer why there won't be one; without it that is said above the part.
   */
  constructor(ports: PartPorts, refused: ((reason: string) => void) | null = null) {
    this.#ports = ports;
    this.#refused = refused;
  }

  /** Nobody waits any more for what was asked so far, nor for what was to be done later: neither goes on. */
  drop(): void {
    this.#open.abort();
    this.#open = new AbortController();
    window.clearTimeout(this.#timer);
  }

  /**
   * null when there is no answer: that is said to the reader. Never resolves when drop comes first, nor after
   * `refused`.
   */
  async ask<Value>(path: string, parameters: Readonly<Record<string, string>>): Promise<Reply<Value> | null> {
    const answer = await this.tryAsk<Value>(path, parameters);
    const isRefused =
      this.#refused !== null && answer.kind === 'refused' && LASTING_REFUSALS.has(answer.status);
    this.#ports.tellProblem(isRefused ? null : problemOf(answer));
    if (!isRefused) return answer.kind === 'answered' ? answer : null;
    this.#refused(answer.message);
    return new Promise(() => undefined);
  }

  /** The answer, whatever it is: nobody else is told. Never resolves when drop comes first. */
  async tryAsk<Value>(
    path: string,
    parameters: Readonly<Record<string, string>>,
  ): Promise<SettledAnswer<Value>> {
    const { signal } = this.#open;
    const answer: Answer<Value> = await this.#ports.client.get(path, parameters, signal);
    if (answer.kind === 'dropped' || signal.aborted) return new Promise(() => undefined);
    return answer;
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
