/** A member over connections that are kept. */

import type { TakenBuffer } from '../endpoints/body-pool.js';
import type { Asked } from './frames.js';
import { PIECE_TIMEOUT_MS } from './limits.js';
import type { Allocate } from './message-bytes.js';
import type { PeerLink } from './peer.js';
import { PeerConnection, type PeerTarget } from './peer-connection.js';

export class TcpPeerLink implements PeerLink {
  /** Of its own for each kind of request, so that none waits behind others whose replies are long. */
  readonly #holdings: PeerConnection;
  readonly #quick: PeerConnection;
  readonly #slow: PeerConnection;
  readonly #copies: PeerConnection;

  constructor(url: string, key: string) {
    const { protocol, hostname, port } = new URL(url);
    const isTls = protocol === 'https:';
    const target: PeerTarget = {
      isTls,
      // An IPv6 address in a URL has brackets.
      address: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: port === '' ? (isTls ? 443 : 80) : Number(port),
      key,
    };
    this.#holdings = new PeerConnection(target);
    this.#quick = new PeerConnection(target);
    this.#slow = new PeerConnection(target);
    this.#copies = new PeerConnection(target);
  }

  ask(question: Uint8Array, limitMs: number, isLong: boolean, room: TakenBuffer): Promise<Uint8Array> {
    const connection = isLong ? this.#slow : this.#quick;
    return whole(connection, 'question', question, limitMs, room.take);
  }

  holdings(known: Uint8Array, limitMs: number): Promise<Uint8Array> {
    return whole(this.#holdings, 'holdings', known, limitMs);
  }

  names(request: Uint8Array, limitMs: number): Promise<Uint8Array> {
    return whole(this.#slow, 'names', request, limitMs);
  }

  copy(request: Uint8Array): Promise<Uint8Array> {
    return whole(this.#copies, 'copy', request, PIECE_TIMEOUT_MS);
  }

  async piece(request: Uint8Array, allocate: Allocate): Promise<Uint8Array | null> {
    const { status, bytes } = await this.#copies.post('piece', request, PIECE_TIMEOUT_MS, allocate);
    return status === 304 ? null : wholeOf(status, bytes);
  }

  release(request: Uint8Array): Promise<unknown> {
    return whole(this.#copies, 'release', request, PIECE_TIMEOUT_MS);
  }

  close(): void {
    for (const connection of [this.#holdings, this.#quick, this.#slow, this.#copies]) connection.close();
  }
}

/** A member answered with another status than 200. */
export class PeerStatusError extends Error {
  override name = 'PeerStatusError';
  readonly status: number;

  constructor(status: number, text: string) {
    super(`answered ${status}: ${text}`);
    this.status = status;
  }
}

/** Rejects with a PeerStatusError. */
async function whole(
  connection: PeerConnection,
  asked: Asked,
  body: Uint8Array,
  limitMs: number,
  allocate?: Allocate,
): Promise<Uint8Array> {
  const { status, bytes } = await connection.post(asked, body, limitMs, allocate);
  return wholeOf(status, bytes);
}

/** Throws a PeerStatusError. */
function wholeOf(status: number, bytes: Uint8Array): Uint8Array {
  if (status === 200) return bytes;
  throw new PeerStatusError(status, Buffer.from(bytes.subarray(0, 200)).toString());
}
