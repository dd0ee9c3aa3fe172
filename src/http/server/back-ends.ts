/** Chooses the server: uWebSockets.js wherever a native build of it loads, else node:http. */

import { ANSWER_BYTE_LIMIT } from '../limits.js';
import { AnswersInFlight } from './answers-in-flight.js';
import { containedHandler } from './contained-handler.js';
import { NodeServer } from './node-server.js';
import type { BackEndName, BugReporter, HttpHandler, HttpServer } from './server.js';
import type { TlsIdentity } from './tls-identity.js';
import { loadUws } from './uws-binary.js';
import { UwsServer } from './uws-server.js';

export interface ChosenServer {
  readonly server: HttpServer;
  /** The package that the native server is from; null for node:http. */
  readonly origin: string | null;
  /** Why it is not uWebSockets.js; null when it is. */
  readonly fallbackReason: string | null;
}

const NEEDS_FILES = 'uWebSockets.js takes certificate and key from files only';

export interface ServerOptions {
  readonly handler: HttpHandler;
  readonly bugs: BugReporter;
  /** Absent: it makes its own. */
  readonly inFlight?: AnswersInFlight;
  /** Present: HTTPS, and HTTPS only. */
  readonly identity?: TlsIdentity;
  /** For tests; asking for a server that can't be loaded throws. */
  readonly forced?: BackEndName;
  /** See ServerPorts. */
  readonly addressSettings?: string;
  /** Wraps the handler once it can't throw any more, to measure it. */
  readonly observe?: (contained: HttpHandler) => HttpHandler;
}

/** Throws when the server that was asked for can't be loaded, or can't use the certificate. */
export function createHttpServer(options: ServerOptions): ChosenServer {
  const {
    handler,
    bugs,
    forced,
    observe,
    identity = null,
    addressSettings = 'LOGRING_HOST, LOGRING_PORT',
  } = options;
  const inFlight = options.inFlight ?? new AnswersInFlight(ANSWER_BYTE_LIMIT);
  const contained = containedHandler(handler, bugs);
  const observed = observe === undefined ? contained : observe(contained);
  const ports = { bugs, inFlight, identity, addressSettings };
  const nodeServer = (fallbackReason: string): ChosenServer => ({
    server: new NodeServer(observed, ports),
    origin: null,
    fallbackReason,
  });
  if (forced === 'node:http') return nodeServer('asked for');
  const binary = identity !== null && identity.paths === null ? NEEDS_FILES : loadUws();
  if (typeof binary !== 'string') {
    const { uws, origin } = binary;
    const server = new UwsServer(uws, observed, ports);
    return { server, origin, fallbackReason: null };
  }
  if (forced === 'uWebSockets.js') throw new Error(binary);
  return nodeServer(binary);
}
