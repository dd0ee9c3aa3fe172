/**
 * One client that means no good: requests whose answers are counted by status, and sockets that misbehave.
 */

import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { TEST_KEY } from '../child-service.js';
import type { Body } from './bodies.js';

/** How often what happened, by attack and status, or by attack and the error's code where no answer came. */
export type Outcomes = Map<string, number>;

const TIMEOUT_MS = 120_000;

export class AttackClient {
  readonly outcomes: Outcomes;
  /** Answers that a service must not give: one of each kind. */
  readonly problems: Map<string, string>;
  readonly #url: URL;
  readonly #agent = new Agent({ keepAlive: true });

  constructor(url: string, outcomes: Outcomes, problems: Map<string, string>) {
    this.#url = new URL(url);
    this.outcomes = outcomes;
    this.problems = problems;
  }

  /** Resolves when the answer is there or none will be. */
  post(attack: string, { source, bytes, isPacked }: Body): Promise<void> {
    return this.#ask(attack, 'POST', `/api/logs?source_name=${source}`, bytes, {
      'Content-Type': 'application/x-ndjson',
      'Content-Length': String(bytes.length),
      ...(isPacked ? { 'Content-Encoding': 'gzip' } : {}),
    });
  }

  get(attack: string, endpoint: string, parameters: Readonly<Record<string, string>>): Promise<void> {
    return this.#ask(attack, 'GET', pathOf(endpoint, parameters), null, {});
  }

  /** Asks and does not read; after so long the connection is torn. */
  async readSlowly(endpoint: string, parameters: Readonly<Record<string, string>>, holdMs: number) {
    const socket = this.#socket();
    socket.pause();
    socket.write(this.#head('GET', pathOf(endpoint, parameters), ''));
    await delay(holdMs);
    socket.destroy();
  }

  /** Promises a body and goes in the middle of it. */
  async breakOff({ source, bytes }: Body): Promise<void> {
    const socket = this.#socket();
    socket.write(
      this.#head('POST', `/api/logs?source_name=${source}`, `Content-Length: ${bytes.length}\r\n`),
    );
    socket.write(bytes.subarray(0, bytes.length / 2));
    await delay(200);
    socket.destroy();
  }

  /** Connections that say nothing, or half a head. */
  async idle(count: number, holdMs: number): Promise<void> {
    const sockets = Array.from({ length: count }, () => this.#socket());
    for (const socket of sockets.slice(0, count / 2)) socket.write('GET /api/endpoints/query/logs.all?pro');
    await delay(holdMs);
    for (const socket of sockets) socket.destroy();
  }

  close(): void {
    this.#agent.destroy();
  }

  #ask(
    attack: string,
    method: string,
    path: string,
    body: Buffer | null,
    headers: Record<string, string>,
  ): Promise<void> {
    return new Promise((resolve) => {
      const fail = (error: NodeJS.ErrnoException) => {
        this.#count(`${attack} ${error.code ?? error.message}`);
        resolve();
      };
      const asked = request(
        new URL(path, this.#url),
        { method, agent: this.#agent, timeout: TIMEOUT_MS, headers: { 'X-API-KEY': TEST_KEY, ...headers } },
        (response) => {
          const { statusCode: status = 0 } = response;
          const isAllowed =
            status === 200 ||
            (status >= 400 && status < 500) ||
            (status === 503 && response.headers['retry-after'] !== undefined);
          let text = '';
          response.on('data', (piece: Buffer) => {
            if (!isAllowed) text += piece.toString();
          });
          response.once('error', fail);
          response.once('end', () => {
            this.#count(`${attack} ${status}`);
            if (!isAllowed) this.problems.set(`${attack} ${status}`, text.slice(0, 500));
            resolve();
          });
        },
      );
      asked.once('timeout', () => asked.destroy(new Error('no answer in time')));
      asked.once('error', fail);
      asked.end(body);
    });
  }

  #count(outcome: string): void {
    this.outcomes.set(outcome, (this.outcomes.get(outcome) ?? 0) + 1);
  }

  #socket(): Socket {
    const socket = connect(Number(this.#url.port), this.#url.hostname);
    socket.on('error', (error: NodeJS.ErrnoException) => this.#count(`socket ${error.code}`));
    return socket;
  }

  #head(method: string, path: string, headers: string): string {
    return `${method} ${path} HTTP/1.1\r\nHost: ${this.#url.host}\r\nX-API-KEY: ${TEST_KEY}\r\n${headers}\r\n`;
  }
}

function pathOf(endpoint: string, parameters: Readonly<Record<string, string>>): string {
  return `/api/endpoints/query/${endpoint}?${new URLSearchParams(parameters)}`;
}
