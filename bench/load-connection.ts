/**
 * A connection that costs its client as little as it can: of HTTP it knows no more than where an answer ends.
 */

import { connect, type Socket } from 'node:net';

const HOST = '127.0.0.1';
const RECEIVE_BYTES = 256 * 1024;
const HEAD_END = Buffer.from('\r\n\r\n');
const OK = 'HTTP/1.1 200';

/** A request on its way. */
export interface Asked {
  readonly pathIndex: number;
  readonly sinceUs: number;
}

/** `byteCount`: of the answer, its head included. */
type Answered = (asked: Asked, isOk: boolean, byteCount: number) => void;

export class LoadConnection {
  readonly #port: number;
  readonly #answered: Answered;
  readonly #asked: Asked[] = [];
  /** null once the server has closed it, with nothing on its way. */
  #socket: Socket | null;
  #isOk = false;
  #head: Buffer = Buffer.alloc(0);
  #headBytes = 0;
  #bodyBytes = 0;
  /** Of the body under way; -1 while the head is awaited. */
  #left = -1;

  constructor(port: number, answered: Answered) {
    this.#port = port;
    this.#answered = answered;
    this.#socket = this.#connect();
  }

  get pendingCount(): number {
    return this.#asked.length;
  }

  ask(asked: Asked, request: string): void {
    this.#socket ??= this.#connect();
    this.#asked.push(asked);
    this.#socket.write(request, 'latin1');
  }

  close(): void {
    this.#socket?.destroy();
  }

  #connect(): Socket {
    const socket = connect({
      host: HOST,
      port: this.#port,
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafe(RECEIVE_BYTES),
        callback: (byteCount, buffer) => {
          this.#take(Buffer.from(buffer.buffer, buffer.byteOffset, byteCount));
          return true;
        },
      },
    });
    socket.once('error', fail);
    socket.once('close', () => {
      if (this.#asked.length > 0) fail(new Error('the server closed a connection'));
      this.#socket = null;
    });
    return socket;
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
      this.#answered(this.#asked.shift()!, this.#isOk, this.#headBytes + this.#bodyBytes);
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
    if (length === null) throw new Error(`answered: ${head}`);
    this.#isOk = head.startsWith(OK);
    this.#headBytes = end + HEAD_END.length - start;
    this.#bodyBytes = Number(length[1]);
    this.#left = this.#bodyBytes;
    const before = this.#head.length;
    this.#head = Buffer.alloc(0);
    return before > 0 ? from + this.#headBytes - before : start + this.#headBytes;
  }
}

export function requestOf(path: string, key: string): string {
  return `GET ${path} HTTP/1.1\r\nHost: ${HOST}\r\nX-API-KEY: ${key}\r\n\r\n`;
}

/** Without its client a bench has no figures. */
export function fail(error: unknown): never {
  process.stderr.write(`load client: ${error instanceof Error ? error.stack : String(error)}\n`);
  process.exit(1);
}
