/**
 * A client process that asks a service over real sockets. Open loop: requests leave at a fixed rate whatever comes
 * back, and a latency counts from when its request was due, so that a stall is seen in all requests it delays. Closed
 * loop: so many connections ask as fast as they are answered.
 *
 * Started by bench/main.ts as a child process; takes a LoadOrder and answers with a LoadReport, by messages.
 */

import { Agent, request } from 'node:http';
import { monotonicUs } from '../src/system-clock.js';

export interface LoadOrder {
  readonly url: string;
  readonly key: string;
  /** Asked in turn. */
  readonly paths: readonly string[];
  readonly seconds: number;
  /** Requests a second of an open loop, or null for a closed one. */
  readonly rate: number | null;
  readonly connections: number;
}

export interface LoadReport {
  /** From when it was due (open loop) or sent (closed loop) to the last byte. */
  readonly latenciesUs: readonly number[];
  readonly failures: number;
  readonly bytes: number;
  readonly elapsedUs: number;
}

const SPIN_US = 1200;

class Run {
  readonly latenciesUs: number[] = [];
  failures = 0;
  bytes = 0;
  readonly #order: LoadOrder;
  readonly #agent: Agent;
  #asked = 0;

  constructor(order: LoadOrder) {
    this.#order = order;
    this.#agent = new Agent({ keepAlive: true, maxSockets: order.connections });
  }

  async run(): Promise<LoadReport> {
    const startUs = monotonicUs();
    const endUs = startUs + this.#order.seconds * 1e6;
    if (this.#order.rate === null) {
      await Promise.all(Array.from({ length: this.#order.connections }, () => this.#askUntil(endUs)));
    } else {
      await this.#askAtRate(startUs, this.#order.rate);
    }
    this.#agent.destroy();
    const { latenciesUs, failures, bytes } = this;
    return { latenciesUs, failures, bytes, elapsedUs: monotonicUs() - startUs };
  }

  async #askUntil(endUs: number): Promise<void> {
    while (monotonicUs() < endUs) await this.#ask(monotonicUs());
  }

  async #askAtRate(startUs: number, rate: number): Promise<void> {
    const total = Math.floor(rate * this.#order.seconds);
    const asks: Promise<void>[] = [];
    while (asks.length < total) {
      const due = Math.min(total, Math.floor(((monotonicUs() - startUs) * rate) / 1e6) + 1);
      while (asks.length < due) asks.push(this.#ask(startUs + (asks.length * 1e6) / rate));
      const waitUs = startUs + (asks.length * 1e6) / rate - monotonicUs();
      // A timer may come a millisecond late: the last of them is spent looking at the clock, the others asleep.
      await new Promise((resolve) => (waitUs > SPIN_US ? setTimeout(resolve, 1) : setImmediate(resolve)));
    }
    await Promise.all(asks);
  }

  #ask(dueUs: number): Promise<void> {
    const { url, key, paths } = this.#order;
    const path = paths[this.#asked++ % paths.length];
    return new Promise((resolve) => {
      const fail = () => {
        this.failures += 1;
        resolve();
      };
      const asked = request(
        `${url}${path}`,
        { agent: this.#agent, headers: { 'X-API-KEY': key } },
        (response) => {
          response.on('data', (piece: Buffer) => {
            this.bytes += piece.length;
          });
          response.once('error', fail);
          response.once('end', () => {
            if (response.statusCode !== 200) this.failures += 1;
            this.latenciesUs.push(monotonicUs() - dueUs);
            resolve();
          });
        },
      );
      asked.once('error', fail);
      asked.end();
    });
  }
}

process.once('message', (order: LoadOrder) => {
  new Run(order).run().then((report) => process.send?.(report, () => process.exit(0)));
});
