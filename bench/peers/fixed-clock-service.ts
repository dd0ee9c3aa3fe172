/**
 * A whole Logring as a process of its own, whose clock stands still at the time given in µs as its argument:
 * what it answers depends on its entries only. Settings come from the environment, and it says when it is
 * ready, as main.ts does.
 */

import { pino } from 'pino';
import { readConfig } from '../../src/config.js';
import { startService } from '../../src/service/service.js';
import { monotonicUs } from '../../src/system-clock.js';

const nowUs = Number(process.argv[2]);
const logger = pino();

const service = await startService(readConfig(process.env), {
  logger,
  clock: { nowUs: () => nowUs, monotonicUs },
  version: 'bench',
  onFatal: (error) => {
    logger.fatal(error);
    process.exit(1);
  },
  announceKey: () => undefined,
});

process.once('SIGTERM', () => {
  service.stop().then(() => process.exit(0));
});
