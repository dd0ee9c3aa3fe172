/**
 * A client process that asks a service over real sockets. Open loop: requests leave at a fixed rate whatever
 * comes back, and a latency counts from when its request was due, so that a stall is seen in all requests it
 * delays. Closed loop: so many connections ask as fast as they are answered.
 *
 * Started by a bench as a child process; takes a LoadOrder, then perhaps 'stop', and returns a LoadReport, by
 * messages.
 */

import { Agent, request } from 'node:http';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { monotonicUs } from '../src/system-clock.js';

export interface LoadOrder {
  readonly url: string;
  readonly key: string;
  /** Asked in turn. */
  readonly paths: readonly string[];
  /** How long to ask; null: until told to stop, in an open loop only. */
  readonly seconds: number | null;
  /** Requests a second of an open loop, or null for a closed one. */
  readonly rate: number | null;
  readonly connections: number;
}

export interface LoadReport {
  /** From when it was due (open loop) or sent (closed loop) to the last byte; for each of the paths. */
  readonly latenciesUs: readonly (readonly number[])[];
  /** Requests without an answer, and answers other than 200. */
  readonly failures: number;
  readonly bytes: number;
  readonly elapsedUs: number;
  /** The longest that this process didn't come to a new turn: no latency is better known. */
  readonly heldUpMs: number;
}

const SPIN_US = 1200;

/** Its monitor looks every so many milliseconds, and reports the longest time between two looks. */
const MONITOR_TICK_MS = 1;

class Run {
  readonly latenciesUs: number[][];
  failures = 0;
  bytes = 0;
  readonly #order: LoadOrder;
  readonly #agent: Agent;
  #asked = 0;
  #stopped = false;

  constructor(order: LoadOrder) {
    this.#order = order;
    this.latenciesUs = order.paths.map(() => []);
    this.#agent = new Agent({ keepAlive: true, maxSockets: order.connections });
  }

  async run(): Promise<LoadReport> {
    const heldUp = monitorEventLoopDelay({ resolution: MONITOR_TICK_MS });
    heldUp.enable();
    const startUs = monotonicUs();
    const seconds = this.#order.seconds ?? Number.POSITIVE_INFINITY;
    const endUs = startUs + seconds * 1e6;
    if (this.#order.rate === null) {
      await Promise.all(Array.from({ length: this.#order.connections }, () => this.#askUntil(endUs)));
    } else {
      await this.#askAtRate(startUs, this.#order.rate, Math.floor(this.#order.rate * seconds));
    }
    this.#agent.destroy();
    const { latenciesUs, failures, bytes } = this;
    return {
      latenciesUs,
      failures,
      bytes,
      elapsedUs: monotonicUs() - startUs,
      heldUpMs: heldUp.max / 1e6 - MONITOR_TICK_MS,
    };
  }

  stop(): void {
    this.#stopped = true;
  }

  async #askUntil(endUs: number): Promise<void> {
    while (monotonicUs() < endUs) await this.#ask(monotonicUs());
  }

  async #askAtRate(startUs: number, rate: number, total: number): Promise<void> {
    const asks: Promise<void>[] = [];
    while (asks.length < total && !this.#stopped) {
      const due = Math.min(total, Math.floor(((monotonicUs() - startUs) * rate) / 1e6) + 1);
      while (asks.length < due) asks.push(this.#ask(startUs + (asks.length * 1e6) / rate));
      const waitUs = startUs + (asks.length * 1e6) / rate - monotonicUs();
      // A timer may come a millisecond late: the last of them is spent looking at the clock, the others
      // asleep.
      await new Promise((resolve) => (waitUs > SPIN_US ? setTimeout(resolve, 1) : setImmediate(resolve)));
    }
    await Promise.all(asks);
  }

  #ask(dueUs: number): Promise<void> {
    const { url, key, paths } = this.#order;
    const pathIndex = this.#asked++ % paths.length;
    return new Promise((resolve) => {
      const fail = () => {
        this.failures += 1;
        resolve();
      };
      const asked = request(
        `${url}${paths[pathIndex]}`,
        { agent: this.#agent, headers: { 'X-API-KEY': key } },
        (response) => {
          response.on('data', (piece: Buffer) => {
            this.bytes += piece.length;
          });
          response.once('error', fail);
          response.once('end', () => {
            if (response.statusCode !== 200) this.failures += 1;
            this.latenciesUs[pathIndex].push(monotonicUs() - dueUs);
            resolve();
          });
        },
      );
      asked.once('error', fail);
      asked.end();
    });
  }
}

let run: Run | null = null;

// Whoever started it is gone: nobody reads a report.
process.once('disconnect', () => process.exit(1));

process.on('message', (message: LoadOrder | 'stop') => {
  if (message === 'stop') {
    run?.stop();
    return;
  }
  run = new Run(message);
  run.run().then((report) => process.send?.(report, () => process.exit(0)));
});
