/** The server on uWebSockets.js. */

import { longWorkTurn } from '../../turns.js';
import type { AnswersInFlight } from './answers-in-flight.js';
import { type Body, BodyReader, byteCountOf, isPieces } from './body.js';
import { HeaderList } from './headers.js';
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
  ListenError,
  type ServerPorts,
} from './server.js';
import { TlsError, type TlsIdentity } from './tls-identity.js';
import type { Uws, UwsApp, UwsListenSocket, UwsRequest, UwsResponse } from './uws-binary.js';
import { Exchange, type Listener, writeHead } from './uws-exchange.js';

export class UwsServer implements HttpServer {
  readonly name = 'uWebSockets.js';
  readonly #uws: Uws;
  readonly #handler: HttpHandler;
  readonly #bugs: BugReporter;
  readonly #inFlight: AnswersInFlight;
  readonly #addressSettings: string;
  readonly #isTls: boolean;
  #current: Listener;
  /** Of earlier certificates, with connections that may still be in use. */
  #retired: Listener[] = [];
  #listenSocket: UwsListenSocket | null = null;
  #host = '';
  #port = 0;
  #openCount = 0;
  #closing = false;
  #drained: (() => void) | null = null;

  /** The handler must be a contained one: an exception that reaches uWebSockets.js aborts the process. */
  constructor(uws: Uws, handler: HttpHandler, { bugs, inFlight, identity, addressSettings }: ServerPorts) {
    this.#uws = uws;
    this.#handler = handler;
    this.#bugs = bugs;
    this.#inFlight = inFlight;
    this.#addressSettings = addressSettings;
    this.#isTls = identity !== null;
    this.#current = this.#createListener(identity);
  }

  async listen(host: string, port: number): Promise<number> {
    this.#host = host;
    this.#port = port;
    this.#takePort(this.#current);
    // A port that the system chose can't be taken over, as renewIdentity does, while it has connections; by
    // number it can.
    if (port === 0 && this.#isTls && this.#listenSocket !== null) {
      this.#port = this.#uws.us_socket_local_port(this.#listenSocket);
      this.#takePort(this.#current);
    }
    if (this.#listenSocket === null) {
      throw new ListenError(
        `can't listen on ${host}:${port} (${this.#addressSettings}): the port is taken, or the address is not this machine's`,
      );
    }
    return this.#uws.us_socket_local_port(this.#listenSocket);
  }

  /**
   * It can't change the certificate of an app, so another app takes over the port, within one turn of the
   * event loop. Connections to the one before go on until their next answer, or are closed at the next
   * change.
   */
  renewIdentity(identity: TlsIdentity): void {
    if (this.#closing) return;
    const next = this.#createListener(identity);
    this.#takePort(next);
    if (this.#listenSocket === null) {
      this.#takePort(this.#current);
      throw new ListenError(`can't listen on ${this.#host}:${this.#port} again`);
    }
    for (const { app } of this.#retired) app.close();
    this.#current.isRetired = true;
    this.#retired = [this.#current];
    this.#current = next;
  }

  async close(graceMs: number): Promise<void> {
    this.#closing = true;
    this.#stopListening();
    if (this.#openCount > 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, graceMs);
        this.#drained = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    for (const { app } of [this.#current, ...this.#retired]) app.close();
  }

  /** Throws when the certificate can't be used. */
  #createListener(identity: TlsIdentity | null): Listener {
    const app = identity === null ? this.#uws.App() : this.#createTlsApp(identity);
    const listener = { app, isRetired: false };
    app.any('/*', (response, request) => this.#open(listener, response, request));
    return listener;
  }

  #createTlsApp({ paths }: TlsIdentity): UwsApp {
    if (paths === null) throw new TlsError('uWebSockets.js takes certificate and key from files only');
    try {
      return this.#uws.SSLApp({ cert_file_name: paths.certificate, key_file_name: paths.key });
    } catch (error) {
      throw new TlsError(`uWebSockets.js can't use certificate and key: ${(error as Error).message}`);
    }
  }

  /** In place of the app that has it now; #listenSocket is null where it can't listen. */
  #takePort({ app }: Listener): void {
    this.#stopListening();
    app.listen(this.#host, this.#port, this.#uws.LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
      if (socket !== false) this.#listenSocket = socket;
    });
  }

  #stopListening(): void {
    if (this.#listenSocket !== null) this.#uws.us_listen_socket_close(this.#listenSocket);
    this.#listenSocket = null;
  }

  /**
   * Called by uWebSockets.js for each request; nothing may be thrown out of here, nor out of any callback
   * below.
   */
  #open(listener: Listener, response: UwsResponse, uwsRequest: UwsRequest): void {
    const exchange = new Exchange(listener, response);
    try {
      this.#openCount += 1;
      const headers = new HeaderList();
      uwsRequest.forEach((name, value) => {
        headers.add(name, value);
      });
      const method = uwsRequest.getCaseSensitiveMethod();
      exchange.isHead = method === 'HEAD';
      const opened = this.#handler.open({
        method,
        path: uwsRequest.getUrl(),
        rawQuery: uwsRequest.getQuery() ?? '',
        headers,
      });
      if (opened === CLOSE_SOCKET) this.#close(exchange);
      else if (isBodyConsumer(opened)) this.#readBody(exchange, opened);
      else if (opened instanceof Promise) this.#answerLater(exchange, opened);
      else this.#answer(exchange, opened);
    } catch (error) {
      this.#abort(exchange, error);
    }
  }

  #readBody(exchange: Exchange, body: BodyConsumer): void {
    this.#watch(exchange);
    exchange.body = body;
    exchange.response.onData((piece, isLast) => {
      if (exchange.body === null) return;
      try {
        const enough = !body.push(new Uint8Array(piece));
        if (!enough && !isLast) return;
        exchange.body = null;
        exchange.mustClose = enough;
        const answer = body.end();
        if (answer instanceof Promise) this.#answerLater(exchange, answer);
        else this.#answer(exchange, answer);
      } catch (error) {
        this.#abort(exchange, error);
      }
    });
  }

  #answerLater(exchange: Exchange, answer: Promise<HttpAnswer>): void {
    this.#watch(exchange);
    answer
      .then((value) => {
        if (exchange.isOver) value.release?.();
        else this.#answer(exchange, value);
      })
      .catch((error: unknown) => this.#abort(exchange, error));
  }

  /**
   * An answer that closes the connection must wait until uWebSockets.js is through with what it has received:
   * inside, it would first go on to the next request there and forget to close. While the answer is missing
   * it refuses a next request by closing, which is what is wanted.
   */
  #answer(exchange: Exchange, answer: HttpAnswer): void {
    exchange.release = answer.release;
    if (answer.close || exchange.mustClose) {
      this.#watch(exchange);
      setImmediate(() => {
        if (!exchange.isOver) this.#corked(exchange, () => this.#writeAndClose(exchange, answer));
      });
    } else this.#corked(exchange, () => this.#write(exchange, answer));
  }

  /**
   * So that what is written leaves as one: it does by itself for the first of the requests that come in one
   * piece, while the others' answers would take a system call for each name and value of their headers.
   */
  #corked(exchange: Exchange, write: () => void): void {
    exchange.response.cork(() => {
      try {
        write();
      } catch (error) {
        this.#abort(exchange, error);
      }
    });
  }

  #writeAndClose(exchange: Exchange, answer: HttpAnswer): void {
    writeHead(exchange.response, answer.status, answer.headers);
    // It adds `Connection: close`.
    const { body } = answer;
    exchange.response.end(exchange.isHead ? '' : isPieces(body) ? Buffer.concat(body) : body, true);
    this.#finished(exchange);
  }

  /** Writes the answer, at once or as far as the socket takes it and the rest when it can take more. */
  #write(exchange: Exchange, answer: HttpAnswer): void {
    const { response } = exchange;
    const { body } = answer;
    const byteCount = byteCountOf(body);
    const isLast = this.#closing || exchange.listener.isRetired;
    writeHead(response, answer.status, [...answer.headers, isLast ? CLOSE_LINE : KEEP_ALIVE_LINE]);
    const noContent = hasNoContent(answer.status);
    if (noContent || exchange.isHead) {
      // Its own way to report a length leaves the exchange open, and the connection's next request
      // unanswered.
      if (!noContent) response.writeHeader('Content-Length', String(byteCount));
      response.endWithoutBody();
      this.#finished(exchange);
      return;
    }
    if (!isPieces(body)) {
      const [, done] = response.tryEnd(body, byteCount);
      if (done) {
        this.#finished(exchange);
        return;
      }
    }
    this.#continueWhenWritable(exchange, body);
  }

  /** Of a body in pieces nothing is sent yet; of any other as much as the socket took. */
  #continueWhenWritable(exchange: Exchange, body: Body): void {
    const { response } = exchange;
    const reader = new BodyReader(body);
    this.#watch(exchange);
    // It may call while a turn is scheduled: that turn does what would be done here, and both would send the
    // same piece.
    response.onWritable((offset) => exchange.hasTurn || this.#sendOn(exchange, reader, offset));
    const close = () => this.#close(exchange);
    if (isPieces(body)) {
      exchange.sending = this.#inFlight.sendLarge(reader.byteCount, close);
      this.#sendOn(exchange, reader, 0);
    } else {
      const heldBytes = typeof body === 'string' ? reader.byteCount : body.buffer.byteLength;
      exchange.sending = this.#inFlight.send(reader.byteCount, heldBytes, close);
      // It was cut off before it could be told to end it.
      if (exchange.isOver) exchange.sending.end();
    }
  }

  /**
   * A piece a turn; returns whether the socket took it all. If not, uWebSockets.js calls when it can take
   * more.
   */
  #sendOn(exchange: Exchange, reader: BodyReader, offset: number): boolean {
    try {
      const piece = reader.pieceAt(offset);
      const [ok, done] = exchange.response.tryEnd(piece, reader.byteCount);
      exchange.sending?.progressed(offset);
      if (done) this.#finished(exchange);
      else if (ok) {
        exchange.hasTurn = true;
        void this.#sendNext(exchange, reader, offset + piece.length);
      }
      return ok;
    } catch (error) {
      this.#abort(exchange, error);
      return true;
    }
  }

  async #sendNext(exchange: Exchange, reader: BodyReader, offset: number): Promise<void> {
    await longWorkTurn('answers');
    exchange.hasTurn = false;
    if (!exchange.isOver) this.#corked(exchange, () => this.#sendOn(exchange, reader, offset));
  }

  #finished(exchange: Exchange): void {
    if (exchange.isOver) return;
    exchange.isOver = true;
    exchange.sending?.end();
    exchange.release?.();
    this.#openCount -= 1;
    if (this.#openCount === 0 && this.#drained !== null) setImmediate(this.#drained);
  }

  /** What is not answered before its handler returns may be aborted by the client. Most is. */
  #watch(exchange: Exchange): void {
    if (exchange.isWatched) return;
    exchange.isWatched = true;
    exchange.response.onAborted(() => {
      exchange.body?.abort();
      exchange.body = null;
      this.#finished(exchange);
    });
  }

  #close(exchange: Exchange): void {
    this.#watch(exchange);
    exchange.response.close();
  }

  /** For our own bugs in this file: the connection is closed, since nobody knows what was sent. */
  #abort(exchange: Exchange, error: unknown): void {
    this.#bugs.report(error, 'writing an answer');
    if (!exchange.isOver) this.#close(exchange);
  }
}
