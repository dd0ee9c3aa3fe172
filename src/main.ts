#!/usr/bin/env node
/** The command line: runs what is asked for, and says in a sentence what an operator can mend. */

import { readFileSync } from 'node:fs';
import { SegmentError } from '../engine/segments.js';
import { ConfigError } from './config/config-error.js';
import { ListenError } from './http/server/server.js';
import { TlsError } from './http/server/tls-identity.js';
import { ImportError } from './import/import-error.js';
import type { ServeOption } from './serve-command.js';
import { DirectoryInUseError } from './store/directory/directory-lock.js';
import { StoreFormatError } from './store/directory/store-format.js';
import { StoreChangedError } from './store/directory/store-watch.js';
import { UnusableDirectoryError } from './store/directory/unusable-directory.js';
import { isSystemError } from './store/disk/system-errors.js';

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

const OPTIONS: readonly string[] = ['--help', '--version', '--print-config'];

/** Exit codes: 0 asked to stop, 1 failed, 2 wrong arguments or configuration. */
async function main(): Promise<void> {
  const [argument, ...rest] = process.argv.slice(2);
  if (argument !== undefined && Object.hasOwn(COMMANDS, argument)) {
    process.exitCode = await COMMANDS[argument](rest);
    return;
  }
  if (rest.length > 0 || (argument !== undefined && !OPTIONS.includes(argument))) {
    process.stderr.write(`logring: unknown argument: ${process.argv.slice(2).join(' ')} (see --help)\n`);
    process.exitCode = 2;
    return;
  }
  if (argument === '--version') {
    process.stdout.write(`${packageVersion()}\n`);
    return;
  }
  const { runServe } = await import('./serve-command.js');
  await runServe(argument as ServeOption | undefined, process.env, packageVersion());
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
