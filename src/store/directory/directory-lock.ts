/**
 * One process per data directory. The lock is a listening Unix socket in the directory: the kernel lets go of
 * it when its process dies, however it dies, so there is no process id to mistake for another's; and it is
 * found by its path, so it holds between containers that share a volume. Who holds it where several come at
 * once: lock-election.ts.
 */

import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, openSync, readdirSync, renameSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { wallClockUs } from '../../system-clock.js';
import { removeFile } from '../disk/disk.js';
import { LOCK_WAIT_MS, SOCKET_PATH_BYTES } from '../limits.js';
import { isLockName, type LockStep, lockName, takeDirectory, unpublished } from './lock-election.js';
import { UnusableDirectoryError, unusableDirectory } from './unusable-directory.js';

export class DirectoryInUseError extends Error {
  override name = 'DirectoryInUseError';
}

/** The system does not let the directory be written to, or locked. */
export class UnwritableDirectoryError extends UnusableDirectoryError {
  override name = 'UnwritableDirectoryError';
}

const UNWRITABLE = ['EACCES', 'EPERM', 'EROFS'];
/** What systems say of a file system that has no sockets. */
const WITHOUT_SOCKETS = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'ENXIO', 'EINVAL'];
/** Of this process, where the system shows them (Linux). */
const OPEN_FILES = '/proc/self/fd';
/** What is said to those that wait. */
const HELD = 'held';

export interface DirectoryLock {
  release(): Promise<void>;
}

/**
 * Throws a DirectoryInUseError when another process holds the directory, an UnwritableDirectoryError for one
 * that is read-only or can't have the socket. Of several that come at once one gets it.
 */
export async function lockDirectory(directory: string): Promise<DirectoryLock> {
  try {
    if (process.platform === 'win32') return await lockPipe(directory);
    return await lock(directory);
  } catch (error) {
    throw refusal(directory, error);
  }
}

function refusal(directory: string, error: unknown): unknown {
  const { code = '', syscall = '' } = error as NodeJS.ErrnoException;
  if (syscall === 'listen' && WITHOUT_SOCKETS.includes(code))
    return new UnwritableDirectoryError(
      `the data directory ${directory} can't be locked (${code}): this user can't make a Unix socket on its file system; set LOGRING_DATA_DIR to a directory on a local file system`,
    );
  if (UNWRITABLE.includes(code))
    return new UnwritableDirectoryError((unusableDirectory(directory, error) as Error).message);
  return error;
}

function inUse(directory: string): DirectoryInUseError {
  return new DirectoryInUseError(
    `the data directory ${directory} is in use by another Logring process: stop that one, or set LOGRING_DATA_DIR to another directory`,
  );
}

async function lock(directory: string): Promise<DirectoryLock> {
  const name = lockName(wallClockUs(), randomBytes(6).toString('hex'));
  const taker = new Taker(directory, name);
  try {
    const steps = takeDirectory(name);
    let step = steps.next();
    while (step.done !== true) step = steps.next(await taker.take(step.value));
    if (!step.value) throw inUse(directory);
    return { release: () => taker.leave() };
  } catch (error) {
    await taker.leave();
    throw error;
  }
}

/** A process that wants the directory, or holds it. */
class Taker {
  readonly #directory: string;
  readonly #name: string;
  readonly #server: Server;
  /** A path that is too long goes through the open directory. */
  #descriptor: number | null;
  /** Those who wait for what becomes of this one. */
  readonly #waiting = new Set<Socket>();
  #isHolding = false;

  constructor(directory: string, name: string) {
    this.#directory = directory;
    this.#name = name;
    const isLong = Buffer.byteLength(join(directory, unpublished(name))) > SOCKET_PATH_BYTES;
    if (isLong && !existsSync(OPEN_FILES))
      throw new UnwritableDirectoryError(
        `the data directory ${directory} can't be locked: its path is too long for a Unix socket in it; set LOGRING_DATA_DIR to a shorter path`,
      );
    this.#descriptor = isLong ? openSync(directory, 'r') : null;
    this.#server = createServer((socket) => this.#tell(socket));
  }

  /** The names that the step finds. */
  async take(step: LockStep): Promise<readonly string[]> {
    switch (step.do) {
      case 'publish':
        await this.#publish();
        return [];
      case 'list':
        return readdirSync(this.#directory).filter(isLockName);
      case 'look':
        return (await this.#isAlive(step.name, false)) ? [step.name] : [];
      case 'wait':
        return (await this.#isAlive(step.name, true)) ? [step.name] : [];
      case 'hold':
        this.#isHolding = true;
        for (const socket of this.#waiting) socket.end(HELD);
        return [];
      case 'withdraw':
        await this.leave();
        return [];
      case 'remove':
        removeFile(join(this.#directory, step.name));
        return [];
    }
  }

  /** Releases all that it has, also the directory if it holds it. */
  async leave(): Promise<void> {
    removeFile(join(this.#directory, this.#name));
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const socket of this.#waiting) socket.destroy();
    await closed;
    if (this.#descriptor !== null) closeSync(this.#descriptor);
    this.#descriptor = null;
  }

  #pathOf(name: string): string {
    return this.#descriptor === null
      ? join(this.#directory, name)
      : `${OPEN_FILES}/${this.#descriptor}/${name}`;
  }

  async #publish(): Promise<void> {
    const listening = unpublished(this.#name);
    try {
      await new Promise<void>((resolve, reject) => {
        this.#server.once('error', reject);
        // Other users that can reach the directory may see whether the socket is alive.
        this.#server.listen({ path: this.#pathOf(listening), writableAll: true }, resolve);
      });
      this.#server.unref();
      renameSync(join(this.#directory, listening), join(this.#directory, this.#name));
    } catch (error) {
      // Only the process that holds the directory removes names of others.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw inUse(this.#directory);
      throw error;
    }
  }

  #tell(socket: Socket): void {
    this.#waiting.add(socket);
    socket.unref();
    socket.on('close', () => this.#waiting.delete(socket));
    // The caller need not wait until the end.
    socket.on('error', () => undefined);
    if (this.#isHolding) socket.end(HELD);
  }

  /**
   * Whether the process of a name is there; with `isWaiting` what is known once it holds the directory, or is
   * gone.
   */
  #isAlive(name: string, isWaiting: boolean): Promise<boolean> {
    return new Promise((resolve, reject) => {
      const socket = connect(this.#pathOf(name));
      const settle = (isAlive: boolean) => {
        socket.destroy();
        resolve(isAlive);
      };
      socket.once('connect', () => {
        if (!isWaiting) settle(true);
      });
      socket.once('data', () => settle(true));
      socket.once('close', () => settle(false));
      // A process that is stopped says nothing, and may hold the directory.
      socket.setTimeout(LOCK_WAIT_MS, () => settle(true));
      socket.once('error', (error: NodeJS.ErrnoException) => {
        const { code = '' } = error;
        if (['ECONNREFUSED', 'ENOENT', 'ENOTSOCK', 'ECONNRESET', 'EPIPE'].includes(code)) settle(false);
        // More come than it takes at a time.
        else if (code === 'EAGAIN') settle(true);
        else reject(this.#unknown(name, code));
      });
    });
  }

  #unknown(name: string, code: string): DirectoryInUseError {
    return new DirectoryInUseError(
      `the data directory ${this.#directory} may be in use by another Logring process: can't connect to ${join(this.#directory, name)} (${code}); if no other process runs, remove that file`,
    );
  }
}

/** Windows has named pipes, which one process at a time can make. */
function lockPipe(directory: string): Promise<DirectoryLock> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) => {
      reject(error.code === 'EADDRINUSE' ? inUse(directory) : error);
    });
    server.listen(`\\\\.\\pipe\\${join(directory, 'lock').replaceAll('\\', '/')}`, () => {
      server.unref();
      resolve({ release: () => new Promise((done) => server.close(() => done())) });
    });
  });
}
