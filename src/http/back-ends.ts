/** Chooses the server: uWebSockets.js wherever a native build of it loads, else node:http. */

import { containedHandler } from './contained-handler.js';
import { NodeServer } from './node-server.js';
import type { BackEndName, BugReporter, HttpHandler, HttpServer } from './server.js';
import { loadUws } from './uws-binary.js';
import { UwsServer } from './uws-server.js';

export interface ChosenServer {
  readonly server: HttpServer;
  /** Why it is not uWebSockets.js, for the start-up line; null when it is. */
  readonly fallbackReason: string | null;
}

export interface ServerOptions {
  readonly handler: HttpHandler;
  readonly bugs: BugReporter;
  /** For tests; asking for a server that can't be had throws. */
  readonly forced?: BackEndName;
  /** Wraps the handler once it can't throw any more, to measure it. */
  readonly observe?: (contained: HttpHandler) => HttpHandler;
}

export function createHttpServer({ handler, bugs, forced, observe }: ServerOptions): ChosenServer {
  const contained = containedHandler(handler, bugs);
  const observed = observe === undefined ? contained : observe(contained);
  if (forced === 'node:http') return { server: new NodeServer(observed, bugs), fallbackReason: 'asked for' };
  const uws = loadUws();
  if (typeof uws !== 'string') return { server: new UwsServer(uws, observed, bugs), fallbackReason: null };
  if (forced === 'uWebSockets.js') throw new Error(uws);
  return { server: new NodeServer(observed, bugs), fallbackReason: uws };
}
