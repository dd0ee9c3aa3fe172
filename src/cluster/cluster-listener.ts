/**
 * Where other members ask this one: HTTP/1.1, a key in each request, a few paths. Nothing is answered without the key,
 * and nothing that comes in can do more than be refused.
 */

import { PartialError } from '../../engine/partial-format.js';
import { BodyPool, TakenBuffer } from '../endpoints/body-pool.js';
import type { KeyRing } from '../http/auth.js';
import { AnswersInFlight } from '../http/server/answers-in-flight.js';
import { createHttpServer, type ServerOptions } from '../http/server/back-ends.js';
import { hasOneBody } from '../http/server/headers.js';
import type { BodyConsumer, HeaderLine, HttpAnswer, HttpRequest, HttpServer } from '../http/server/server.js';
import {
  CLUSTER_KEY_HEADER,
  COPY_PATH,
  HOLDINGS_PATH,
  NAMES_PATH,
  PIECE_PATH,
  QUESTION_PATH,
  QUESTIONS_PATH,
  RELEASE_PATH,
} from './cluster-paths.js';
import { type CopyGiver, NotGiven } from './copy-giver.js';
import { KNOWN_BYTES, QUESTION_BYTES, QUESTIONS_AT_ONCE } from './limits.js';
import type { Allocate } from './message-bytes.js';

const TOO_LONG = `a question has at most ${QUESTION_BYTES} bytes, what is known of lists ${KNOWN_BYTES}`;
const TEXT: HeaderLine = ['Content-Type', 'text/plain; charset=utf-8'];
const BYTES: HeaderLine = ['Content-Type', 'application/octet-stream'];

export interface ClusterListenerPorts {
  readonly keys: KeyRing;
  /** In memory from `allocate`. Rejects with a PartialError for bytes that are no question. */
  readonly answer: (question: Uint8Array, allocate: Allocate) => Promise<Uint8Array>;
  /** The replies to questions that came together, otherwise the same. */
  readonly answerAll: (questions: Uint8Array, allocate: Allocate) => Uint8Array;
  /** Throws a PartialError for bytes that say nothing of what is known. */
  readonly holdings: (known: Uint8Array) => Uint8Array;
  /** Rejects with a PartialError for bytes that are no request. */
  readonly names: (request: Uint8Array) => Promise<Uint8Array>;
  /** Pieces are in memory from `allocate`. */
  readonly copies: Pick<CopyGiver, 'copy' | 'piece' | 'release'>;
  readonly server: Omit<ServerOptions, 'handler' | 'inFlight' | 'observe'>;
}

interface Route {
  readonly bodyBytes: number;
  /** Whether it takes its share of what may be asked at a time. */
  readonly isCounted: boolean;
  readonly reply: (body: Uint8Array, allocate: Allocate) => Uint8Array | Promise<Uint8Array | null>;
}

export class ClusterListener {
  readonly server: HttpServer;
  /** Unbounded: members ask for what they have room for. */
  readonly inFlight = new AnswersInFlight(Infinity);
  readonly #keys: KeyRing;
  readonly #routes: ReadonlyMap<string, Route>;
  readonly #replies = new BodyPool();
  #questionCount = 0;

  constructor({ keys, answer, answerAll, holdings, names, copies, server }: ClusterListenerPorts) {
    const question = (reply: Route['reply']): Route => ({
      bodyBytes: QUESTION_BYTES,
      isCounted: true,
      reply,
    });
    this.#keys = keys;
    this.#routes = new Map<string, Route>([
      [QUESTION_PATH, question(answer)],
      [QUESTIONS_PATH, question(answerAll)],
      [NAMES_PATH, question(names)],
      [COPY_PATH, question((body) => copies.copy(body))],
      [PIECE_PATH, question((body, allocate) => copies.piece(body, allocate))],
      [RELEASE_PATH, question((body) => copies.release(body))],
      [HOLDINGS_PATH, { bodyBytes: KNOWN_BYTES, isCounted: false, reply: holdings }],
    ]);
    const handler = { open: (request: HttpRequest) => this.#open(request) };
    this.server = createHttpServer({ ...server, handler, inFlight: this.inFlight }).server;
  }

  #open({ method, path, headers }: HttpRequest): HttpAnswer | BodyConsumer {
    if (this.#keys.grantOf(headers.get(CLUSTER_KEY_HEADER)) === null)
      return refusal(401, 'a key of LOGRING_CLUSTER_KEYS is needed');
    if (method !== 'POST') return refusal(405, 'POST only');
    const route = this.#routes.get(path);
    if (route === undefined) return refusal(404, 'there is nothing here');
    if (!hasOneBody(headers) || !headers.has('content-length'))
      return refusal(400, 'a body with a Content-Length is needed');
    const byteCount = Number(headers.get('content-length'));
    if (byteCount > route.bodyBytes) return refusal(413, TOO_LONG);
    if (route.isCounted && this.#questionCount >= QUESTIONS_AT_ONCE)
      return refusal(503, 'too many questions at once');
    const body = Buffer.allocUnsafe(byteCount);
    let receivedBytes = 0;
    return {
      push: (piece) => {
        body.set(piece, receivedBytes);
        receivedBytes += piece.length;
        return true;
      },
      end: () => this.#answer(route, body),
      abort: () => undefined,
    };
  }

  async #answer({ isCounted, reply }: Route, body: Uint8Array): Promise<HttpAnswer> {
    const taken = new TakenBuffer(this.#replies);
    if (isCounted) this.#questionCount++;
    try {
      const bytes = await reply(body, taken.take);
      return {
        status: bytes === null ? 304 : 200,
        headers: [BYTES],
        body: bytes ?? '',
        release: () => taken.giveBack(),
        close: false,
      };
    } catch (error) {
      if (error instanceof PartialError) return refusal(400, error.message);
      if (error instanceof NotGiven) return refusal(error.status, error.message);
      throw error;
    } finally {
      if (isCounted) this.#questionCount--;
    }
  }
}

function refusal(status: number, reason: string): HttpAnswer {
  return { status, headers: [TEXT], body: reason, close: true };
}
