/**
 * Looks through LMDB's data file before LMDB may map it: LMDB checks nothing, so a damaged page would end the
 * process or give wrong values. A store whose tables are not whole is not opened; `logring check` says what
 * is wrong with it.
 */

import { closeSync, existsSync, fsyncSync, openSync, readdirSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { SegmentError } from '../../engine/segments.js';
import { checkValue } from './checked-value.js';
import { removeFile } from './disk.js';
import { surveyLmdb } from './lmdb-survey.js';
import { isReadableFormat, storeFormatError } from './store-format.js';

export const TABLE_FILE = 'store.lmdb';
/**
 * LMDB's own lock file: readers and mutexes, which mean nothing to the only process that holds the directory.
 */
export const TABLE_LOCK_FILE = 'store.lmdb-lock';
/**
 * Stands in every directory that has been a store, so that one without its tables is not taken for a new one.
 */
export const MARKER_FILE = 'logring-store';
export const ROW_FILES_FOLDER = 'files';

export const TABLES = ['dead-letters', 'dropped', 'files', 'log', 'meta', 'segments'];
export const FORMAT_KEY = 'format';

const MARKER_TEXT = 'This directory is a store of Logring. logring check says whether it is whole.\n';

/**
 * What is wrong with the tables, one phrase each. Throws a StoreFormatError for a store of another version.
 */
export function tableProblems(path: string): string[] {
  const problems: string[] = [];
  let format: string | null = null;
  let entryCount = 0;
  const survey = surveyLmdb(path, (table, key, value) => {
    entryCount += 1;
    if (table === 'meta' && key === FORMAT_KEY) {
      format = Buffer.from(value).toString();
      return true;
    }
    const problem = valueProblem(key, value);
    if (problem !== null) problems.push(`table ${table}, ${problem}`);
    return problem === null;
  });
  if (format !== null && isFormat(format) && !isReadableFormat(format)) throw storeFormatError(path, format);
  problems.unshift(...survey.problems);
  for (const table of survey.tables) {
    if (!TABLES.includes(table)) problems.push(`there is an unknown table ${JSON.stringify(table)}`);
  }
  // A process that is killed in the moment when it makes the store leaves one without anything in it.
  if ((format === null || !isReadableFormat(format)) && entryCount > 0)
    problems.push('the format of the store is not written in it');
  return problems;
}

/** Whether a stored value is not what was stored under its key. */
export function valueProblem(key: string, value: Uint8Array): string | null {
  try {
    checkValue('segment', key, value);
    return null;
  } catch (error) {
    if (!(error instanceof SegmentError)) throw error;
    return error.message;
  }
}

/**
 * To be called, by the holder of the directory's lock, before LMDB opens the tables. Throws a SegmentError
 * when they are damaged or missing, a StoreFormatError for those of another version.
 */
export function examineTables(directory: string): void {
  const path = join(directory, TABLE_FILE);
  const byteCount = statSync(path, { throwIfNoEntry: false })?.size;
  if (byteCount === undefined || byteCount === 0) {
    if (existsSync(join(directory, MARKER_FILE)) || hasRowFiles(directory))
      throw lostTables(path, byteCount === undefined ? 'missing' : 'empty');
    removeFile(path);
  } else {
    const problems = tableProblems(path);
    if (problems.length > 0) throw withRemedy(damagedTables(problems), directory);
  }
  removeFile(join(directory, TABLE_LOCK_FILE));
}

/** Notes that the directory is a store; durable when it returns. To be called once its tables exist. */
export function markStore(directory: string): void {
  const path = join(directory, MARKER_FILE);
  if (existsSync(path)) return;
  const descriptor = openSync(path, 'w');
  try {
    writeSync(descriptor, MARKER_TEXT);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Damage that keeps a store from being opened: the message says what an operator can do. */
export class UnusableStoreError extends SegmentError {}

/** Without the tables there is nothing to repair. */
export function lostTables(path: string, how: 'missing' | 'empty'): UnusableStoreError {
  return new UnusableStoreError(
    `${path} is ${how}, and without it nothing in the directory can be read: bring it back from a copy of the whole directory, or begin with an empty LOGRING_DATA_DIR; the log is then read again as far as it goes back`,
  );
}

function damagedTables(problems: readonly string[]): SegmentError {
  const more = problems.length > 1 ? `, and ${problems.length - 1} more` : '';
  return new SegmentError(`the tables are damaged: ${problems[0]}${more}`);
}

/** The same error, and for damage what an operator can do about it. */
export function withRemedy(error: unknown, directory: string): Error {
  if (!(error instanceof SegmentError)) return error instanceof Error ? error : new Error(String(error));
  if (error instanceof UnusableStoreError) return error;
  return new UnusableStoreError(
    `the store in ${directory} can't be used: ${error.message}. Nothing was changed. \`logring check ${directory}\` says what is wrong, \`logring check --repair ${directory}\` drops what is damaged and keeps everything else`,
  );
}

function hasRowFiles(directory: string): boolean {
  const root = join(directory, ROW_FILES_FOLDER);
  return (
    existsSync(root) &&
    readdirSync(root, { recursive: true, withFileTypes: true }).some((entry) => entry.isFile())
  );
}

function isFormat(text: string): boolean {
  return /^[1-9][0-9]{0,5}$/.test(text);
}
