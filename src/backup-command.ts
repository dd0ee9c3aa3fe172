/** `logring backup`: copies a store, of a running service or at rest, as one commit left it. */

import { createHash } from 'node:crypto';
import { existsSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { US_PER_MS } from '../engine/time.js';
import { ConfigError } from './config/config-error.js';
import { type Config, readConfig } from './config.js';
import { SNAPSHOT_PATH } from './http/snapshot-api.js';
import { SERVICE_OPTIONS_HELP, ServiceClient } from './service-client.js';
import {
  BACKUP_FILE,
  type Backup,
  isBackup,
  type ListedFile,
  pathInBackup,
  readBytes,
  SNAPSHOT_FOLDER,
  type Snapshot,
  snapshot,
} from './store/directory/backup.js';
import {
  DirectoryInUseError,
  lockDirectory,
  UnwritableDirectoryError,
} from './store/directory/directory-lock.js';
import { hasMarker, storeIdOf } from './store/directory/store-marker.js';
import { SYSTEM_DISK } from './store/disk/disk.js';
import { writeWhole } from './store/disk/file-appender.js';
import { Folders } from './store/disk/folders.js';
import { META_TABLE, TABLES_FOLDER } from './store/journal/journals.js';
import { Store } from './store/store.js';
import { wallClockUs } from './system-clock.js';

const HELP = `Usage: logring backup [--url URL] [--key KEY] DIR

Copies the store in LOGRING_DATA_DIR, as one commit left it, to DIR, which must be empty or missing. A running service
goes on meanwhile; with one at rest, none can be started until it is copied. DIR, or a copy of it, is restored by
starting a service with it as its LOGRING_DATA_DIR: that checks every byte first.

${SERVICE_OPTIONS_HELP}

Exit codes: 0 all is copied and on the disk; 1 it is not; 2 wrong arguments or configuration.
`;

/** What an idle store is opened with. */
const CACHE_BYTES = 1024 * 1024;

interface Order {
  readonly directory: string;
  readonly url?: string;
  readonly key?: string;
}

/** The exit code. */
export async function runBackup(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  if (args.includes('--help')) {
    process.stdout.write(HELP);
    return 0;
  }
  const order = parseOrder(args);
  const config = readConfig(environment);
  try {
    const { fileCount, byteCount } = await backUp(order, config);
    process.stdout.write(`copied ${fileCount} files, ${byteCount} bytes, to ${order.directory}\n`);
    return 0;
  } catch (error) {
    if (error instanceof ConfigError) throw error;
    process.stderr.write(`logring backup: ${(error as Error).message}\n`);
    return 1;
  }
}

interface Copied {
  readonly fileCount: number;
  readonly byteCount: number;
}

async function backUp(order: Order, config: Config): Promise<Copied> {
  const from = resolve(config.DATA_DIR);
  const to = resolve(order.directory);
  if (isBackup(SYSTEM_DISK, from)) throw new Error(`${from} is a backup itself: copy it`);
  if (!hasMarker(SYSTEM_DISK, from) && !existsSync(join(from, TABLES_FOLDER, META_TABLE)))
    throw new Error(`there is no store in ${from}: LOGRING_DATA_DIR says where it is`);
  if (`${to}/`.startsWith(`${realpathSync(from)}/`) || `${to}/`.startsWith(`${from}/`))
    throw new Error(`${to} is in the directory that is to be backed up`);
  if (existsSync(to) && readdirSync(to).length > 0) throw new Error(`${to} is not empty`);
  const madeAt = new Date(wallClockUs() / US_PER_MS).toISOString();
  return await withSnapshot(order, config, async ({ store, format, files }) => {
    const listed = await copyFiles(join(from, SNAPSHOT_FOLDER), to, files);
    const backup: Backup = { format, store, madeAt, files: listed };
    writeFile(to, BACKUP_FILE, Buffer.from(`${JSON.stringify(backup, null, 1)}\n`));
    return { fileCount: files.length, byteCount: files.reduce((sum, file) => sum + file.byteCount, 0) };
  });
}

/** Of the service that has the store, or of one at rest. */
async function withSnapshot<Result>(
  order: Order,
  config: Config,
  copy: (snapshot: Snapshot) => Promise<Result>,
): Promise<Result> {
  const store = order.url === undefined ? await openAtRest(config.DATA_DIR) : null;
  if (store !== null) {
    try {
      const made = await store.snapshot();
      try {
        return await copy(made);
      } finally {
        await store.releaseSnapshot(made.id);
      }
    } finally {
      await store.close();
    }
  }
  const service = new ServiceClient(order, config);
  const made = snapshot.parse(await service.ask('POST', SNAPSHOT_PATH));
  try {
    if (made.store !== storeIdOf(SYSTEM_DISK, config.DATA_DIR))
      throw new Error(`the service has another store than ${config.DATA_DIR}, which LOGRING_DATA_DIR says`);
    return await copy(made);
  } finally {
    // Where that fails, the next backup or start does it.
    await service.ask('DELETE', `${SNAPSHOT_PATH}?id=${made.id}`).catch(() => undefined);
  }
}

/** null when it is in use. What is made of it would belong to who opens it. */
async function openAtRest(directory: string): Promise<Store | null> {
  try {
    await (await lockDirectory(directory)).release();
    const { uid } = statSync(directory);
    if (process.getuid !== undefined && uid !== process.getuid())
      throw new Error(`${directory} belongs to another user (${uid}): run this as that user`);
    return await Store.open(directory, CACHE_BYTES);
  } catch (error) {
    if (error instanceof DirectoryInUseError || error instanceof UnwritableDirectoryError) return null;
    throw error;
  }
}

/** All of it is on the disk when it resolves. What makes it a store goes by another name: see backup.ts. */
async function copyFiles(links: string, directory: string, files: Snapshot['files']): Promise<ListedFile[]> {
  const stop = stopSignal();
  const folders = new Folders(SYSTEM_DISK);
  folders.make(directory);
  const listed: ListedFile[] = [];
  for (const file of files) {
    await nextTurn();
    if (stop.aborted) throw new Error('stopped');
    listed.push(copyFile(join(links, file.name), directory, file, folders));
  }
  folders.sync();
  return listed;
}

/** A snapshot is not left behind. */
function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => stop.abort());
  return stop.signal;
}

function copyFile(
  from: string,
  directory: string,
  { path, byteCount }: Snapshot['files'][number],
  folders: Folders,
): ListedFile {
  if (SYSTEM_DISK.byteCount(from) === null)
    throw new Error(
      'the links to its files are gone: another backup was begun, or the service started again; run it again, into an empty directory',
    );
  const to = join(directory, pathInBackup(path));
  folders.make(dirname(to));
  const hash = createHash('sha256');
  const descriptor = SYSTEM_DISK.open(to, 'wx+');
  try {
    readBytes(SYSTEM_DISK, from, byteCount, (bytes) => {
      hash.update(bytes);
      writeWhole(SYSTEM_DISK, descriptor, bytes);
    });
    SYSTEM_DISK.sync(descriptor);
  } finally {
    SYSTEM_DISK.close(descriptor);
  }
  return { path, byteCount, sha256: hash.digest('hex') };
}

/** Durable, with its name, when it returns; half of it never has that name. */
function writeFile(directory: string, name: string, bytes: Uint8Array): void {
  const unfinished = join(directory, `${name}.new`);
  const descriptor = SYSTEM_DISK.open(unfinished, 'wx+');
  try {
    writeWhole(SYSTEM_DISK, descriptor, bytes);
    SYSTEM_DISK.sync(descriptor);
  } finally {
    SYSTEM_DISK.close(descriptor);
  }
  SYSTEM_DISK.rename(unfinished, join(directory, name));
  SYSTEM_DISK.syncFolder(directory);
}

function parseOrder(args: readonly string[]): Order {
  const option = { type: 'string' } as const;
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { url: option, key: option },
    });
    if (positionals.length !== 1) throw new Error('one directory is needed');
    return { directory: positionals[0], ...values };
  } catch (error) {
    throw new ConfigError([`${(error as Error).message} (see logring backup --help)`]);
  }
}
