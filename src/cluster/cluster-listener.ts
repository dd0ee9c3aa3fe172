/**
 * Where other members ask this one: HTTP/1.1, a key in each request, a few paths. Nothing is answered without the key,
 * and nothing that comes in can do more than be refused.
 */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { PartialError } from '../../engine/partial-format.js';
import { BodyPool } from '../endpoints/body-pool.js';
import type { KeyRing } from '../http/auth.js';
import type { BugReporter } from '../http/server/server.js';
import type { TlsIdentity } from '../http/server/tls-identity.js';
import {
  CLUSTER_KEY_HEADER,
  COPY_PATH,
  HOLDINGS_PATH,
  NAMES_PATH,
  PIECE_PATH,
  QUESTION_PATH,
  RELEASE_PATH,
} from './cluster-paths.js';
import { type CopyGiver, NotGiven } from './copy-giver.js';
import { KNOWN_BYTES, PEER_IDLE_MS, QUESTION_BYTES, QUESTIONS_AT_ONCE, UNREAD_MS } from './limits.js';
import type { Allocate } from './messages.js';

const TOO_LONG = `a question has at most ${QUESTION_BYTES} bytes, what is known of lists ${KNOWN_BYTES}`;

export interface ClusterListenerPorts {
  readonly keys: KeyRing;
  /** In memory from `allocate`. Rejects with a PartialError for bytes that are no question. */
  readonly answer: (question: Uint8Array, allocate: Allocate) => Promise<Uint8Array>;
  /** Throws a PartialError for bytes that say nothing of what is known. */
  readonly holdings: (known: Uint8Array) => Uint8Array;
  /** Rejects with a PartialError for bytes that are no request. */
  readonly names: (request: Uint8Array) => Promise<Uint8Array>;
  readonly copies: Pick<CopyGiver, 'copy' | 'piece' | 'release'>;
  readonly bugs: BugReporter;
  /** null: plain. */
  readonly tls: TlsIdentity | null;
}

type Route = (body: Uint8Array, allocate: Allocate) => Promise<Uint8Array | null>;

export class ClusterListener {
  readonly #ports: ClusterListenerPorts;
  readonly #server: Server;
  /** The same where it has a certificate. */
  readonly #tlsServer: TlsServer | null;
  readonly #routes: ReadonlyMap<string | undefined, Route>;
  readonly #replies = new BodyPool();
  #questionCount = 0;

  constructor(ports: ClusterListenerPorts) {
    this.#ports = ports;
    const { answer, names, copies } = ports;
    this.#routes = new Map<string, Route>([
      [QUESTION_PATH, answer],
      [NAMES_PATH, names],
      [COPY_PATH, (body) => copies.copy(body)],
      [PIECE_PATH, (body) => copies.piece(body)],
      [RELEASE_PATH, (body) => copies.release(body)],
    ]);
    const listener = (request: IncomingMessage, response: ServerResponse) =>
      void this.#take(request, response);
    this.#tlsServer = ports.tls === null ? null : createTlsServer(pemOf(ports.tls), listener);
    this.#server = this.#tlsServer ?? createServer(listener);
    // Later than who asks gives a connection up, so that none is closed under a question.
    this.#server.keepAliveTimeout = 2 * PEER_IDLE_MS;
    this.#server.requestTimeout = PEER_IDLE_MS;
    // One that takes nothing of what it asked for.
    this.#server.timeout = UNREAD_MS;
  }

  /** New connections get another certificate. */
  renewIdentity(identity: TlsIdentity): void {
    this.#tlsServer?.setSecureContext(pemOf(identity));
  }

  /** Resolves with the port. Rejects with the system's error. */
  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, host, () => {
        this.#server.removeListener('error', reject);
        this.#server.on('error', (error) => this.#ports.bugs.report(error, 'the cluster port'));
        resolve((this.#server.address() as AddressInfo).port);
      });
    });
  }

  /** Resolves when the last question is answered, or its time is up. */
  close(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(() => this.#server.closeAllConnections(), limitMs);
      this.#server.close(() => {
        clearTimeout(timer);
        resolve();
      });
      this.#server.closeIdleConnections();
    });
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      await this.#answer(request, response);
    } catch (error) {
      // The member that asked is gone.
      if (request.errored !== null || response.destroyed) return;
      const status = statusOf(error);
      if (status === 500) this.#ports.bugs.report(error, 'the cluster port');
      end(response, status, (error as Error).message);
    }
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { keys, holdings } = this.#ports;
    const key = request.headers[CLUSTER_KEY_HEADER];
    if (keys.grantOf(typeof key === 'string' ? key : '') === null)
      return end(response, 401, 'a key of LOGRING_CLUSTER_KEYS is needed');
    if (request.method !== 'POST') return end(response, 405, 'POST only');
    if (request.url === HOLDINGS_PATH) {
      const known = await bodyOf(request, KNOWN_BYTES);
      return known === null ? end(response, 413, TOO_LONG) : end(response, 200, holdings(known));
    }
    const route = this.#routes.get(request.url);
    if (route === undefined) return end(response, 404, 'there is nothing here');
    if (this.#questionCount >= QUESTIONS_AT_ONCE) return end(response, 503, 'too many questions at once');
    const body = await bodyOf(request, QUESTION_BYTES);
    if (body === null) return end(response, 413, TOO_LONG);
    this.#questionCount++;
    try {
      const reply = await route(body, (byteCount) => {
        const buffer = this.#replies.take(byteCount);
        response.once('close', () => this.#replies.giveBack(buffer));
        return buffer;
      });
      end(response, reply === null ? 304 : 200, reply ?? '');
    } finally {
      this.#questionCount--;
    }
  }
}

/** 500: a bug. */
function statusOf(error: unknown): number {
  if (error instanceof PartialError) return 400;
  return error instanceof NotGiven ? error.status : 500;
}

function pemOf({ certificate, key }: TlsIdentity): { readonly cert: string; readonly key: string } {
  return { cert: certificate, key };
}

/** null for more bytes. Rejects when it breaks off. */
function bodyOf(request: IncomingMessage, byteLimit: number): Promise<Uint8Array | null> {
  return new Promise((resolve, reject) => {
    const pieces: Uint8Array[] = [];
    let byteCount = 0;
    request.on('data', (piece: Uint8Array) => {
      byteCount += piece.length;
      if (byteCount <= byteLimit) pieces.push(piece);
      else resolve(null);
    });
    request.once('end', () => resolve(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces)));
    request.on('error', reject);
  });
}

function end(response: ServerResponse, status: number, body: string | Uint8Array): void {
  response.sendDate = false;
  response.writeHead(status, {
    'Content-Type': typeof body === 'string' ? 'text/plain; charset=utf-8' : 'application/octet-stream',
    'Content-Length': Buffer.byteLength(body),
    ...(status < 400 ? {} : { Connection: 'close' }),
  });
  response.end(body);
}
