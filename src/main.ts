#!/usr/bin/env node
/**
 * The command line: reads the configuration, starts the service, and ends the process in one orderly way or
 * one loud one.
 */

import { readFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { SegmentError } from '../engine/segments.js';
import { ConfigError, printConfig, readConfig, settingsHelp } from './config.js';
import { endText } from './end-text.js';
import { endpointNames } from './endpoints/list.js';
import { ListenError } from './http/server/server.js';
import { TlsError } from './http/server/tls-identity.js';
import { ImportError } from './import/import-error.js';
import { HELPER_NICENESS } from './limits.js';
import { watchParent } from './parent-watch.js';
import { heapGrowingPercent } from './service/memory-budget.js';
import { startService } from './service/service.js';
import { createLog } from './service-log.js';
import { DirectoryInUseError } from './store/directory/directory-lock.js';
import { StoreFormatError } from './store/directory/store-format.js';
import { StoreChangedError } from './store/directory/store-watch.js';
import { UnusableDirectoryError } from './store/directory/unusable-directory.js';
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

/** Each is loaded only when it is run; returns the exit code. */
const COMMANDS: Readonly<Record<string, (args: string[]) => Promise<number>>> = {
  demo: async (args) => (await import('./demo/demo-command.js')).runDemo(args, process.env, packageVersion()),
  import: async (args) =>
    (await import('./import/import-command.js')).runImport(args, process.env, packageVersion()),
  check: async (args) => (await import('./check/check-command.js')).runCheck(args, process.env),
  backup: async (args) => (await import('./backup-command.js')).runBackup(args, process.env),
  'dead-letters': async (args) =>
    (await import('./dead-letters-command.js')).runDeadLetters(args, process.env),
};

/** Exit codes: 0 asked to stop, 1 failed, 2 wrong arguments or configuration. */
async function main(): Promise<void> {
  const [argument, ...rest] = process.argv.slice(2);
  if (argument !== undefined && Object.hasOwn(COMMANDS, argument)) {
    process.exitCode = await COMMANDS[argument](rest);
    return;
  }
  if (
    rest.length > 0 ||
    (argument !== undefined && !['--help', '--version', '--print-config'].includes(argument))
  ) {
    process.stderr.write(`logring: unknown argument: ${process.argv.slice(2).join(' ')} (see --help)\n`);
    process.exitCode = 2;
    return;
  }
  if (argument === '--help') {
    process.stdout.write(HELP);
    return;
  }
  if (argument === '--version') {
    process.stdout.write(`${packageVersion()}\n`);
    return;
  }
  const config = readConfig(process.env);
  if (argument === '--print-config') {
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
    version: packageVersion(),
    onFatal: die,
    announceKey: (key) =>
      process.stderr.write(`LOGRING_API_KEYS is not set. This run's key, printed once: ${key}\n`),
  });
  await started;
  watchParent(process.env, () => stop('the parent ended'));
}

function packageVersion(): string {
  const manifest = readFileSync(new URL('../../package.json', import.meta.url), 'utf8');
  return (JSON.parse(manifest) as { version: string }).version;
}

/** Errors that an operator can mend: their message is a sentence that says how. */
const OPERATOR_ERRORS = [
  ConfigError,
  ImportError,
  DirectoryInUseError,
  UnusableDirectoryError,
  ListenError,
  TlsError,
  StoreChangedError,
  StoreFormatError,
  SegmentError,
];

main().catch((error: unknown) => {
  const isOperators = OPERATOR_ERRORS.some((kind) => error instanceof kind) || isSystemError(error);
  const text = error instanceof Error ? (isOperators ? error.message : error.stack) : String(error);
  process.stderr.write(`logring: ${text}\n`);
  process.exit(error instanceof ConfigError || error instanceof UnusableDirectoryError ? 2 : 1);
});

/** What the system refused: a port in use, a directory without permission. */
function isSystemError(error: unknown): boolean {
  return error instanceof Error && 'syscall' in error;
}
