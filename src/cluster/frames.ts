/**
 * What goes over a connection between two members, either way:
 *
 *   frame   length of its body u32 │ number u32 │ code u16 │ body
 *
 * The first frame of a connection has the key, and is answered only where that is wrong. Every other is a request, which its
 * asker has numbered, and is answered by a frame of that number, in whatever order answers are ready. The code of a
 * request says what is asked; that of a reply how it went, as statuses of HTTP do: 200, 304 for what the asker has, any
 * other with the reason as its body.
 */

import { POOLED_BODY_BYTES } from '../endpoints/limits.js';
import type { Allocate } from './message-bytes.js';

const HEAD_BYTES = 10;

/** What the first frame of a connection is, and what requests ask. */
export const CODES = { key: 1, question: 2, holdings: 3, names: 4, copy: 5, piece: 6, release: 7 } as const;

export type Asked = Exclude<keyof typeof CODES, 'key'>;

export interface FrameHead {
  readonly byteCount: number;
  readonly number: number;
  readonly code: number;
}

/** Bytes that are no frame that is expected: nothing more that comes over the connection can be read. */
export class FrameError extends Error {
  override name = 'FrameError';
}

export function frameHead({ byteCount, number, code }: FrameHead): Buffer {
  const head = Buffer.allocUnsafe(HEAD_BYTES);
  head.writeUInt32LE(byteCount, 0);
  head.writeUInt32LE(number, 4);
  head.writeUInt16LE(code, 8);
  return head;
}

export interface FramePorts {
  /** Where its body is to be put; null: nobody looks at it any more. Throws a FrameError. */
  readonly begin: (head: FrameHead) => Allocate | null;
  /** A frame that was begun is whole. */
  readonly end: (head: FrameHead, body: Uint8Array) => void;
}

/** Puts frames together from pieces of any size. */
export class FrameReader {
  readonly #ports: FramePorts;
  readonly #headBytes = Buffer.allocUnsafe(HEAD_BYTES);
  #headLength = 0;
  /** null: its head is not whole yet. */
  #head: FrameHead | null = null;
  #allocate: Allocate | null = null;
  /** For the body, or as much of it as was to be expected so far. */
  #room: Uint8Array = NOTHING;
  #receivedBytes = 0;

  constructor(ports: FramePorts) {
    this.#ports = ports;
  }

  /** Whether a part of a frame has come. */
  get isAmid(): boolean {
    return this.#headLength > 0;
  }

  /** `piece` may change after it. Throws a FrameError, and what the ports throw. */
  take(piece: Uint8Array): void {
    for (let at = 0; at < piece.length; )
      at += this.#head === null ? this.#takeHead(piece, at) : this.#takeBody(this.#head, piece, at);
  }

  /** How many bytes it took. */
  #takeHead(piece: Uint8Array, at: number): number {
    const part = piece.subarray(at, at + HEAD_BYTES - this.#headLength);
    this.#headBytes.set(part, this.#headLength);
    this.#headLength += part.length;
    if (this.#headLength < HEAD_BYTES) return part.length;
    const head: FrameHead = {
      byteCount: this.#headBytes.readUInt32LE(0),
      number: this.#headBytes.readUInt32LE(4),
      code: this.#headBytes.readUInt16LE(8),
    };
    this.#head = head;
    this.#allocate = this.#ports.begin(head);
    if (head.byteCount === 0) this.#end(head);
    return part.length;
  }

  #takeBody(head: FrameHead, piece: Uint8Array, at: number): number {
    const part = piece.subarray(at, at + head.byteCount - this.#receivedBytes);
    const receivedBytes = this.#receivedBytes + part.length;
    if (this.#allocate !== null) {
      if (receivedBytes > this.#room.length) this.#grow(head, receivedBytes, this.#allocate);
      this.#room.set(part, this.#receivedBytes);
    }
    this.#receivedBytes = receivedBytes;
    if (receivedBytes === head.byteCount) this.#end(head);
    return part.length;
  }

  /** By doubling from what a reply usually takes: a length alone takes no more. */
  #grow({ byteCount }: FrameHead, leastBytes: number, allocate: Allocate): void {
    const grown = Math.min(byteCount, Math.max(leastBytes, POOLED_BODY_BYTES, 2 * this.#room.length));
    const room = allocate(grown);
    room.set(this.#room.subarray(0, this.#receivedBytes));
    this.#room = room.subarray(0, grown);
  }

  #end(head: FrameHead): void {
    const isWanted = this.#allocate !== null;
    const body = this.#room;
    this.#head = null;
    this.#headLength = 0;
    this.#allocate = null;
    this.#room = NOTHING;
    this.#receivedBytes = 0;
    if (isWanted) this.#ports.end(head, body);
  }
}

const NOTHING = new Uint8Array(0);
