/** A member over HTTP/1.1, on connections that are kept. */

import { type Agent as HttpAgent, request as httpRequest, Agent as PlainAgent } from 'node:http';
import { request as httpsRequest, Agent as TlsAgent } from 'node:https';
import { urlToHttpOptions } from 'node:url';
import {
  CLUSTER_KEY_HEADER,
  COPY_PATH,
  HOLDINGS_PATH,
  NAMES_PATH,
  PIECE_PATH,
  QUESTION_PATH,
  RELEASE_PATH,
} from './cluster-paths.js';
import { PEER_CONNECTIONS, PEER_IDLE_MS, PIECE_TIMEOUT_MS, REPLY_BYTES } from './limits.js';
import type { Allocate } from './messages.js';
import type { PeerLink } from './peer.js';

interface PeerReply {
  readonly status: number;
  readonly bytes: Uint8Array;
}

export class HttpPeerLink implements PeerLink {
  readonly #send: typeof httpRequest;
  readonly #host: Pick<ReturnType<typeof urlToHttpOptions>, 'hostname' | 'port'>;
  readonly #key: string;
  /** One each, so that none waits for a connection behind others that take longer. */
  readonly #agents: Readonly<Record<'holdings' | 'quick' | 'slow' | 'copies', HttpAgent>>;

  constructor(url: string, key: string) {
    const { protocol, hostname, port } = urlToHttpOptions(new URL(url));
    const isTls = protocol === 'https:';
    this.#send = isTls ? httpsRequest : httpRequest;
    this.#host = { hostname, port };
    this.#key = key;
    const options = { keepAlive: true, maxSockets: PEER_CONNECTIONS, timeout: PEER_IDLE_MS };
    const agent = () => (isTls ? new TlsAgent(options) : new PlainAgent(options));
    this.#agents = { holdings: agent(), quick: agent(), slow: agent(), copies: agent() };
  }

  ask(question: Uint8Array, limitMs: number, isSlow: boolean, allocate?: Allocate): Promise<Uint8Array> {
    const agent = this.#agents[isSlow ? 'slow' : 'quick'];
    return whole(this.#post(QUESTION_PATH, question, limitMs, agent, allocate));
  }

  holdings(known: Uint8Array, limitMs: number): Promise<Uint8Array> {
    return whole(this.#post(HOLDINGS_PATH, known, limitMs, this.#agents.holdings));
  }

  names(request: Uint8Array, limitMs: number): Promise<Uint8Array> {
    return whole(this.#post(NAMES_PATH, request, limitMs, this.#agents.slow));
  }

  copy(request: Uint8Array): Promise<Uint8Array> {
    return whole(this.#post(COPY_PATH, request, PIECE_TIMEOUT_MS, this.#agents.copies));
  }

  async piece(request: Uint8Array): Promise<Uint8Array | null> {
    const reply = await this.#post(PIECE_PATH, request, PIECE_TIMEOUT_MS, this.#agents.copies);
    return reply.status === 304 ? null : whole(reply);
  }

  release(request: Uint8Array): Promise<unknown> {
    return this.#post(RELEASE_PATH, request, PIECE_TIMEOUT_MS, this.#agents.copies);
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }

  #post(
    path: string,
    body: Uint8Array,
    limitMs: number,
    agent: HttpAgent,
    allocate: Allocate = Buffer.allocUnsafe,
  ): Promise<PeerReply> {
    return new Promise((resolve, reject) => {
      const request = this.#send({
        ...this.#host,
        path,
        agent,
        method: 'POST',
        headers: {
          'Content-Type': 'application/octet-stream',
          'Content-Length': body.length,
          [CLUSTER_KEY_HEADER]: this.#key,
        },
      });
      const timer = setTimeout(() => {
        request.destroy(new Error(`did not answer within ${limitMs} ms`));
      }, limitMs);
      const fail = (error: Error) => {
        clearTimeout(timer);
        reject(error);
      };
      request.once('error', fail);
      request.once('response', (response) => {
        const pieces: Uint8Array[] = [];
        let byteCount = 0;
        response.on('data', (piece: Uint8Array) => {
          byteCount += piece.length;
          if (byteCount > REPLY_BYTES) request.destroy(new Error('sent more than a reply has'));
          else pieces.push(piece);
        });
        response.once('error', fail);
        response.once('close', () => {
          if (!response.complete) fail(new Error('broke its reply off'));
        });
        response.once('end', () => {
          clearTimeout(timer);
          resolve({ status: response.statusCode!, bytes: joined(pieces, byteCount, allocate) });
        });
      });
      request.end(body);
    });
  }
}

function joined(pieces: readonly Uint8Array[], byteCount: number, allocate: Allocate): Uint8Array {
  if (pieces.length === 1) return pieces[0];
  const bytes = allocate(byteCount).subarray(0, byteCount);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
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
