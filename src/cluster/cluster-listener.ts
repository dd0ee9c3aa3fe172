/**
 * Where other members ask this one, in frames (frames.ts), with a key on each connection. Nothing is answered without the
 * key, and nothing that comes in can do more than be refused.
 */

import { createServer, type Server, type Socket } from 'node:net';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:tls';
import { PartialError } from '../../engine/partial-format.js';
import { BodyPool, TakenBuffer } from '../endpoints/body-pool.js';
import type { KeyRing } from '../http/auth.js';
import { HEAD_TIMEOUT_MS } from '../http/limits.js';
import { listenOn } from '../http/server/listen-on.js';
import type { BugReporter } from '../http/server/server.js';
import { type TlsIdentity, tlsOptions } from '../http/server/tls-identity.js';
import { type AnsweredRequest, AskedConnection } from './asked-connection.js';
import { type CopyGiver, NotGiven } from './copy-giver.js';
import type { Asked } from './frames.js';
import { KNOWN_BYTES, QUESTION_BYTES, QUESTIONS_AT_ONCE } from './limits.js';
import type { Allocate } from './message-bytes.js';

export interface ClusterListenerPorts {
  readonly keys: KeyRing;
  /**
   * In memory from `allocate`; at once, where nothing is to be waited for. Throws, or rejects with, a PartialError for
   * bytes that are no question.
   */
  readonly answer: (question: Uint8Array, allocate: Allocate) => Uint8Array | Promise<Uint8Array>;
  /** Throws a PartialError for bytes that say nothing of what is known. */
  readonly holdings: (known: Uint8Array) => Uint8Array;
  /** Rejects with a PartialError for bytes that are no request. */
  readonly names: (request: Uint8Array) => Promise<Uint8Array>;
  /** Pieces are in memory from `allocate`. */
  readonly copies: Pick<CopyGiver, 'copy' | 'piece' | 'release'>;
  readonly bugs: BugReporter;
  /** null: without TLS. */
  readonly identity: TlsIdentity | null;
}

interface Route {
  readonly bodyBytes: number;
  /** Whether it takes its share of what may be asked at a time. */
  readonly isCounted: boolean;
  readonly reply: (body: Uint8Array, allocate: Allocate) => Uint8Array | Promise<Uint8Array | null>;
}

export class ClusterListener {
  readonly #server: Server;
  /** The same; null without TLS. */
  readonly #tlsServer: TlsServer | null;
  readonly #bugs: BugReporter;
  readonly #routes: Readonly<Record<Asked, Route>>;
  readonly #connections = new Set<AskedConnection>();
  /** All of them, from before their TLS handshake on. */
  readonly #sockets = new Set<Socket>();
  readonly #replies = new BodyPool();
  #questionCount = 0;
  #isClosing = false;

  constructor({ keys, answer, holdings, names, copies, bugs, identity }: ClusterListenerPorts) {
    const question = (reply: Route['reply']): Route => ({
      bodyBytes: QUESTION_BYTES,
      isCounted: true,
      reply,
    });
    this.#bugs = bugs;
    this.#routes = {
      question: question(answer),
      names: question(names),
      copy: question((body) => copies.copy(body)),
      piece: question((body, allocate) => copies.piece(body, allocate)),
      release: question((body) => copies.release(body)),
      holdings: { bodyBytes: KNOWN_BYTES, isCounted: false, reply: holdings },
    };
    const ports = {
      isKey: (key: string) => keys.grantOf(key) !== null,
      mostBytes: (asked: Asked) => this.#routes[asked].bodyBytes,
      answer: (asked: Asked, body: Uint8Array) => this.#answer(this.#routes[asked], body),
    };
    const onSocket = (socket: Socket) => {
      if (this.#isClosing) socket.destroy();
      const connection = new AskedConnection(socket, ports);
      this.#connections.add(connection);
      socket.once('close', () => this.#connections.delete(connection));
    };
    this.#tlsServer =
      identity === null
        ? null
        : createTlsServer({ ...tlsOptions(identity), handshakeTimeout: HEAD_TIMEOUT_MS }, onSocket);
    this.#server = this.#tlsServer ?? createServer(onSocket);
    this.#tlsServer?.on('tlsClientError', (_error, socket) => socket.destroy());
    this.#server.on('connection', (socket: Socket) => {
      socket.setNoDelay(true);
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
  }

  /** Resolves to the port, which is chosen by the system for port 0. Rejects with a ListenError. */
  listen(host: string, port: number): Promise<number> {
    const at = { host, port, settings: 'LOGRING_CLUSTER_HOST, LOGRING_CLUSTER_PORT' };
    return listenOn(this.#server, at, this.#bugs);
  }

  /** Shows another certificate to new connections. Throws, and goes on with the earlier one, when it can't. */
  renewIdentity(identity: TlsIdentity): void {
    this.#tlsServer?.setSecureContext(tlsOptions(identity));
  }

  /** Accepts no more connections and requests, lets those in progress finish for up to graceMs, then closes all connections. */
  async close(graceMs: number): Promise<void> {
    this.#isClosing = true;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        for (const socket of this.#sockets) socket.destroy();
      }, graceMs);
      this.#server.close(() => {
        clearTimeout(timer);
        resolve();
      });
      for (const connection of this.#connections) connection.finish();
    });
  }

  #answer({ isCounted, reply }: Route, body: Uint8Array): AnsweredRequest | Promise<AnsweredRequest> {
    if (isCounted && this.#questionCount >= QUESTIONS_AT_ONCE)
      return refusal(503, 'too many questions at once');
    const taken = new TakenBuffer(this.#replies);
    const answered = (bytes: Uint8Array | null): AnsweredRequest => ({
      status: bytes === null ? 304 : 200,
      body: bytes ?? '',
      release: () => taken.giveBack(),
    });
    try {
      const bytes = reply(body, taken.take);
      if (!(bytes instanceof Promise)) return answered(bytes);
      if (isCounted) this.#questionCount++;
      return bytes
        .then(answered, (error: unknown) => this.#refusalOf(error))
        .finally(() => {
          if (isCounted) this.#questionCount--;
        });
    } catch (error) {
      return this.#refusalOf(error);
    }
  }

  #refusalOf(error: unknown): AnsweredRequest {
    if (error instanceof PartialError) return refusal(400, error.message);
    if (error instanceof NotGiven) return refusal(error.status, error.message);
    this.#bugs.report(error, 'answering another member');
    return refusal(500, 'a bug of Logring; its log says more');
  }
}

function refusal(status: number, reason: string): AnsweredRequest {
  return { status, body: reason, release: () => undefined };
}
