/** A server of either kind on a free port of the loopback, and raw connections to it. */

import { connect, type Socket } from 'node:net';
import type { AnswersInFlight } from '../../src/http/server/answers-in-flight.js';
import { createHttpServer } from '../../src/http/server/back-ends.js';
import type { BackEndName, BugReporter, HttpHandler, HttpServer } from '../../src/http/server/server.js';
import type { TlsIdentity } from '../../src/http/server/tls-identity.js';
import { loadUws } from '../../src/http/server/uws-binary.js';

/** Both servers where uWebSockets.js loads; the start-up line of the service says why where it doesn't. */
export const BACK_ENDS: readonly BackEndName[] =
  typeof loadUws() === 'string' ? ['node:http'] : ['uWebSockets.js', 'node:http'];

export class RunningServer {
  readonly server: HttpServer;
  readonly port: number;

  private constructor(server: HttpServer, port: number) {
    this.server = server;
    this.port = port;
  }

  static async start(
    forced: BackEndName,
    handler: HttpHandler,
    bugs: BugReporter,
    identity?: TlsIdentity,
    inFlight?: AnswersInFlight,
  ): Promise<RunningServer> {
    const tls = identity === undefined ? {} : { identity };
    const { server } = createHttpServer({
      handler,
      bugs,
      forced,
      ...tls,
      ...(inFlight === undefined ? {} : { inFlight }),
    });
    return new RunningServer(server, await server.listen('127.0.0.1', 0));
  }

  static async of(server: HttpServer): Promise<RunningServer> {
    return new RunningServer(server, await server.listen('127.0.0.1', 0));
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  connect(): RawConnection {
    return new RawConnection(connect(this.port, '127.0.0.1'));
  }

  /**
   * Sends the bytes, says that no more will come, and returns all that came back until the connection was
   * closed.
   */
  async exchange(bytes: string): Promise<string> {
    const connection = this.connect();
    connection.socket.end(Buffer.from(bytes, 'latin1'));
    await connection.closed;
    return connection.received;
  }
}

/** A connection that gathers what it receives. */
export class RawConnection {
  readonly socket: Socket;
  readonly closed: Promise<void>;
  received = '';
  #waiting: (() => void) | null = null;

  constructor(socket: Socket) {
    this.socket = socket;
    socket.setEncoding('latin1');
    socket.on('data', (text: string) => {
      this.received += text;
      this.#waiting?.();
    });
    // A reset is one way for the server to close; `closed` follows.
    socket.on('error', () => this.#waiting?.());
    this.closed = new Promise((resolve) => {
      socket.on('close', () => {
        this.#waiting?.();
        resolve();
      });
    });
  }

  send(text: string): void {
    this.socket.write(Buffer.from(text, 'latin1'));
  }

  /** Resolves once what was received ends so; throws when the connection closes before. */
  async receivedUntil(end: string): Promise<string> {
    while (!this.received.endsWith(end)) {
      if (this.socket.destroyed) throw new Error(`closed after ${JSON.stringify(this.received)}`);
      await new Promise<void>((resolve) => {
        this.#waiting = resolve;
      });
    }
    return this.received;
  }
}

/** `200 405`: the status codes of all answers in what was received. */
export function statusesOf(received: string): string {
  return [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => status).join(' ');
}
