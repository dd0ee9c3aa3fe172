/**
 * The time that the Kafka source runs on; the composition hands in the real one, tests may hand in another.
 */

import type { Latch } from '../latch.js';

export interface KafkaClock {
  /** Milliseconds from any fixed point; never steps back. */
  nowMs(): number;
  /** Runs `task` once, `delayMs` from now. The answer takes it back. */
  after(delayMs: number, task: () => void): () => void;
}

/** Resolves after `delayMs`, or early once `cancelled` opens. */
export function wait(clock: KafkaClock, delayMs: number, cancelled: Latch): Promise<void> {
  return new Promise((resolve) => {
    const cancel = clock.after(delayMs, () => {
      leave();
      resolve();
    });
    const leave = cancelled.whenOpen(() => {
      cancel();
      resolve();
    });
  });
}

/** Resolves to true with `work`, or to false after `limitMs`; `work` goes on. Rejects as `work` does. */
export function within(clock: KafkaClock, limitMs: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const cancel = clock.after(limitMs, () => resolve(false));
    work.then(
      () => {
        cancel();
        resolve(true);
      },
      (error: unknown) => {
        cancel();
        reject(error);
      },
    );
  });
}
