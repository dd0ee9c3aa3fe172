/**
 * The seam between HTTP handlers and the two servers that can run them (uws-server.ts, node-server.ts).
 * Handlers turn requests into answers as plain values; the servers do the sockets: keep-alive, HEAD, writing
 * at the pace of the client, aborts. What is said here holds for both.
 */

import { KEEP_ALIVE_TOLD_SECONDS } from '../limits.js';
import type { AnswersInFlight } from './answers-in-flight.js';
import type { Body } from './body.js';
import type { HeaderList } from './headers.js';
import type { TlsIdentity } from './tls-identity.js';

export interface HttpRequest {
  /** As sent: `GET`. */
  readonly method: string;
  /** The request target up to the first `?`, not decoded; begins with `/`. */
  readonly path: string;
  /** What follows the first `?`, not decoded; '' without one. */
  readonly rawQuery: string;
  readonly headers: HeaderList;
}

export type HeaderLine = readonly [name: string, value: string];

export interface HttpAnswer {
  readonly status: number;
  /** Without Content-Length, Connection, Keep-Alive and Date, which the server adds. */
  readonly headers: readonly HeaderLine[];
  /**
   * The server neither copies nor changes it. Sent for HEAD too as far as its length goes. '' with 204 and
   * 304.
   */
  readonly body: Body;
  /**
   * Called once, when the body has been sent or is no longer wanted: then it may change. Counts the memory of
   * a body in pieces.
   */
  readonly release?: (() => void) | undefined;
  /** Close the connection after this answer. */
  readonly close: boolean;
  /** What the result cache had to do with it, for the metrics; absent: nothing. */
  readonly cacheOutcome?: CacheOutcome | undefined;
}

/** Held; not held; held or not, the caller wanted it computed again. */
export type CacheOutcome = 'hit' | 'miss' | 'refresh';

/** The connection is closed at once, without an answer: nothing more that comes over it can be trusted. */
export const CLOSE_SOCKET = 'close-socket';
export type CloseSocket = typeof CLOSE_SOCKET;

/** Takes a request body piece by piece. */
export interface BodyConsumer {
  /**
   * The piece is valid only during the call. False: enough, don't wait for the rest, end and close the
   * connection.
   */
  push(piece: Uint8Array): boolean;
  /** The answer, after the last piece or after push said false. */
  end(): HttpAnswer | Promise<HttpAnswer>;
  /** Instead of end: the client went away. */
  abort(): void;
}

/**
 * What becomes of a request once its head is there. A request that carries a body gets a BodyConsumer, or an
 * answer with `close` set: the rest of such a connection is never read as another request.
 */
export type Opened = HttpAnswer | Promise<HttpAnswer> | BodyConsumer | CloseSocket;

export interface HttpHandler {
  /** Must not throw, nor may what it returns: see contained-handler.ts. */
  open(request: HttpRequest): Opened;
}

/** The address can't be listened on: a sentence for the operator. */
export class ListenError extends Error {
  override name = 'ListenError';
}

export interface HttpServer {
  /** Which server it is, for the start-up line and the metrics. */
  readonly name: BackEndName;
  /** Resolves to the port, which is chosen by the system for port 0. Rejects with a ListenError. */
  listen(host: string, port: number): Promise<number>;
  /**
   * Shows another certificate to new connections. Throws, and goes on with the earlier one, when it can't.
   * Only of a server that was made with one and listens.
   */
  renewIdentity(identity: TlsIdentity): void;
  /**
   * Accepts no more connections, lets the requests in progress finish for up to graceMs, then closes all
   * connections. The answers meanwhile say `Connection: close`.
   */
  close(graceMs: number): Promise<void>;
}

export type BackEndName = 'uWebSockets.js' | 'node:http';

export interface ServerPorts {
  readonly bugs: BugReporter;
  readonly inFlight: AnswersInFlight;
  /** null: without TLS. */
  readonly identity: TlsIdentity | null;
  /** The names of the settings for host and port, for the operator. */
  readonly addressSettings: string;
}

/** For what must not happen: the service goes on, but someone should look. */
export interface BugReporter {
  report(error: unknown, where: string): void;
}

export function isBodyConsumer(opened: Opened): opened is BodyConsumer {
  return typeof opened === 'object' && 'push' in opened;
}

/** On answers after which the connection is kept. */
export const KEEP_ALIVE_LINE: HeaderLine = ['Keep-Alive', `timeout=${KEEP_ALIVE_TOLD_SECONDS}`];
export const CLOSE_LINE: HeaderLine = ['Connection', 'close'];

/** Answers of these have neither a body nor a length of one. */
export function hasNoContent(status: number): boolean {
  return status === 204 || status === 304;
}
