/**
 * A PostgreSQL server of the bench's own: found on this machine, begun in a new directory, reached over TCP,
 * as all here are.
 */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { Client } from 'pg';
import { freePort } from '../../test/kafka/broker/free-port.js';
import { allowAllCores } from '../cores.js';

const USER = 'bench';
const DATABASE = 'postgres';
const HOST = '127.0.0.1';
const DEBIAN_DIRECTORY = '/usr/lib/postgresql';
/** PostgreSQL refuses to run as root. */
const UNPRIVILEGED_USERS = ['postgres', 'nobody'];
const START_DEADLINE_MS = 30_000;
const POLL_MS = 50;

/**
 * Durability is off, for loading only: questions write nothing. The rest is what its own manual advises for 8
 * GB and more.
 */
const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: HOST,
  unix_socket_directories: '',
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  max_wal_size: '8GB',
  shared_buffers: '2GB',
  effective_cache_size: '8GB',
  work_mem: '64MB',
  maintenance_work_mem: '512MB',
  random_page_cost: '1.1',
  default_toast_compression: 'lz4',
  jit: 'off',
  autovacuum: 'off',
};

export interface PostgresServer {
  connect(): Promise<Client>;
  stop(): Promise<void>;
}

/** Where the server's programs are: on the path, or Debian's newest; null where there isn't one. */
export function findPostgres(): string | null {
  const versions = existsSync(DEBIAN_DIRECTORY) ? readdirSync(DEBIAN_DIRECTORY) : [];
  const debian = versions
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(DEBIAN_DIRECTORY, version, 'bin'));
  const places = [...(process.env.PATH ?? '').split(delimiter), ...debian];
  return places.find((place) => existsSync(join(place, 'initdb'))) ?? null;
}

/**
 * In a directory of its own, which its user can reach wherever the bench's is, and which goes when it stops.
 * Rejects with what the server said when it doesn't start.
 */
export async function startPostgres(programs: string): Promise<PostgresServer> {
  const directory = mkdtempSync(join(tmpdir(), 'logring-peers-'));
  const identity = process.getuid?.() === 0 ? unprivileged() : null;
  if (identity !== null) chownSync(directory, identity.uid, identity.gid);
  const data = join(directory, 'data');
  const password = randomBytes(16).toString('hex');
  const passwordFile = join(directory, 'password');
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (identity !== null) chownSync(passwordFile, identity.uid, identity.gid);
  const options = { cwd: directory, ...(identity ?? {}) };
  const made = spawnSync(
    join(programs, 'initdb'),
    [
      '-D',
      data,
      '-U',
      USER,
      '-A',
      'scram-sha-256',
      `--pwfile=${passwordFile}`,
      '-E',
      'UTF8',
      '--locale=C',
      '--no-sync',
    ],
    options,
  );
  if (made.status !== 0) throw new Error(`initdb: ${made.error ?? made.stderr}`);
  const port = await freePort();
  const settings = Object.entries(SETTINGS).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const server = spawn(join(programs, 'postgres'), ['-D', data, '-p', String(port), ...settings], {
    ...options,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  let said = '';
  server.stderr!.on('data', (piece) => {
    said += piece;
  });
  const exited = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  const endWithUs = () => server.kill('SIGQUIT');
  process.once('exit', endWithUs);
  allowAllCores(server.pid!);
  const connect = async () => {
    const client = new Client({ host: HOST, port, user: USER, password, database: DATABASE });
    await client.connect();
    return client;
  };
  await untilListening(server, connect, () => said);
  return {
    connect,
    async stop() {
      process.off('exit', endWithUs);
      server.kill('SIGINT');
      await exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function untilListening(
  server: ChildProcess,
  connect: () => Promise<Client>,
  said: () => string,
): Promise<void> {
  for (let waitedMs = 0; ; waitedMs += POLL_MS) {
    try {
      await (await connect()).end();
      return;
    } catch (error) {
      if (server.exitCode !== null || waitedMs > START_DEADLINE_MS) {
        throw new Error(said() || 'nobody listens', { cause: error });
      }
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

function unprivileged(): { uid: number; gid: number } {
  for (const user of UNPRIVILEGED_USERS) {
    const [uid, gid] = ['-u', '-g'].map((option) => spawnSync('id', [option, user], { encoding: 'utf8' }));
    if (uid.status === 0 && gid.status === 0) return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
  }
  throw new Error(`PostgreSQL does not run as root, and there is no user ${UNPRIVILEGED_USERS.join(' or ')}`);
}
