/**
 * Connections to another member, each for one request at a time, and as much of HTTP/1.1 as members speak with each
 * other: a reply has a Content-Length, or is a 304. Of a client of Node's own this takes a third of the processor time.
 *
 *   requests ──► an idle connection │ a new one │ the queue, when there are PEER_CONNECTIONS
 *   replies  ──► read into one buffer for all connections, and from there to memory of their own, for large ones from
 *                `allocate`
 *   silence, a broken connection, bytes that are no reply ──► the request is rejected, its connection closed
 *   one that was used before, closed without a byte ──► the other side may not have seen the request: it is sent again
 */

import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { POOLED_BODY_BYTES } from '../endpoints/limits.js';
import { CLUSTER_KEY_HEADER } from './cluster-paths.js';
import { PEER_CONNECTIONS, PEER_IDLE_MS, PEER_READ_BYTES, REPLY_BYTES, REPLY_HEAD_BYTES } from './limits.js';
import type { Allocate } from './message-bytes.js';

export interface PeerTarget {
  readonly isTls: boolean;
  readonly address: string;
  readonly port: number;
  /** As the Host header says it. */
  readonly host: string;
  readonly key: string;
}

export interface PeerReply {
  readonly status: number;
  readonly bytes: Uint8Array;
}

interface Request {
  readonly message: Uint8Array;
  readonly allocate: Allocate;
  readonly resolve: (reply: PeerReply) => void;
  readonly reject: (error: Error) => void;
}

export class PeerConnections {
  readonly #target: PeerTarget;
  readonly #all = new Set<Connection>();
  /** Most recently used last. */
  readonly #idle: Connection[] = [];
  readonly #queue = new Set<Request>();
  /** Of TLS, so that a new connection need not begin from nothing. */
  #session: Buffer | undefined;
  #isClosed = false;

  constructor(target: PeerTarget) {
    this.#target = target;
  }

  /** Rejects when there is no whole reply within the time. */
  post(
    path: string,
    body: Uint8Array,
    limitMs: number,
    allocate: Allocate = Buffer.allocUnsafe,
  ): Promise<PeerReply> {
    const { host, key } = this.#target;
    const head = `POST ${path} HTTP/1.1\r\nHost: ${host}\r\n${CLUSTER_KEY_HEADER}: ${key}\r\nContent-Length: ${body.length}\r\n\r\n`;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        request.reject(new Error(`did not answer within ${limitMs} ms`));
        this.#queue.delete(request);
        for (const connection of this.#all) connection.giveUp(request);
      }, limitMs);
      const request: Request = {
        message: messageOf(head, body),
        allocate,
        resolve: (reply) => {
          clearTimeout(timer);
          resolve(reply);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
      };
      this.#send(request);
    });
  }

  /** Requests that are under way, and any after, are rejected. */
  close(): void {
    this.#isClosed = true;
    for (const request of this.#queue) request.reject(closedLink());
    this.#queue.clear();
    for (const connection of this.#all) connection.fail(closedLink());
  }

  #send(request: Request): void {
    if (this.#isClosed) {
      request.reject(closedLink());
      return;
    }
    this.#start(request, this.#takeIdle() ?? this.#open());
  }

  #start(request: Request, connection: Connection | null): void {
    if (connection === null) this.#queue.add(request);
    else connection.send(request);
  }

  #takeIdle(): Connection | null {
    let connection = this.#idle.pop();
    while (connection !== undefined && !connection.isOpen) connection = this.#idle.pop();
    return connection ?? null;
  }

  /** null: there are enough. */
  #open(): Connection | null {
    if (this.#all.size >= PEER_CONNECTIONS) return null;
    const connection: Connection = new Connection(this.#target, this.#session, {
      onSession: (session) => {
        this.#session = session;
      },
      onIdle: () => {
        this.#idle.push(connection);
        this.#goOn();
      },
      onUnseen: (request) => {
        if (this.#isClosed) request.reject(closedLink());
        else this.#start(request, this.#open());
      },
      onClosed: () => {
        this.#all.delete(connection);
        const at = this.#idle.indexOf(connection);
        if (at >= 0) this.#idle.splice(at, 1);
        this.#goOn();
      },
    });
    this.#all.add(connection);
    return connection;
  }

  #goOn(): void {
    const [next] = this.#queue;
    if (next === undefined) return;
    const connection = this.#takeIdle() ?? this.#open();
    if (connection === null) return;
    this.#queue.delete(next);
    connection.send(next);
  }
}

interface ConnectionPorts {
  readonly onSession: (session: Buffer) => void;
  readonly onIdle: () => void;
  /** It was closed before anything came of a request, and had been used before: that may have crossed its end. */
  readonly onUnseen: (request: Request) => void;
  /** Called once. */
  readonly onClosed: () => void;
}

class Connection {
  readonly #socket: Socket;
  readonly #ports: ConnectionPorts;
  #request: Request | null = null;
  #reader = new ReplyReader();
  #isUsed = false;
  /** Whether something of the reply has come. */
  #hasBegun = false;

  constructor(target: PeerTarget, session: Buffer | undefined, ports: ConnectionPorts) {
    const socket = socketTo(target, session, (piece) => this.#take(piece));
    this.#socket = socket;
    this.#ports = ports;
    socket.setNoDelay(true);
    socket.setTimeout(PEER_IDLE_MS);
    socket.on('session', ports.onSession);
    socket.on('error', (error) => this.fail(error));
    // A request has a time of its own.
    socket.on('timeout', () => this.#request === null && this.close());
    socket.on('close', () => {
      this.fail(new Error('closed the connection'));
      ports.onClosed();
    });
  }

  /** Whether nothing has been heard of its end. */
  get isOpen(): boolean {
    return this.#socket.writable;
  }

  send(request: Request): void {
    this.#request = request;
    this.#hasBegun = false;
    this.#socket.write(request.message);
  }

  /** Closes the connection if it is the one of this request: its reply may still come. */
  giveUp(request: Request): void {
    if (this.#request !== request) return;
    this.#request = null;
    this.close();
  }

  close(): void {
    this.#socket.destroy();
  }

  /** Closes it; its request is rejected, or sent again. */
  fail(error: Error): void {
    const request = this.#request;
    this.#request = null;
    this.close();
    if (request === null) return;
    if (this.#isUsed && !this.#hasBegun) this.#ports.onUnseen(request);
    else request.reject(error);
  }

  #take(piece: Buffer): void {
    const request = this.#request;
    // Nobody asked.
    if (request === null) {
      this.close();
      return;
    }
    this.#hasBegun = true;
    try {
      const reply = this.#reader.take(piece, request.allocate);
      if (reply === null) return;
      this.#isUsed = true;
      const { isLast } = this.#reader;
      this.#request = null;
      this.#reader = new ReplyReader();
      request.resolve(reply);
      if (isLast) this.close();
      else this.#ports.onIdle();
    } catch (error) {
      this.fail(error as Error);
    }
  }
}

const NOTHING = Buffer.alloc(0);
const END_OF_HEAD = '\r\n\r\n';

class ReplyReader {
  /** Of a head that is not whole yet. */
  #started: Buffer = NOTHING;
  #status = 0;
  #byteCount = 0;
  /** For the body, or as much of it as was to be expected so far. */
  #room: Uint8Array = NOTHING;
  #receivedBytes = 0;
  /** Whether the connection ends with it. */
  isLast = false;

  /** null: it is not whole yet; `piece` is read into again. Throws for what is no reply that a member sends. */
  take(piece: Buffer, allocate: Allocate): PeerReply | null {
    if (this.#status !== 0) return this.#takeBody(piece, allocate);
    const hasBegun = this.#started.length > 0;
    const started = hasBegun ? Buffer.concat([this.#started, piece]) : piece;
    const end = started.subarray(0, REPLY_HEAD_BYTES).indexOf(END_OF_HEAD);
    if (end < 0) {
      if (started.length >= REPLY_HEAD_BYTES) throw new Error('sent no reply');
      this.#started = hasBegun ? started : Buffer.from(piece);
      return null;
    }
    this.#takeHead(started.toString('latin1', 0, end + 2));
    return this.#takeBody(started.subarray(end + END_OF_HEAD.length), allocate);
  }

  /** `text`: up to the end of the last header line. */
  #takeHead(text: string): void {
    const status = /^HTTP\/1\.1 ([2-5]\d\d) /.exec(text)?.[1];
    const length = status === '304' ? '0' : /\r\ncontent-length: *(\d{1,12})\r\n/i.exec(text)?.[1];
    if (status === undefined || length === undefined) throw new Error('sent no reply');
    this.#status = Number(status);
    this.#byteCount = Number(length);
    this.isLast = /\r\nconnection: *close\r\n/i.test(text);
  }

  #takeBody(piece: Uint8Array, allocate: Allocate): PeerReply | null {
    const byteCount = this.#byteCount;
    if (byteCount > REPLY_BYTES || this.#receivedBytes + piece.length > byteCount)
      throw new Error('sent more than a reply has');
    const receivedBytes = this.#receivedBytes + piece.length;
    if (receivedBytes > this.#room.length) this.#grow(receivedBytes, allocate);
    this.#room.set(piece, this.#receivedBytes);
    this.#receivedBytes = receivedBytes;
    return receivedBytes < byteCount ? null : { status: this.#status, bytes: this.#room };
  }

  /** By doubling from what a reply usually takes: a length alone takes no more. */
  #grow(leastBytes: number, allocate: Allocate): void {
    const wanted = Math.max(leastBytes, POOLED_BODY_BYTES, 2 * this.#room.length);
    const byteCount = Math.min(this.#byteCount, wanted);
    const room = byteCount <= PEER_READ_BYTES ? Buffer.allocUnsafe(byteCount) : allocate(byteCount);
    room.set(this.#room.subarray(0, this.#receivedBytes));
    this.#room = room.subarray(0, byteCount);
  }
}

/** `head`: ASCII. */
function messageOf(head: string, body: Uint8Array): Buffer {
  const message = Buffer.allocUnsafe(head.length + body.length);
  message.write(head, 'latin1');
  message.set(body, head.length);
  return message;
}

/** Of all connections: on Linux and macOS what one has read is taken before another reads. */
const readBuffer = Buffer.allocUnsafeSlow(PEER_READ_BYTES);

/** `onRead` is told of bytes that are overwritten by the next ones. */
function socketTo(
  { isTls, address, port }: PeerTarget,
  session: Buffer | undefined,
  onRead: (piece: Buffer) => void,
): Socket {
  const onread = {
    buffer: readBuffer,
    callback: (byteCount: number) => {
      onRead(readBuffer.subarray(0, byteCount));
      return true;
    },
  };
  const to = { host: address, port, onread };
  if (!isTls) return connect(to);
  const name = isIP(address) === 0 ? { servername: address } : {};
  return connectTls({ ...to, ...name, ...(session === undefined ? {} : { session }) });
}

function closedLink(): Error {
  return new Error('the link to it was closed');
}
