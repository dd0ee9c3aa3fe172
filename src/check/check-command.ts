/** `logring check`: its arguments, what it says, and its exit code. */

import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { SegmentError } from '../../engine/segments.js';
import { ConfigError } from '../config/config-error.js';
import { readConfig } from '../config.js';
import {
  type BackupProblem,
  backupProblems,
  emptyList,
  isBackup,
  nameFiles,
  readBackup,
  removeList,
} from '../store/directory/backup.js';
import {
  DirectoryInUseError,
  type DirectoryLock,
  lockDirectory,
  UnwritableDirectoryError,
} from '../store/directory/directory-lock.js';
import { undoAdoptions } from '../store/directory/handed-over.js';
import { StoreFormatError } from '../store/directory/store-format.js';
import { UnusableStoreError } from '../store/directory/store-marker.js';
import { SYSTEM_DISK } from '../store/disk/disk.js';
import { journalFolders, journalOfFile } from '../store/journal/journals.js';
import { wallClockUs } from '../system-clock.js';
import type { Finding } from './findings.js';
import { BEFORE_REPAIR_FOLDER, repairStore } from './repair.js';
import { type CheckedResult, checkStore } from './store-check.js';

const CHECK_HELP = `Usage: logring check [--repair] [DIR]

Verifies the store in DIR [LOGRING_DATA_DIR], which no running service may hold: every frame, value and row of it, and
whether they agree; or a backup: whether it is what was copied. It says what is damaged and what a repair would do about it, and changes nothing.

  --repair   drops what is damaged, and says what: a journal that is damaged between two commits goes back to the first
             of them. Answers that lack something of it carry the header Logring-Incomplete until it would have
             expired. The journals as they were stay in the folder ${BEFORE_REPAIR_FOLDER}-1, -2, …, to be deleted
             when they are not needed any more. Make a copy of DIR first.

Exit codes: 0 the store is whole, or is so after the repair; 1 it is damaged; 2 wrong arguments or configuration;
3 it could not be checked: another process holds it, it does not exist, or another version wrote it.
`;

const DAMAGED_EXIT_CODE = 1;
const UNCHECKED_EXIT_CODE = 3;

/** The exit code. */
export async function runCheck(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  if (args.includes('--help')) {
    process.stdout.write(CHECK_HELP);
    return 0;
  }
  const { directory, isRepair } = parseOrder(args, environment);
  if (!existsSync(directory)) return unchecked(`there is no directory ${directory}`);
  let lock: DirectoryLock | null = null;
  try {
    lock = await lockFor(directory, isRepair);
    return isBackup(SYSTEM_DISK, directory)
      ? checkBackup(directory, isRepair)
      : checkAndRepairStore(directory, isRepair);
  } catch (error) {
    const isOperators =
      error instanceof DirectoryInUseError ||
      error instanceof UnwritableDirectoryError ||
      error instanceof StoreFormatError ||
      error instanceof SegmentError;
    if (!isOperators) throw error;
    return unchecked(error.message);
  } finally {
    await lock?.release();
  }
}

function parseOrder(args: readonly string[], environment: Readonly<Record<string, string | undefined>>) {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { repair: { type: 'boolean' } },
    });
    if (positionals.length > 1) throw new Error('one directory at a time');
    return {
      directory: positionals[0] ?? readConfig(environment).DATA_DIR,
      isRepair: values.repair === true,
    };
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    throw new ConfigError([`${(error as Error).message} (see logring check --help)`]);
  }
}

/** A directory that can't be written to is looked at without a lock: nobody else writes to it either. */
async function lockFor(directory: string, isRepair: boolean): Promise<DirectoryLock | null> {
  try {
    return await lockDirectory(directory);
  } catch (error) {
    if (!(error instanceof UnwritableDirectoryError) || isRepair) throw error;
    return null;
  }
}

/** A backup is told from what it lists; of one that is damaged a repair makes a store. */
function checkBackup(directory: string, isRepair: boolean): number {
  const { fileCount, problems } = lookAtBackup(directory);
  if (problems.length === 0) {
    say(`the backup in ${directory} is whole: ${fileCount} files`);
    return 0;
  }
  for (const { what } of problems) say(`damage: ${what}`);
  const hasForeign = fileCount !== null && problems.some(({ path }) => path === null);
  if (!isRepair || hasForeign) {
    const first = hasForeign ? 'after what does not belong to it was moved away, ' : '';
    say(
      `the backup in ${directory} is damaged: copy it again, into an empty directory; without another, ${first}\`logring check --repair ${directory}\` makes a store of what there is`,
    );
    return DAMAGED_EXIT_CODE;
  }
  nameFiles(SYSTEM_DISK, directory);
  // What is cut off of a journal looks like a commit that was never acknowledged.
  const unsure =
    fileCount === null
      ? journalFolders(SYSTEM_DISK, directory).map(({ name }) => name)
      : problems.flatMap(({ path }) => journalOfFile(path!) ?? []);
  emptyList(SYSTEM_DISK, directory);
  const code = checkAndRepairStore(directory, true, unsure);
  // Until then a start is refused.
  if (code === 0) removeList(SYSTEM_DISK, directory);
  return code;
}

/** `fileCount`: null where its list is lost. */
function lookAtBackup(directory: string): {
  readonly fileCount: number | null;
  readonly problems: readonly BackupProblem[];
} {
  try {
    const { files } = readBackup(SYSTEM_DISK, directory);
    return { fileCount: files.length, problems: [...backupProblems(SYSTEM_DISK, directory, files)] };
  } catch (error) {
    if (!(error instanceof UnusableStoreError)) throw error;
    return { fileCount: null, problems: [{ what: error.message, path: null }] };
  }
}

function checkAndRepairStore(directory: string, isRepair: boolean, unsure: Iterable<string> = []): number {
  // As a start would: of a copy that was being taken up what was there before counts.
  if (isRepair) undoAdoptions(SYSTEM_DISK, directory);
  const checked = checkStore(directory, wallClockUs(), unsure);
  tell(checked, isRepair ? '' : 'with --repair: ');
  const damage = checked.findings.filter(({ remedy }) => remedy !== null);
  if (damage.length === 0) {
    say(`the store in ${directory} is whole: ${checked.scopeCount} partitions, ${checked.fileCount} files`);
    return 0;
  }
  if (!isRepair) {
    say(
      `the store in ${directory} is damaged; \`logring check --repair ${directory}\` does what is said above`,
    );
    return DAMAGED_EXIT_CODE;
  }
  repairStore(checked.store, checked.findings);
  const after = checkStore(directory, wallClockUs());
  const left = after.findings.filter(({ remedy }) => remedy !== null);
  if (left.length === 0) {
    say(
      `the store in ${directory} is repaired; the journals as they were are in ${BEFORE_REPAIR_FOLDER}-1, or the last of that name`,
    );
    return 0;
  }
  say('after the repair there is still:');
  tell(after, '');
  return DAMAGED_EXIT_CODE;
}

function tell({ findings }: CheckedResult, prefix: string): void {
  for (const finding of findings) say(findingText(finding, prefix));
}

function findingText({ what, remedy }: Finding, prefix: string): string {
  return remedy === null ? `note: ${what}` : `damage: ${what}\n  ${prefix}${remedy}`;
}

function unchecked(message: string): number {
  process.stderr.write(`logring check: ${message}\n`);
  return UNCHECKED_EXIT_CODE;
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}
