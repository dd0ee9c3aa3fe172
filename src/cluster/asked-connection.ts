/**
 * A connection over which another member asks this one: takes the key, then requests, and answers each when its answer is
 * ready. Replies that are ready in one turn leave together.
 */

import type { Socket } from 'node:net';
import { HEAD_TIMEOUT_MS, KEEP_ALIVE_MS } from '../http/limits.js';
import { type Asked, CODES, FrameError, type FrameHead, FrameReader, frameHead } from './frames.js';
import { KEY_BYTES, REQUESTS_A_TURN, REQUESTS_AT_ONCE, UNSENT_REPLY_BYTES } from './limits.js';
import type { Allocate } from './message-bytes.js';

export interface AnsweredRequest {
  /** A status as of HTTP. */
  readonly status: number;
  /** With another status than 200 the reason; nothing with 304. */
  readonly body: Uint8Array | string;
  /** Called once, when the body has been sent or is no longer wanted. */
  readonly release: () => void;
}

export interface AskedConnectionPorts {
  readonly isKey: (key: string) => boolean;
  readonly mostBytes: (asked: Asked) => number;
  /** Neither throws nor rejects. */
  readonly answer: (asked: Asked, body: Uint8Array) => AnsweredRequest | Promise<AnsweredRequest>;
}

interface Due {
  readonly number: number;
  readonly asked: Asked;
  readonly body: Uint8Array;
}

const NAMES = new Map<number, keyof typeof CODES>(
  Object.entries(CODES).map(([name, code]) => [code, name as keyof typeof CODES]),
);
/** To a browser, or somebody who looks whether the port can be reached. */
const FOR_HTTP =
  'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\nthis is where members of a Logring cluster ask each other\n';

export class AskedConnection {
  readonly #socket: Socket;
  readonly #ports: AskedConnectionPorts;
  readonly #reader = new FrameReader({
    begin: (head) => this.#begin(head),
    end: (head, body) => this.#end(head, body),
  });
  #isKnown = false;
  #isFinishing = false;
  /** Requests that are not begun yet. */
  readonly #due: Due[] = [];
  #isTurnComing = false;
  /** Requests that are begun and not answered yet. */
  #begunCount = 0;

  constructor(socket: Socket, ports: AskedConnectionPorts) {
    this.#socket = socket;
    this.#ports = ports;
    const keyTimer = setTimeout(() => socket.destroy(), HEAD_TIMEOUT_MS);
    socket.on('data', (piece) => {
      this.#take(piece);
      if (this.#isKnown) clearTimeout(keyTimer);
    });
    // It may come in the turn in which the answers were begun.
    socket.on('drain', () => this.#answerLater());
    socket.once('close', () => clearTimeout(keyTimer));
    socket.on('error', () => socket.destroy());
    socket.setTimeout(KEEP_ALIVE_MS);
    socket.on('timeout', () => this.#idle());
  }

  /** Refuses what is asked from now on, and ends once all that was asked is answered. */
  finish(): void {
    this.#isFinishing = true;
    if (!this.#isKnown) this.#socket.destroy();
    else if (this.#isDone) this.#socket.end();
  }

  get #isDone(): boolean {
    return this.#begunCount === 0 && this.#due.length === 0;
  }

  /** Nothing came and nothing left for a while: that is right only while an answer is awaited. */
  #idle(): void {
    const isWaiting = !this.#isDone && !this.#reader.isAmid && this.#socket.writableLength === 0;
    if (isWaiting) this.#socket.setTimeout(KEEP_ALIVE_MS);
    else this.#socket.destroy();
  }

  #take(piece: Uint8Array): void {
    if (!this.#socket.writable) return;
    try {
      this.#reader.take(piece);
    } catch (error) {
      if (!(error instanceof FrameError)) throw error;
      if (this.#isKnown) this.#socket.destroy();
      else if (this.#socket.writable) this.#socket.end(FOR_HTTP);
    }
    this.#answerDue();
  }

  /**
   * So many a turn, and none while too many are under way, or too much of earlier replies is not taken; nor is more read
   * then.
   */
  #answerDue(): void {
    const socket = this.#socket;
    if (!socket.writable) this.#due.length = 0;
    const isHeldUp = () => this.#begunCount >= REQUESTS_AT_ONCE || socket.writableLength > UNSENT_REPLY_BYTES;
    for (let count = 0; count < REQUESTS_A_TURN && !isHeldUp(); count++) {
      const next = this.#due.shift();
      if (next === undefined) break;
      this.#answer(next);
    }
    const isMore = this.#due.length > 0;
    if (isMore !== socket.isPaused()) isMore ? socket.pause() : socket.resume();
    if (isMore && !isHeldUp()) this.#answerLater();
  }

  #answerLater(): void {
    if (this.#isTurnComing) return;
    this.#isTurnComing = true;
    setImmediate(() => {
      this.#isTurnComing = false;
      this.#answerDue();
    });
  }

  #begin({ code, number, byteCount }: FrameHead): Allocate {
    const name = NAMES.get(code);
    if (name === undefined || (name === 'key') === this.#isKnown || (name === 'key') !== (number === 0))
      throw new FrameError('it is no request');
    if (byteCount > (name === 'key' ? KEY_BYTES : this.#ports.mostBytes(name)))
      throw new FrameError('it is too long');
    return Buffer.allocUnsafe;
  }

  #end({ code, number }: FrameHead, body: Uint8Array): void {
    if (this.#isKnown) {
      this.#due.push({ number, asked: NAMES.get(code) as Asked, body });
      return;
    }
    this.#isKnown = this.#ports.isKey(Buffer.from(body).toString());
    if (this.#isKnown) return;
    this.#write(0, {
      status: 401,
      body: 'a key of LOGRING_CLUSTER_KEYS is needed',
      release: () => undefined,
    });
    this.#socket.end();
    throw new FrameError('the key is wrong');
  }

  #answer({ number, asked, body }: Due): void {
    this.#begunCount++;
    const answer = this.#isFinishing ? STOPPING : this.#ports.answer(asked, body);
    if (answer instanceof Promise)
      void answer.then((later) => {
        this.#reply(number, later);
        if (this.#due.length > 0) this.#answerLater();
      });
    else this.#reply(number, answer);
  }

  #reply(number: number, answer: AnsweredRequest): void {
    this.#begunCount--;
    if (this.#socket.writable) this.#write(number, answer);
    else answer.release();
    if (this.#isFinishing && this.#isDone) this.#socket.end();
  }

  /** With all else of the turn. */
  #write(number: number, { status, body, release }: AnsweredRequest): void {
    const socket = this.#socket;
    if (socket.writableCorked === 0) {
      socket.cork();
      process.nextTick(() => socket.uncork());
    }
    const bytes = typeof body === 'string' ? Buffer.from(body) : body;
    socket.write(frameHead({ byteCount: bytes.length, number, code: status }));
    socket.write(bytes, release);
  }
}

const STOPPING: AnsweredRequest = { status: 503, body: 'it is being stopped', release: () => undefined };
