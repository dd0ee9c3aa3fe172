/** The server on node:http, or node:https, for wherever uWebSockets.js has no binary. */

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTlsServer, type Server as TlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { longWorkTurn } from '../../turns.js';
import {
  BODY_IDLE_MS,
  CONNECTION_CHECK_MS,
  HEAD_BYTE_LIMIT,
  HEAD_TIMEOUT_MS,
  KEEP_ALIVE_MS,
  READ_TURN_BYTES,
  REQUEST_TIMEOUT_MS,
} from '../limits.js';
import type { AnswersInFlight } from './answers-in-flight.js';
import { BodyReader, byteCountOf, isPieces } from './body.js';
import { HeaderList } from './headers.js';
import { listenOn } from './listen-on.js';
import {
  type BodyConsumer,
  type BugReporter,
  CLOSE_LINE,
  CLOSE_SOCKET,
  type HttpAnswer,
  type HttpHandler,
  type HttpServer,
  hasNoContent,
  isBodyConsumer,
  KEEP_ALIVE_LINE,
  type ServerPorts,
} from './server.js';
import { keepTickShape } from './tick-shape.js';
import { type TlsIdentity, tlsOptions } from './tls-identity.js';

const MALFORMED = 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\nContent-Length: 0\r\n\r\n';

/** What uWebSockets.js has built in. */
const USUAL_TIMES = {
  keepAliveMs: KEEP_ALIVE_MS,
  headMs: HEAD_TIMEOUT_MS,
  bodyIdleMs: BODY_IDLE_MS,
  requestMs: REQUEST_TIMEOUT_MS,
  lookMs: CONNECTION_CHECK_MS,
};

export type ConnectionTimes = typeof USUAL_TIMES;

export class NodeServer implements HttpServer {
  readonly name = 'node:http';
  readonly #server: Server;
  /** The same server; null without TLS. */
  readonly #tlsServer: TlsServer | null;
  readonly #handler: HttpHandler;
  readonly #bugs: BugReporter;
  readonly #inFlight: AnswersInFlight;
  readonly #addressSettings: string;
  readonly #bodyIdleMs: number;
  /** Connections, from before their TLS handshake on. */
  readonly #connections = new Set<Socket>();
  /** What is in progress on a connection: nothing else may be written into its answers. */
  readonly #openBySocket = new WeakMap<Duplex, Set<Exchange>>();
  #closing = false;

  /** The handler must be a contained one. */
  constructor(
    handler: HttpHandler,
    { bugs, inFlight, identity, addressSettings }: ServerPorts,
    times = USUAL_TIMES,
  ) {
    keepTickShape();
    this.#bodyIdleMs = times.bodyIdleMs;
    this.#handler = handler;
    this.#bugs = bugs;
    this.#inFlight = inFlight;
    this.#addressSettings = addressSettings;
    const options = {
      insecureHTTPParser: false,
      // #isMalformed looks for it: node:http would refuse the request and read the next one.
      requireHostHeader: false,
      maxHeaderSize: HEAD_BYTE_LIMIT,
      keepAliveTimeout: times.keepAliveMs,
      headersTimeout: times.headMs,
      requestTimeout: times.requestMs,
      connectionsCheckingInterval: times.lookMs,
      noDelay: true,
    };
    this.#tlsServer =
      identity === null
        ? null
        : createTlsServer({ ...options, ...tlsOptions(identity), handshakeTimeout: times.headMs });
    this.#server = this.#tlsServer ?? createServer(options);
    // No limit here: lines beyond one would be dropped in silence. HeaderList counts them.
    this.#server.maxHeadersCount = 0;
    this.#server.on('connection', (socket: Socket) => {
      this.#connections.add(socket);
      socket.once('close', () => this.#connections.delete(socket));
    });
    this.#server.on('request', (request, response) => this.#open(request, response));
    this.#server.on('clientError', (_error, socket) => this.#refuse(socket));
  }

  listen(host: string, port: number): Promise<number> {
    return listenOn(this.#server, { host, port, settings: this.#addressSettings }, this.#bugs);
  }

  renewIdentity(identity: TlsIdentity): void {
    this.#tlsServer?.setSecureContext(tlsOptions(identity));
  }

  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => {
        this.#server.closeAllConnections();
        // node:http does not close those whose TLS handshake is under way: completed later, they would keep it open.
        for (const socket of this.#connections) socket.destroy();
      }, graceMs);
      this.#server.close(() => {
        clearTimeout(timer);
        resolve();
      });
      this.#server.closeIdleConnections();
    });
  }

  #open(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    // What the parser still has of a connection that was refused is not read.
    if (socket.destroyed || socket.writableEnded) return;
    try {
      const headers = headerList(request.rawHeaders);
      if (isMalformed(request, headers)) {
        this.#refuse(socket);
        return;
      }
      const exchange = this.#begin(socket, response);
      const target = request.url ?? '';
      const queryAt = target.indexOf('?');
      const opened = this.#handler.open({
        method: request.method ?? '',
        path: queryAt < 0 ? target : target.slice(0, queryAt),
        rawQuery: queryAt < 0 ? '' : target.slice(queryAt + 1),
        headers,
      });
      if (opened === CLOSE_SOCKET) socket.destroy();
      else if (isBodyConsumer(opened)) this.#readBody(request, exchange, opened);
      else if (opened instanceof Promise) this.#answerLater(exchange, opened, false);
      else this.#answer(exchange, opened, false);
    } catch (error) {
      this.#abort(socket, error);
    }
  }

  #begin(socket: Socket, response: ServerResponse): Exchange {
    const exchange = new Exchange(response);
    let open = this.#openBySocket.get(socket);
    if (open === undefined) {
      const begun = new Set<Exchange>();
      open = begun;
      this.#openBySocket.set(socket, begun);
      socket.once('close', () => {
        for (const one of begun) one.end();
      });
    }
    open.add(exchange);
    exchange.whenOver(() => open.delete(exchange));
    response.once('close', () => exchange.end());
    return exchange;
  }

  #readBody(request: IncomingMessage, exchange: Exchange, body: BodyConsumer): void {
    let isReading = true;
    let turnBytes = 0;
    const { socket } = request;
    socket.setTimeout(this.#bodyIdleMs);
    const end = (mustClose: boolean): void => {
      isReading = false;
      socket.setTimeout(0);
      const answer = body.end();
      if (answer instanceof Promise) this.#answerLater(exchange, answer, mustClose);
      else this.#answer(exchange, answer, mustClose);
    };
    // What comes meanwhile stays with the system: in a turn only one large body is read.
    const readOnInTurn = async (): Promise<void> => {
      turnBytes = 0;
      request.pause();
      await longWorkTurn('bodies');
      request.resume();
    };
    request.on('data', (piece: Buffer) => {
      if (!isReading) return;
      if (!body.push(piece)) end(true);
      turnBytes += piece.length;
      if (isReading && turnBytes >= READ_TURN_BYTES) void readOnInTurn();
    });
    request.on('end', () => {
      if (isReading) end(false);
    });
    // Also after a body that breaks off or does not parse.
    exchange.whenOver(() => {
      if (isReading) body.abort();
      isReading = false;
    });
  }

  #answerLater(exchange: Exchange, answer: Promise<HttpAnswer>, mustClose: boolean): void {
    answer
      .then((value) => this.#answer(exchange, value, mustClose))
      .catch((error: unknown) => this.#abort(exchange.response.req.socket, error));
  }

  /** node:http keeps what the socket doesn't take yet, and drops it when the client goes away. */
  #answer(exchange: Exchange, answer: HttpAnswer, mustClose: boolean): void {
    const { response } = exchange;
    const { body, release } = answer;
    if (release !== undefined) exchange.whenOver(release);
    if (exchange.isOver) return;
    const headers = answer.headers.flat();
    if (!hasNoContent(answer.status)) {
      headers.push('Content-Length', String(byteCountOf(body)));
    }
    if (answer.close || mustClose || this.#closing) headers.push(...CLOSE_LINE);
    else headers.push(...KEEP_ALIVE_LINE);
    response.writeHead(answer.status, headers);
    if (response.req.method === 'HEAD') response.end();
    else if (isPieces(body)) this.#sendPieces(exchange, new BodyReader(body));
    else {
      response.end(body);
      if (response.writableLength > 0) this.#watch(exchange, body);
    }
  }

  /** What the socket has not taken at once. */
  #watch(exchange: Exchange, body: string | Uint8Array): void {
    const byteCount = byteCountOf(body);
    const heldBytes = typeof body === 'string' ? byteCount : body.buffer.byteLength;
    const { socket } = exchange.response.req;
    const sending = this.#inFlight.send(
      byteCount,
      heldBytes,
      () => socket.destroy(),
      () => takenBytes(socket),
    );
    exchange.whenOver(() => sending.end());
  }

  /** A piece a turn, each when the one before has left. */
  #sendPieces(exchange: Exchange, reader: BodyReader): void {
    const { response } = exchange;
    const { socket } = response.req;
    const sending = this.#inFlight.sendLarge(reader.byteCount, () => socket.destroy());
    exchange.whenOver(() => sending.end());
    let offset = 0;
    const sendNext = () => {
      if (exchange.isOver) return;
      sending.progressed(offset);
      if (offset === reader.byteCount) {
        response.end();
        return;
      }
      const piece = reader.pieceAt(offset);
      offset += piece.length;
      response.write(piece, () => void longWorkTurn('answers').then(sendNext));
    };
    sendNext();
  }

  /** What is no HTTP is answered by a bare 400, unless an answer is on its way, which that would corrupt. */
  #refuse(socket: Duplex): void {
    const openCount = this.#openBySocket.get(socket)?.size ?? 0;
    if (socket.writable && openCount === 0) socket.end(MALFORMED, () => socket.destroy());
    else socket.destroy();
  }

  /** For our own bugs in this file: the connection is closed, since nobody knows what was sent. */
  #abort(socket: Socket | null, error: unknown): void {
    this.#bugs.report(error, 'writing an answer');
    socket?.destroy();
  }
}

/**
 * A request and its answer. Of one that waits behind another on its connection Node says nothing when the client goes
 * away.
 */
class Exchange {
  readonly response: ServerResponse;
  isOver = false;
  readonly #tasks: (() => void)[] = [];

  constructor(response: ServerResponse) {
    this.response = response;
  }

  /** Runs a task once the answer has left or the client has gone; at once if that is so. */
  whenOver(task: () => void): void {
    if (this.isOver) task();
    else this.#tasks.push(task);
  }

  end(): void {
    if (this.isOver) return;
    this.isOver = true;
    for (const task of this.#tasks) task();
  }
}

/**
 * What the system took of all that was written. Node's own time-outs ask the handle too; nothing public says
 * it amid a write.
 */
function takenBytes(socket: Socket): number {
  const { _handle: handle } = socket as unknown as {
    readonly _handle?: { readonly writeQueueSize?: number } | null;
  };
  return socket.bytesWritten - (handle?.writeQueueSize ?? 0);
}

/** What node:http's parser lets through and uWebSockets.js doesn't. */
function isMalformed({ httpVersion, url }: IncomingMessage, headers: HeaderList): boolean {
  if (url?.startsWith('/') !== true) return true;
  if (httpVersion === '1.1') return !headers.has('host');
  return httpVersion !== '1.0' || headers.has('transfer-encoding');
}

function headerList(rawHeaders: readonly string[]): HeaderList {
  const headers = new HeaderList();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    headers.add(rawHeaders[i].toLowerCase(), rawHeaders[i + 1]);
  return headers;
}
