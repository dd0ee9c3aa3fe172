/** `logring` itself: starts the service, and ends the process in one orderly way or one loud one; and says what is set. */

import { setFlagsFromString } from 'node:v8';
import { printConfig, readConfig, settingsHelp } from './config.js';
import { endText } from './end-text.js';
import { endpointNames } from './endpoints/list.js';
import { HELPER_NICENESS } from './limits.js';
import { watchParent } from './parent-watch.js';
import { heapGrowingPercent } from './service/memory-budget.js';
import { startService } from './service/service.js';
import { createLog } from './service-log.js';
import { monotonicUs, wallClockUs } from './system-clock.js';
import { helpersGiveWay } from './thread-priority.js';

const HELP = `Usage: logring [--help | --version | --print-config]
       logring demo              shows it with made-up logs; see logring demo --help
       logring import [FILE…]    takes in past entries; see logring import --help
       logring check [DIR]       verifies a store, and repairs it; see logring check --help
       logring backup DIR        copies a store, also while it runs; see logring backup --help
       logring dead-letters      prints what could not be used; see logring dead-letters --help

Answers ${endpointNames()} over HTTP, from the logs
that it reads from Kafka or takes by POST /api/logs. Everything is set by environment variables; any of them may be given as a
file by NAME_FILE. In brackets: the default.

${settingsHelp()}
`;

/**
 * Signals so close are one: a terminal or a supervisor signals the whole group, and npm, which is in it,
 * passes it on too.
 */
const SAME_SIGNAL_US = 1_000_000;

export type ServeOption = '--help' | '--print-config';

/** Resolves once the service has started, or what was asked for is printed. */
export async function runServe(
  option: ServeOption | undefined,
  environment: NodeJS.ProcessEnv,
  version: string,
): Promise<void> {
  if (option === '--help') {
    process.stdout.write(HELP);
    return;
  }
  const config = readConfig(environment);
  if (option === '--print-config') {
    process.stdout.write(`${printConfig(config)}\n`);
    return;
  }

  helpersGiveWay(HELPER_NICENESS);
  setFlagsFromString(`--heap-growing-percent=${heapGrowingPercent(config)}`);
  const logger = await createLog(config);
  const die = (error: unknown): never => {
    logger.fatal({ err: error }, `logring ends: ${endText(error, config.DATA_DIR)}`);
    logger.flush();
    process.exit(1);
  };
  process.on('uncaughtException', die);
  process.on('unhandledRejection', die);

  let stoppingSinceUs: number | null = null;
  const stop = (signal: NodeJS.Signals | 'the parent ended') => {
    if (stoppingSinceUs !== null) {
      if (monotonicUs() - stoppingSinceUs > SAME_SIGNAL_US) process.exit(1);
      return;
    }
    stoppingSinceUs = monotonicUs();
    logger.info({ signal }, 'stopping');
    started
      .then((service) => service.stop())
      .then(() => {
        logger.info('stopped: everything is committed');
        logger.flush();
        process.exit(0);
      }, die);
  };
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  const started = startService(config, {
    logger,
    clock: { nowUs: wallClockUs, monotonicUs },
    version,
    onFatal: die,
    announceKey: (key) =>
      process.stderr.write(`LOGRING_API_KEYS is not set. This run's key, printed once: ${key}\n`),
  });
  await started;
  watchParent(environment, () => stop('the parent ended'));
}
