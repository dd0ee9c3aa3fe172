/** Keeps a member of the group alive while a batch of it takes its time. */

import type { KafkaClock } from '../clock.js';

/**
 * Does `work` and beats every `intervalMs` until it has settled, which is what this settles as; one beat at a
 * time. `beat` must not reject.
 */
export async function beatDuring(
  clock: KafkaClock,
  intervalMs: number,
  beat: () => Promise<void>,
  work: () => Promise<void>,
): Promise<void> {
  let isDone = false;
  let cancel: () => void = () => undefined;
  const schedule = () => {
    cancel = clock.after(intervalMs, () => {
      void beat().then(() => {
        if (!isDone) schedule();
      });
    });
  };
  schedule();
  try {
    await work();
  } finally {
    isDone = true;
    cancel();
  }
}
