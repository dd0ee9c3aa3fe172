/** The service as it ships, life after life: on one directory and port, killed and started again. */

import { monotonicUs } from '../../src/system-clock.js';
import { type ChildService, MAIN, type Stage, startChildService } from '../child-service.js';
import { freePort } from '../kafka/broker/free-port.js';
import { Inspector } from './inspector.js';

/** Ctrl-C is for the soak, which ends the service in its own order. */
const OWN_GROUP = ['setsid'];
const INSPECTED = ['--inspect=127.0.0.1:0', MAIN];

export class Lives {
  readonly url: string;
  /** How many have begun. */
  count = 0;
  /** Changes whenever the service ends or is there. */
  turn = 0;
  isAway = true;
  readonly #settings: Record<string, string>;
  readonly #endedByItself: (error: Error) => void;
  #service: ChildService | null = null;
  #inspector: Inspector | null = null;
  #startedUs = 0;

  private constructor(port: number, settings: Record<string, string>, endedByItself: (error: Error) => void) {
    this.url = `http://127.0.0.1:${port}`;
    this.#settings = { ...settings, LOGRING_PORT: String(port) };
    this.#endedByItself = endedByItself;
  }

  static async create(
    settings: Record<string, string>,
    endedByItself: (error: Error) => void,
  ): Promise<Lives> {
    return new Lives(await freePort(), settings, endedByItself);
  }

  async begin(until: Stage): Promise<void> {
    const service = await startChildService(this.#settings, INSPECTED, OWN_GROUP, until);
    this.#service = service;
    this.#inspector = await Inspector.connect(service.output());
    this.#startedUs = monotonicUs();
    this.count += 1;
    this.turn += 1;
    this.isAway = false;
    void service.exited.then((code) => {
      if (this.#service === service)
        this.#endedByItself(new Error(`the service ended with ${code}:\n${service.output().slice(-5_000)}`));
    });
  }

  /** Returns the exit code. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null> {
    const service = this.#service;
    if (service === null) return null;
    this.isAway = true;
    this.turn += 1;
    this.#service = null;
    this.#inspector?.close();
    return await service.kill(signal);
  }

  get processId(): number {
    return this.#service?.processId ?? 0;
  }

  get ageSeconds(): number {
    return (monotonicUs() - this.#startedUs) / 1e6;
  }

  /** Rejects when the life ends meanwhile. */
  heapBytesAfterCollection(): Promise<number> {
    if (this.#inspector === null) return Promise.reject(new Error('the service has not begun'));
    return this.#inspector.heapBytesAfterCollection();
  }
}
