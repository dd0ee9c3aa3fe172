/** Redis as a plain cache: it holds the ready answers, as old as they are when somebody put them there. */

import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { Redis } from 'ioredis';
import { freePort } from '../../test/kafka/broker/free-port.js';
import { allowAllCores } from '../cores.js';
import { rowsOfBody, targetOf } from './logring-answers.js';
import type { Peer, System } from './peer.js';
import type { Question } from './question.js';

const HOST = '127.0.0.1';

export interface RedisCache extends System {
  /** Puts the answer to a question there. */
  keep(question: Question, body: Uint8Array): Promise<void>;
}

/** A sentence when there is no Redis, or none that starts. */
export async function openRedis(directory: string): Promise<RedisCache | string> {
  const found = spawnSync('redis-server', ['--version'], { encoding: 'utf8' });
  if (found.status !== 0) return 'no redis-server on the PATH';
  mkdirSync(directory, { recursive: true });
  const port = await freePort();
  const server = spawn(
    'redis-server',
    ['--port', String(port), '--bind', HOST, '--save', '', '--dir', directory],
    {
      stdio: 'ignore',
    },
  );
  const exited = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  const endWithUs = () => server.kill('SIGKILL');
  process.once('exit', endWithUs);
  allowAllCores(server.pid!);
  const client = new Redis({ host: HOST, port, retryStrategy: () => (server.exitCode === null ? 20 : null) });
  // It says so for each try before the server listens.
  client.on('error', () => undefined);
  try {
    await client.ping();
  } catch (error) {
    client.disconnect();
    return `redis-server does not start: ${String(error)}`;
  }
  return {
    peers: [cached(client, /v=([0-9.]+)/.exec(found.stdout)?.[1] ?? '')],
    insert: () => undefined,
    finish: () => undefined,
    async keep(question, body) {
      await client.set(keyOf(question), Buffer.from(body));
    },
    async close() {
      client.disconnect();
      process.off('exit', endWithUs);
      await ended(server, exited);
    },
  };
}

function ended(server: ChildProcess, exited: Promise<void>): Promise<void> {
  server.kill('SIGTERM');
  return exited;
}

function cached(client: Redis, version: string): Peer {
  return {
    name: 'Redis, ready answers',
    version,
    reach: 'over a socket',
    includes: 'ioredis, a whole JSON body that somebody else has put there',
    refresh: null,
    prepare: (question) => ({
      run: async () => (await client.getBuffer(keyOf(question)))!,
      rows: (body: Buffer) => rowsOfBody(question, body),
    }),
  };
}

function keyOf(question: Question): string {
  const { path, rawQuery } = targetOf(question);
  return `${path}?${rawQuery}`;
}
