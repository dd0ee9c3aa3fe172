/** For how long members have read nothing of partitions that they keep, while records of all come. */

import { entryOf } from '../../engine/entry-of.js';
import type { Members } from './members.js';

const POLL_MS = 50;

interface Reading {
  nextOffset: number;
  sinceMs: number;
  mostMs: number;
}

export class ReadingPauses {
  /** By partition, of each member; those among them that it read when it was last looked at are `kept`. */
  readonly #readings = new Map<string, Map<string, Reading>>();
  readonly #kept = new Map<string, ReadonlySet<string>>();
  readonly #timers: NodeJS.Timeout[];

  /** Looks at these members again and again until it is stopped. */
  constructor(members: Members, names: readonly string[]) {
    this.#timers = names.map((name) => {
      let isAsking = false;
      return setInterval(async () => {
        if (isAsking) return;
        isAsking = true;
        // One that does not answer is looked at again.
        const positions = await members.positions(name).catch(() => null);
        isAsking = false;
        if (positions !== null) this.#note(name, positions);
      }, POLL_MS);
    });
  }

  /** The longest since it was last asked, milliseconds; and begins again. */
  take(): number {
    let most = 0;
    for (const [name, readings] of this.#readings)
      for (const [partition, reading] of readings) {
        if (this.#kept.get(name)!.has(partition)) most = Math.max(most, reading.mostMs);
        reading.mostMs = 0;
      }
    return most;
  }

  stop(): void {
    for (const timer of this.#timers) clearInterval(timer);
  }

  #note(name: string, positions: ReadonlyMap<string, number>): void {
    const nowMs = Date.now();
    const readings = entryOf(this.#readings, name, () => new Map<string, Reading>());
    this.#kept.set(name, new Set(positions.keys()));
    for (const [partition, nextOffset] of positions) {
      const reading = entryOf(readings, partition, () => ({ nextOffset, sinceMs: nowMs, mostMs: 0 }));
      reading.mostMs = Math.max(reading.mostMs, nowMs - reading.sinceMs);
      if (nextOffset !== reading.nextOffset) Object.assign(reading, { nextOffset, sinceMs: nowMs });
    }
  }
}
