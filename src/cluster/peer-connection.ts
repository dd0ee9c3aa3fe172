/**
 * A connection to another member, kept, over which any number of requests are under way.
 *
 *   requests ──► sent together at the end of the turn, over a new connection if there is none
 *   replies  ──► read into one buffer for all connections, and from there to memory of their own, for large ones from
 *                `allocate`
 *   no reply in time ──► rejected; what is asked from then on goes over a new connection, as this one may be broken, or a
 *                large reply be on its way that nobody wants any more. What else is under way over it goes on
 *   a broken connection, bytes that are no reply ──► the requests that are under way are rejected
 *   one that was used before, closed before anything of a reply came ──► the other side may not have seen the request: it
 *                is sent again, once
 */

import { connect, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { SMALL_BODY_BYTES } from '../endpoints/limits.js';
import { type Asked, CODES, FrameError, type FrameHead, FrameReader, frameHead } from './frames.js';
import { PEER_IDLE_MS, PEER_READ_BYTES, REPLY_BYTES } from './limits.js';
import type { Allocate } from './message-bytes.js';

export interface PeerTarget {
  readonly isTls: boolean;
  readonly address: string;
  readonly port: number;
  readonly key: string;
}

export interface PeerReply {
  readonly status: number;
  readonly bytes: Uint8Array;
}

interface Request {
  readonly head: Buffer;
  readonly body: Uint8Array;
  readonly allocate: Allocate;
  readonly resolve: (reply: PeerReply) => void;
  readonly reject: (error: Error) => void;
  /** null: it was not sent yet. */
  line: Line | null;
  isSentAgain: boolean;
}

export class PeerConnection {
  readonly #target: PeerTarget;
  /** What is asked goes over this. */
  #line: Line | null = null;
  /** That, and those over which something is under way still. */
  readonly #lines = new Set<Line>();
  #lastNumber = 0;
  /** To be sent at the end of the turn. */
  #outgoing: Request[] = [];
  /** Of TLS, so that a new connection need not begin from nothing. */
  #session: Buffer | undefined;
  #isClosed = false;

  constructor(target: PeerTarget) {
    this.#target = target;
  }

  /** Rejects when there is no whole reply within the time. */
  post(
    asked: Asked,
    body: Uint8Array,
    limitMs: number,
    allocate: Allocate = Buffer.allocUnsafe,
  ): Promise<PeerReply> {
    this.#lastNumber = (this.#lastNumber % MOST_NUMBER) + 1;
    const number = this.#lastNumber;
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        request.reject(new Error(`did not answer within ${limitMs} ms`));
        this.#outgoing = this.#outgoing.filter((one) => one !== request);
        request.line?.giveUp(request);
        if (request.line === this.#line) this.#line = null;
      }, limitMs);
      const request: Request = {
        head: frameHead({ byteCount: body.length, number, code: CODES[asked] }),
        body,
        allocate,
        resolve: (reply) => {
          clearTimeout(timer);
          resolve(reply);
        },
        reject: (error) => {
          clearTimeout(timer);
          reject(error);
        },
        line: null,
        isSentAgain: false,
      };
      this.#send(request);
    });
  }

  /** Requests that are under way, and any after, are rejected. */
  close(): void {
    this.#isClosed = true;
    for (const request of this.#outgoing) request.reject(closedLink());
    this.#outgoing = [];
    for (const line of this.#lines) line.fail(closedLink());
  }

  #send(request: Request): void {
    if (this.#isClosed) {
      request.reject(closedLink());
      return;
    }
    this.#outgoing.push(request);
    if (this.#outgoing.length === 1) setImmediate(() => this.#flush());
  }

  #flush(): void {
    const requests = this.#outgoing;
    this.#outgoing = [];
    if (requests.length > 0) this.#open().send(requests);
  }

  #open(): Line {
    if (this.#line?.isOpen === true) return this.#line;
    const line: Line = new Line(this.#target, this.#session, {
      onSession: (session) => {
        this.#session = session;
      },
      onUnseen: (request) => {
        request.isSentAgain = true;
        this.#send(request);
      },
      onClosed: () => this.#lines.delete(line),
    });
    this.#line = line;
    this.#lines.add(line);
    return line;
  }
}

interface LinePorts {
  readonly onSession: (session: Buffer) => void;
  /** It was closed before anything came of a request, and had been used before: that may have crossed its end. */
  readonly onUnseen: (request: Request) => void;
  readonly onClosed: () => void;
}

/** One connection from its beginning to its end. */
class Line {
  readonly #socket: Socket;
  readonly #ports: LinePorts;
  /** Under way, by their numbers. */
  readonly #requests = new Map<number, Request>();
  readonly #reader = new FrameReader({
    begin: (head) => this.#begin(head),
    end: (head, body) => this.#end(head, body),
  });
  /** Of the reply that is coming. */
  #coming: Request | null = null;
  #isUsed = false;

  constructor(target: PeerTarget, session: Buffer | undefined, ports: LinePorts) {
    const socket = socketTo(target, session, (piece) => this.#take(piece));
    this.#socket = socket;
    this.#ports = ports;
    socket.setNoDelay(true);
    socket.setTimeout(PEER_IDLE_MS);
    socket.on('session', ports.onSession);
    socket.on('error', (error) => this.fail(error));
    // A request has a time of its own.
    socket.on('timeout', () =>
      this.#requests.size === 0 ? socket.destroy() : socket.setTimeout(PEER_IDLE_MS),
    );
    const closed = () => this.fail(new Error('closed the connection'));
    socket.on('end', closed);
    socket.on('close', () => {
      closed();
      ports.onClosed();
    });
    const key = Buffer.from(target.key);
    socket.write(Buffer.concat([frameHead({ byteCount: key.length, number: 0, code: CODES.key }), key]));
  }

  /** Whether nothing has been heard of its end. */
  get isOpen(): boolean {
    return this.#socket.writable;
  }

  send(requests: readonly Request[]): void {
    for (const request of requests) {
      request.line = this;
      this.#requests.set(numberOf(request), request);
    }
    this.#socket.write(Buffer.concat(requests.flatMap(({ head, body }) => [head, body])));
  }

  /** Nothing is asked over it any more. */
  giveUp(request: Request): void {
    this.#requests.delete(numberOf(request));
    if (this.#requests.size === 0) this.#socket.destroy();
  }

  /** Closes it; requests that are under way are rejected, or sent again. */
  fail(error: Error): void {
    const requests = [...this.#requests.values()];
    this.#requests.clear();
    this.#socket.destroy();
    for (const request of requests)
      if (this.#isUsed && request !== this.#coming && !request.isSentAgain) this.#ports.onUnseen(request);
      else request.reject(error);
  }

  #take(piece: Uint8Array): void {
    try {
      this.#reader.take(piece);
    } catch (error) {
      this.fail(error as Error);
    }
  }

  #begin({ number, byteCount }: FrameHead): Allocate | null {
    const request = this.#requests.get(number);
    this.#coming = request ?? null;
    if (byteCount > REPLY_BYTES) throw new FrameError('sent no reply');
    if (number === KEY_REFUSED) return Buffer.allocUnsafe;
    if (request === undefined) return null;
    const { allocate } = request;
    return (wanted) => (wanted < SMALL_BODY_BYTES ? Buffer.allocUnsafe(wanted) : allocate(wanted));
  }

  #end({ number, code }: FrameHead, bytes: Uint8Array): void {
    this.#isUsed = true;
    this.#coming = null;
    if (number === KEY_REFUSED) {
      for (const request of this.#requests.values()) request.resolve({ status: code, bytes });
      this.#requests.clear();
      this.#socket.destroy();
      return;
    }
    const request = this.#requests.get(number);
    this.#requests.delete(number);
    request?.resolve({ status: code, bytes });
  }
}

const MOST_NUMBER = 2 ** 32 - 1;
/** The number of what says that the key was refused. */
const KEY_REFUSED = 0;

function numberOf({ head }: Request): number {
  return head.readUInt32LE(4);
}

/** Of all connections: on Linux and macOS what one has read is taken before another reads. */
const readBuffer = Buffer.allocUnsafeSlow(PEER_READ_BYTES);

/** `onRead` is told of bytes that are overwritten by the next ones. */
function socketTo(
  { isTls, address, port }: PeerTarget,
  session: Buffer | undefined,
  onRead: (piece: Uint8Array) => void,
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
