/**
 * The service, and a finer look at its event loop than its own, which would cost every service 3 % of a core:
 * at SIGUSR2 it says for how long the loop was held up at most since it was last asked.
 */

import { monitorEventLoopDelay } from 'node:perf_hooks';

/** What is reported is the longest time between two looks. */
const LOOK_EVERY_MS = 1;

const delay = monitorEventLoopDelay({ resolution: LOOK_EVERY_MS });
delay.enable();
process.on('SIGUSR2', () => {
  process.stderr.write(`held up ${delay.max / 1e6 - LOOK_EVERY_MS}\n`);
  delay.reset();
});

await import('../src/main.js');
