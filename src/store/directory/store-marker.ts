/**
 * What a directory of a store says of itself: a file that stands in every one, so that a directory without its
 * journals is not taken for a new one, a store of another version is told by its format, and one that was
 * restored from a backup from what it is a backup of.
 */

import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { SegmentError } from '../../../engine/segments.js';
import type { Disk } from '../disk/disk.js';
import { writeWhole } from '../disk/file-appender.js';
import { readPiece } from '../journal/file-window.js';
import { isReadableFormat, STORE_FORMAT, storeFormatError } from './store-format.js';

export const MARKER_FILE = 'logring-store';
/** What stores had before format 6. */
export const OLD_TABLE_FILE = 'store.lmdb';

const LAST_OLD_FORMAT = 5;
const MARKER_BYTES = 300;
const ID_TEXT = /, id ([0-9a-f-]{36})\. /;

/**
 * Whether the directory has been a store of this format. Throws a StoreFormatError for one of another; a marker
 * that can't be read says nothing.
 */
export function hasMarker(disk: Disk, directory: string): boolean {
  const old = join(directory, OLD_TABLE_FILE);
  if (disk.byteCount(old) !== null) throw storeFormatError(old, String(LAST_OLD_FORMAT));
  const path = join(directory, MARKER_FILE);
  if (disk.byteCount(path) === null) return false;
  const format = /, format ([1-9][0-9]{0,5})[.,] /.exec(readText(disk, path))?.[1];
  if (format !== undefined && !isReadableFormat(format)) throw storeFormatError(path, format);
  return true;
}

/** What tells the store from every other; null for a marker that is missing or damaged. */
export function storeIdOf(disk: Disk, directory: string): string | null {
  const path = join(directory, MARKER_FILE);
  if (disk.byteCount(path) === null) return null;
  const text = readText(disk, path);
  const id = ID_TEXT.exec(text)?.[1];
  return id !== undefined && text === markerText(id) ? id : null;
}

/**
 * Makes the marker where it is missing or damaged, with a new id; returns the id. Its name is durable once the
 * directory is synced.
 */
export function writeMarker(disk: Disk, directory: string): string {
  const known = storeIdOf(disk, directory);
  if (known !== null) return known;
  const id = randomUUID();
  const path = join(directory, MARKER_FILE);
  disk.remove(path);
  const descriptor = disk.open(path, 'wx+');
  try {
    writeWhole(disk, descriptor, Buffer.from(markerText(id)));
    disk.sync(descriptor);
  } finally {
    disk.close(descriptor);
  }
  return id;
}

function markerText(id: string): string {
  const text = `This directory is a store of Logring, format ${STORE_FORMAT}, id ${id}. logring check says whether it is whole.`;
  return `${text} (${crc32(text).toString(16).padStart(8, '0')})\n`;
}

/** Damage that keeps a store from being opened: the message says what an operator can do. */
export class UnusableStoreError extends SegmentError {}

/** Without it there is nothing to repair. */
export function lostStore(directory: string, what: string): UnusableStoreError {
  return new UnusableStoreError(
    `${what} of the store in ${directory} is missing: bring it back from a copy of the whole directory, or begin with an empty LOGRING_DATA_DIR; the log is then read again as far as it goes back`,
  );
}

/** The same error, and for damage what an operator can do about it. */
export function withRemedy(error: unknown, directory: string): Error {
  if (!(error instanceof SegmentError)) return error instanceof Error ? error : new Error(String(error));
  if (error instanceof UnusableStoreError) return error;
  return new UnusableStoreError(
    `the store in ${directory} can't be used: ${error.message}. Nothing was changed. \`logring check ${directory}\` says what is wrong, \`logring check --repair ${directory}\` drops what is damaged, and says what`,
  );
}

function readText(disk: Disk, path: string): string {
  return Buffer.from(readPiece(disk, path, 0, MARKER_BYTES)).toString();
}
