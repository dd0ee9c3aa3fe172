/**
 * The service as main.ts starts it, but on a disk that kills the process at a named point:
 *
 *   node killed-service.js 'after commit 3'      dies after its third commit; with 'never 1' it is the service as it ships
 */

import { setEnvironmentData } from 'node:worker_threads';
import { pino } from 'pino';
import { readConfig } from '../../src/config.js';
import { startService } from '../../src/service/service.js';
import { SYSTEM_PARTS } from '../../src/store/store-back-ends.js';
import { startStorageWorker } from '../../src/store/thread/storage-link.js';
import { monotonicUs, wallClockUs } from '../../src/system-clock.js';
import { Killer, killingDisk, killingStorage } from './fail-point.js';

/** So small that there are checkpoints all the time. */
const CHECKPOINT_LEAST_BYTES = 20_000;

const order = process.argv[2];
const killer = new Killer(order);
const worker = new URL('./killed-storage-worker.js', import.meta.url);
setEnvironmentData('order', order);

const config = readConfig(process.env);
const logger = pino({ name: 'logring', level: config.LOG_LEVEL });
const die = (error: unknown): never => {
  logger.fatal({ err: error }, 'the killed service ends by itself');
  logger.flush();
  process.exit(1);
};
process.on('uncaughtException', die);
process.on('unhandledRejection', die);

const service = await startService(
  config,
  {
    logger,
    clock: { nowUs: wallClockUs, monotonicUs },
    version: 'killed',
    onFatal: die,
    announceKey: () => die(new Error('tests set their keys')),
  },
  {
    ...SYSTEM_PARTS,
    disk: killingDisk(SYSTEM_PARTS.disk, killer),
    checkpointLeastBytes: CHECKPOINT_LEAST_BYTES,
    startStorage: killingStorage((listener) => startStorageWorker(listener, worker), killer),
  },
);
process.on('SIGTERM', () => service.stop().then(() => process.exit(0), die));
