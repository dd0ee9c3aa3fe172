/**
 * One process per data directory. The lock is a listening Unix socket in the directory: the kernel lets go of it when
 * its process dies, however it dies, so there is no stale lock to clear and no process id to mistake for another's.
 */

import { closeSync, openSync, rmSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';

export class DirectoryInUseError extends Error {
  override name = 'DirectoryInUseError';
}

/** The system does not let the directory be written to. */
export class UnwritableDirectoryError extends Error {
  override name = 'UnwritableDirectoryError';
}

const UNWRITABLE = ['EACCES', 'EPERM', 'EROFS'];

export interface DirectoryLock {
  release(): Promise<void>;
}

/** Throws a DirectoryInUseError when another process holds the directory, an UnwritableDirectoryError for one that is read-only. */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  try {
    return await lock(directory);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (!UNWRITABLE.includes(code)) throw error;
    throw new UnwritableDirectoryError(
      `the data directory ${directory} can't be written to (${code}): let this user write to it, or set LOGRING_DATA_DIR to another directory`,
    );
  }
}

async function lock(directory: string): Promise<DirectoryLock> {
  if (process.platform === 'win32')
    return hold(`\\\\.\\pipe\\${join(directory, 'lock').replaceAll('\\', '/')}`, directory);
  // On Linux the path goes through the open directory, as a socket's path may have only 107 bytes.
  const descriptor = process.platform === 'linux' ? openSync(directory, 'r') : null;
  const path = descriptor === null ? join(directory, 'lock') : `/proc/self/fd/${descriptor}/lock`;
  try {
    if (await isHeld(path)) throw inUse(directory);
    rmSync(join(directory, 'lock'), { force: true });
    const held = await hold(path, directory);
    return {
      release: async () => {
        await held.release();
        if (descriptor !== null) closeSync(descriptor);
      },
    };
  } catch (error) {
    if (descriptor !== null) closeSync(descriptor);
    throw error;
  }
}

function inUse(directory: string): DirectoryInUseError {
  return new DirectoryInUseError(
    `the data directory ${directory} is in use by another Logring process: stop that one, or set LOGRING_DATA_DIR to another directory`,
  );
}

function isHeld(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(path);
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}

function hold(path: string, directory: string): Promise<DirectoryLock> {
  return new Promise((resolve, reject) => {
    const server: Server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'EADDRINUSE' ? inUse(directory) : error);
    });
    server.listen(path, () => {
      server.unref();
      resolve({ release: () => new Promise((done) => server.close(() => done())) });
    });
  });
}
