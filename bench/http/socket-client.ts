/**
 * A client process that costs as little as it can: plain sockets, one receive buffer each, no more of HTTP
 * than where an answer ends. Closed loop: each connection keeps so many requests on their way. Open loop:
 * requests leave when they are due, whatever comes back, and a latency counts from then.
 *
 * Started by a bench as a child process; takes a SocketOrder and returns a SocketReport, by messages.
 */

import { connect, type Socket } from 'node:net';
import { monotonicUs } from '../../src/system-clock.js';

export interface SocketOrder {
  readonly port: number;
  readonly key: string;
  /** Asked in turn. */
  readonly paths: readonly string[];
  readonly seconds: number;
  readonly connections: number;
  /** Requests a second of an open loop; null: closed. */
  readonly rate: number | null;
  /** Of a closed loop: requests on their way, on each connection. */
  readonly pipelined: number;
}

export interface SocketReport {
  /** From when it was due (open loop) or sent (closed loop) to the last byte. */
  readonly latenciesUs: readonly number[];
  readonly elapsedUs: number;
  /** Of one answer, the last, with its head. */
  readonly answerBytes: number;
}

const HOST = '127.0.0.1';
const RECEIVE_BYTES = 256 * 1024;
const HEAD_END = Buffer.from('\r\n\r\n');
const OK = 'HTTP/1.1 200';

class Connection {
  readonly #socket: Socket;
  readonly #answered: (sinceUs: number, byteCount: number) => void;
  readonly #sinceUs: number[] = [];
  #head: Buffer = Buffer.alloc(0);
  #headBytes = 0;
  #bodyBytes = 0;
  /** Of the body under way; -1 while the head is awaited. */
  #left = -1;

  constructor(port: number, answered: (sinceUs: number, byteCount: number) => void) {
    this.#answered = answered;
    this.#socket = connect({
      host: HOST,
      port,
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafe(RECEIVE_BYTES),
        callback: (byteCount, buffer) => {
          this.#take(Buffer.from(buffer.buffer, buffer.byteOffset, byteCount));
          return true;
        },
      },
    });
    this.#socket.once('error', fail);
    this.#socket.once('close', () => {
      if (this.#sinceUs.length > 0) fail(new Error('the server closed a connection'));
    });
  }

  get pendingCount(): number {
    return this.#sinceUs.length;
  }

  ask(request: string, sinceUs: number): void {
    this.#sinceUs.push(sinceUs);
    this.#socket.write(request, 'latin1');
  }

  close(): void {
    this.#socket.destroy();
  }

  #take(piece: Buffer): void {
    let position = 0;
    while (position < piece.length) {
      if (this.#left < 0) {
        position = this.#takeHead(piece, position);
        if (this.#left < 0) return;
      }
      const taken = Math.min(this.#left, piece.length - position);
      position += taken;
      this.#left -= taken;
      if (this.#left > 0) return;
      this.#left = -1;
      this.#answered(this.#sinceUs.shift()!, this.#headBytes + this.#bodyBytes);
    }
  }

  /** Returns where the body begins, once the head is there. */
  #takeHead(piece: Buffer, from: number): number {
    let bytes = piece;
    let start = from;
    if (this.#head.length > 0) {
      bytes = Buffer.concat([this.#head, piece.subarray(from)]);
      start = 0;
    }
    const end = bytes.indexOf(HEAD_END, start);
    if (end < 0) {
      this.#head = Buffer.from(bytes.subarray(start));
      return piece.length;
    }
    const head = bytes.toString('latin1', start, end + 2);
    const length = /\r\ncontent-length: (\d+)\r\n/i.exec(head);
    if (!head.startsWith(OK) || length === null) throw new Error(`answered: ${head}`);
    this.#headBytes = end + HEAD_END.length - start;
    this.#bodyBytes = Number(length[1]);
    this.#left = this.#bodyBytes;
    const before = this.#head.length;
    this.#head = Buffer.alloc(0);
    return before > 0 ? from + this.#headBytes - before : start + this.#headBytes;
  }
}

async function run(order: SocketOrder): Promise<SocketReport> {
  const latenciesUs: number[] = [];
  let answerBytes = 0;
  let asked = 0;
  const requests = order.paths.map(
    (path) => `GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\nX-API-KEY: ${order.key}\r\n\r\n`,
  );
  const next = () => requests[asked++ % requests.length];
  const startUs = monotonicUs();
  const endUs = startUs + order.seconds * 1e6;
  const answered = (sinceUs: number, byteCount: number) => {
    latenciesUs.push(monotonicUs() - sinceUs);
    answerBytes = byteCount;
  };
  const connections: Connection[] = Array.from(
    { length: order.connections },
    (_, i) =>
      new Connection(order.port, (sinceUs, byteCount) => {
        answered(sinceUs, byteCount);
        const nowUs = monotonicUs();
        if (order.rate === null && nowUs < endUs) connections[i].ask(next(), nowUs);
      }),
  );
  if (order.rate === null) {
    for (const connection of connections)
      for (let i = 0; i < order.pipelined; i++) connection.ask(next(), startUs);
    await untilIdle(connections, endUs);
  } else {
    const { rate } = order;
    const total = Math.floor(rate * order.seconds);
    while (asked < total) {
      const due = Math.min(total, Math.floor(((monotonicUs() - startUs) * rate) / 1e6) + 1);
      while (asked < due) {
        const dueUs = startUs + (asked * 1e6) / rate;
        idlest(connections, asked).ask(next(), dueUs);
      }
      // A timer: looking at the clock all the time would take the core from those that it shares it with.
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await untilIdle(connections, endUs);
  }
  const elapsedUs = monotonicUs() - startUs;
  for (const connection of connections) connection.close();
  return { latenciesUs, elapsedUs, answerBytes };
}

function idlest(connections: readonly Connection[], turn: number): Connection {
  for (let i = 0; i < connections.length; i++) {
    const connection = connections[(turn + i) % connections.length];
    if (connection.pendingCount === 0) return connection;
  }
  return connections[turn % connections.length];
}

async function untilIdle(connections: readonly Connection[], endUs: number): Promise<void> {
  while (monotonicUs() < endUs || connections.some(({ pendingCount }) => pendingCount > 0))
    await new Promise((resolve) => setTimeout(resolve, 1));
}

function fail(error: unknown): never {
  process.stderr.write(`socket client: ${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
}

// Whoever started it is gone: nobody reads a report.
process.once('disconnect', () => process.exit(1));

process.once('message', (order: SocketOrder) => {
  run(order).then((report) => process.send?.(report, () => process.exit(0)), fail);
});
