/**
 * Reads a broker's responses from a socket into one buffer each. Node would allocate 64 KB for every piece
 * that it reads, and kafkajs would join the pieces: megabytes of garbage for kilobytes that come.
 *
 * https://kafka.apache.org/protocol.html#protocol_common: a response begins with its length, int32,
 * big-endian.
 */

import { JOINED_RESPONSE_BYTES, SOCKET_READ_BYTES } from '../limits.js';

const LENGTH_BYTES = 4;

export class ResponseReader {
  /** What the socket reads into, again and again. */
  readonly buffer = Buffer.allocUnsafeSlow(SOCKET_READ_BYTES);
  readonly #take: (bytes: Buffer) => void;
  readonly #length = Buffer.alloc(LENGTH_BYTES);
  #lengthBytes = 0;
  /**
   * Of the response that is coming, its length included; null between two, and while one comes that is too
   * long.
   */
  #response: Buffer | null = null;
  #responseBytes = 0;
  /** Of a response that is too long to be joined, those that are still to come. */
  #passingBytes = 0;

  /**
   * `take` gets whole responses, each with its length; of longer ones than JOINED_RESPONSE_BYTES the pieces.
   */
  constructor(take: (bytes: Buffer) => void) {
    this.#take = take;
  }

  /** So many bytes are in the buffer. */
  read(byteCount: number): void {
    let start = 0;
    while (start < byteCount) start = this.#readFrom(start, byteCount);
  }

  /** Returns up to where it came. */
  #readFrom(start: number, end: number): number {
    if (this.#passingBytes > 0) {
      const length = Math.min(this.#passingBytes, end - start);
      this.#passingBytes -= length;
      this.#take(Buffer.from(this.buffer.subarray(start, start + length)));
      return start + length;
    }
    if (this.#response === null) {
      this.#length[this.#lengthBytes++] = this.buffer[start];
      if (this.#lengthBytes === LENGTH_BYTES) this.#begin();
      return start + 1;
    }
    const copied = this.buffer.copy(this.#response, this.#responseBytes, start, end);
    this.#responseBytes += copied;
    if (this.#responseBytes === this.#response.length) this.#finish(this.#response);
    return start + copied;
  }

  #begin(): void {
    this.#lengthBytes = 0;
    const length = this.#length.readInt32BE(0);
    // Whatever it is that speaks there, kafkajs says what is wrong with it.
    if (length <= 0 || length > JOINED_RESPONSE_BYTES) {
      this.#passingBytes = length < 0 ? Number.POSITIVE_INFINITY : length;
      this.#take(Buffer.from(this.#length));
      return;
    }
    this.#response = Buffer.allocUnsafeSlow(LENGTH_BYTES + length);
    this.#responseBytes = this.#length.copy(this.#response);
  }

  #finish(response: Buffer): void {
    this.#response = null;
    this.#take(response);
  }
}
