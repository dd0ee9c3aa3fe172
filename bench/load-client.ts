/**
 * A client process that asks a service over plain sockets. Closed loop: each connection keeps so many
 * requests on their way. Open loop: requests leave when they are due, whatever comes back, and a latency
 * counts from then, so that a stall is seen in all requests it delays; as with any usual client they leave
 * one at a time on a connection, and wait here while all are busy.
 *
 * Started by a bench as a child process; takes a LoadOrder, then perhaps 'stop', and returns a LoadReport, by
 * messages.
 */

import { monitorEventLoopDelay } from 'node:perf_hooks';
import { monotonicUs } from '../src/system-clock.js';
import { fail, LoadConnection, requestOf } from './load-connection.js';

export interface LoadOrder {
  readonly port: number;
  readonly key: string;
  /** Asked in turn. */
  readonly paths: readonly string[];
  /** How long to ask; null: until told to stop, in an open loop only. */
  readonly seconds: number | null;
  /** Requests a second of an open loop, or null for a closed one. */
  readonly rate: number | null;
  readonly connections: number;
  /** Of a closed loop: requests on their way, on each connection. */
  readonly pipelined: number;
  /**
   * Of an open loop: looks at the clock instead of sleeping before a request is due, at the cost of a core.
   */
  readonly isPrecise: boolean;
}

export interface LoadReport {
  /** From when it was due (open loop) or sent (closed loop) to the last byte; for each of the paths. */
  readonly latenciesUs: readonly (readonly number[])[];
  /** Answers other than 200. A request without an answer ends the client. */
  readonly failures: number;
  readonly elapsedUs: number;
  /** Of one answer, the last, with its head. */
  readonly answerBytes: number;
  /** The longest that this process didn't come to a new turn: no latency is better known. */
  readonly heldUpMs: number;
}

const SPIN_US = 1200;

/** Its monitor looks every so many milliseconds, and reports the longest time between two looks. */
const MONITOR_TICK_MS = 1;

class Run {
  readonly #order: LoadOrder;
  readonly #requests: readonly string[];
  readonly #connections: readonly LoadConnection[];
  readonly #latenciesUs: number[][];
  #failures = 0;
  #answerBytes = 0;
  #askedCount = 0;
  /** No request leaves that is due after it. */
  #endUs = 0;
  #isStopped = false;
  /** Of an open loop: when the requests were due that wait for a connection. */
  #waitingUs: number[] = [];

  constructor(order: LoadOrder) {
    this.#order = order;
    this.#requests = order.paths.map((path) => requestOf(path, order.key));
    this.#latenciesUs = order.paths.map(() => []);
    this.#connections = Array.from({ length: order.connections }, () => this.#connect());
  }

  async run(): Promise<LoadReport> {
    const { rate, seconds } = this.#order;
    const heldUp = monitorEventLoopDelay({ resolution: MONITOR_TICK_MS });
    heldUp.enable();
    const startUs = monotonicUs();
    this.#endUs = startUs + (seconds ?? Number.POSITIVE_INFINITY) * 1e6;
    if (rate === null) this.#fill();
    else await this.#askAtRate(startUs, rate, Math.floor(rate * (seconds ?? Number.POSITIVE_INFINITY)));
    while ((seconds !== null && monotonicUs() < this.#endUs) || this.#pendingCount() > 0)
      await new Promise((resolve) => setTimeout(resolve, 1));
    const elapsedUs = monotonicUs() - startUs;
    for (const connection of this.#connections) connection.close();
    return {
      latenciesUs: this.#latenciesUs,
      failures: this.#failures,
      elapsedUs,
      answerBytes: this.#answerBytes,
      heldUpMs: heldUp.max / 1e6 - MONITOR_TICK_MS,
    };
  }

  stop(): void {
    this.#isStopped = true;
  }

  #connect(): LoadConnection {
    const connection: LoadConnection = new LoadConnection(
      this.#order.port,
      ({ pathIndex, sinceUs }, isOk, byteCount) => {
        const nowUs = monotonicUs();
        this.#latenciesUs[pathIndex].push(nowUs - sinceUs);
        this.#answerBytes = byteCount;
        if (!isOk) this.#failures += 1;
        const sinceNextUs = this.#order.rate === null ? nowUs : this.#waitingUs.shift();
        if (sinceNextUs !== undefined && sinceNextUs < this.#endUs) this.#ask(connection, sinceNextUs);
      },
    );
    return connection;
  }

  #ask(connection: LoadConnection, sinceUs: number): void {
    const pathIndex = this.#askedCount % this.#requests.length;
    this.#askedCount += 1;
    connection.ask({ pathIndex, sinceUs }, this.#requests[pathIndex]);
  }

  #fill(): void {
    for (const connection of this.#connections)
      for (let i = 0; i < this.#order.pipelined; i++) this.#ask(connection, monotonicUs());
  }

  async #askAtRate(startUs: number, rate: number, total: number): Promise<void> {
    let count = 0;
    const dueUs = () => startUs + (count * 1e6) / rate;
    while (count < total && !this.#isStopped) {
      for (; count < total && dueUs() <= monotonicUs(); count++) {
        const idle = this.#idle();
        if (idle === null) this.#waitingUs.push(dueUs());
        else this.#ask(idle, dueUs());
      }
      // A timer may come a millisecond late.
      const isNear = this.#order.isPrecise && dueUs() - monotonicUs() <= SPIN_US;
      await new Promise((resolve) => (isNear ? setImmediate(resolve) : setTimeout(resolve, 1)));
    }
  }

  #idle(): LoadConnection | null {
    const connections = this.#connections;
    for (let i = 0; i < connections.length; i++) {
      const connection = connections[(this.#askedCount + i) % connections.length];
      if (connection.pendingCount === 0) return connection;
    }
    return null;
  }

  #pendingCount(): number {
    return this.#connections.reduce((sum, { pendingCount }) => sum + pendingCount, 0);
  }
}

let run: Run | null = null;

// The process that started it is gone: nobody reads a report.
process.once('disconnect', () => process.exit(1));

process.on('message', (message: LoadOrder | 'stop') => {
  if (message === 'stop') {
    run?.stop();
    return;
  }
  run = new Run(message);
  run.run().then((report) => process.send?.(report, () => process.exit(0)), fail);
});
