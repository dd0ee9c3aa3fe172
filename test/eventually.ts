/** Waiting for what a real broker or process does in its own time. */

import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 20;

/** Only what fails waits for so long: a busy machine, with several brokers on two cores, takes its time. */
const DEADLINE_MS = 120_000;

/** Waits until `check` holds; fails with its last error, or with what `describe` says, after `deadlineMs`. */
export async function eventually(
  check: () => boolean | Promise<boolean>,
  describe: () => unknown = () => '',
  deadlineMs = DEADLINE_MS,
): Promise<void> {
  const endMs = performance.now() + deadlineMs;
  while (!(await check())) {
    if (performance.now() > endMs)
      throw new Error(`not within ${deadlineMs} ms: ${JSON.stringify(describe())}`);
    await delay(POLL_MS);
  }
}

/** Resolves after so long, or as soon as the signal aborts. */
export async function pause(delayMs: number, signal: AbortSignal): Promise<void> {
  await delay(Math.max(0, delayMs), undefined, { signal }).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
}
