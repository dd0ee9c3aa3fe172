/** A member over HTTP/1.1, on connections that are kept. */

import type { TakenBuffer } from '../endpoints/body-pool.js';
import {
  COPY_PATH,
  HOLDINGS_PATH,
  NAMES_PATH,
  PIECE_PATH,
  QUESTION_PATH,
  QUESTIONS_PATH,
  RELEASE_PATH,
} from './cluster-paths.js';
import { PIECE_TIMEOUT_MS, TOGETHER_QUESTION_BYTES } from './limits.js';
import type { Allocate } from './message-bytes.js';
import type { PeerLink } from './peer.js';
import { PeerConnections, type PeerReply, type PeerTarget } from './peer-connections.js';
import { QuestionsTogether } from './together.js';

export class HttpPeerLink implements PeerLink {
  /** Of its own for each kind of request, so that none waits for a connection behind others that take longer. */
  readonly #holdings: PeerConnections;
  readonly #quick: PeerConnections;
  readonly #slow: PeerConnections;
  readonly #copies: PeerConnections;
  readonly #together: QuestionsTogether;

  constructor(url: string, key: string) {
    const { protocol, host, hostname, port } = new URL(url);
    const isTls = protocol === 'https:';
    const target: PeerTarget = {
      isTls,
      // An IPv6 address in a URL has brackets.
      address: hostname.replace(/^\[(.*)\]$/, '$1'),
      port: port === '' ? (isTls ? 443 : 80) : Number(port),
      host,
      key,
    };
    this.#holdings = new PeerConnections(target);
    this.#quick = new PeerConnections(target);
    this.#slow = new PeerConnections(target);
    this.#copies = new PeerConnections(target);
    this.#together = new QuestionsTogether((questions, limitMs, allocate) =>
      whole(this.#quick.post(QUESTIONS_PATH, questions, limitMs, allocate)),
    );
  }

  ask(question: Uint8Array, limitMs: number, isSlow: boolean, room: TakenBuffer): Promise<Uint8Array> {
    const connections = isSlow ? this.#slow : this.#quick;
    const askAlone = () => whole(connections.post(QUESTION_PATH, question, limitMs, room.take));
    if (question.length > TOGETHER_QUESTION_BYTES) return askAlone();
    return this.#together.ask(question, limitMs, room, askAlone);
  }

  holdings(known: Uint8Array, limitMs: number): Promise<Uint8Array> {
    return whole(this.#holdings.post(HOLDINGS_PATH, known, limitMs));
  }

  names(request: Uint8Array, limitMs: number): Promise<Uint8Array> {
    return whole(this.#slow.post(NAMES_PATH, request, limitMs));
  }

  copy(request: Uint8Array): Promise<Uint8Array> {
    return whole(this.#copies.post(COPY_PATH, request, PIECE_TIMEOUT_MS));
  }

  async piece(request: Uint8Array, allocate: Allocate): Promise<Uint8Array | null> {
    const reply = await this.#copies.post(PIECE_PATH, request, PIECE_TIMEOUT_MS, allocate);
    return reply.status === 304 ? null : whole(reply);
  }

  release(request: Uint8Array): Promise<unknown> {
    return this.#copies.post(RELEASE_PATH, request, PIECE_TIMEOUT_MS);
  }

  close(): void {
    for (const connections of [this.#holdings, this.#quick, this.#slow, this.#copies]) connections.close();
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
async function whole(replying: PeerReply | Promise<PeerReply>): Promise<Uint8Array> {
  const { status, bytes } = await replying;
  if (status === 200) return bytes;
  throw new PeerStatusError(status, Buffer.from(bytes.subarray(0, 200)).toString());
}
