/**
 * `POST /api/logs?source_name=…`: takes a body whole, unpacks it, hands it to the embedded log and says what
 * became of it.
 *
 * With `import_id` (and the place: `import_start`, `import_bytes`, `import_start_digest`,
 * `import_end_digest`) the body is a chunk of a file of past entries, one a line, that counts exactly once.
 * The answer's member `import` says how far the import has come: 200 if the chunk was taken, 200 with
 * `accepted` 0 if it was there already, 409 if it does not continue what stands. With the header
 * `Idempotency-Key` a body that is sent again counts once, and is answered as the first time; another body
 * with that key is a 409. `GET /api/logs?source_name=…&import_id=…` says the same without a chunk. See
 * `logring import`.
 */

import { mediaTypeOf } from '../../../ingest/embedded-log/body.js';
import type { AppendOutcome } from '../../../ingest/embedded-log/embedded-log.js';
import type { ImportState } from '../../../ingest/embedded-log/import-state.js';
import type { DecodedQuery, ParameterProblem } from '../../endpoints/call-parameters.js';
import { quoted } from '../../quoted.js';
import type { Grant } from '../auth.js';
import {
  errorAnswer,
  invalidArgument,
  jsonAnswer,
  methodNotAllowed,
  notFound,
  payloadTooLarge,
  permissionDenied,
  unavailable,
} from '../errors.js';
import {
  IDEMPOTENCY_KEY_LENGTH_LIMIT,
  INGEST_PACKED_BYTE_LIMIT,
  INGEST_RETRY_SECONDS,
  INGEST_UNPACKED_BYTE_LIMIT,
  REFUSED_BODY_BYTE_LIMIT,
} from '../limits.js';
import type { MemoryRoom } from '../memory-room.js';
import type { IngestPort } from '../ports.js';
import { decodeQuery } from '../query/query-string.js';
import { idempotencyKeyOf, isChunked } from '../server/headers.js';
import type { BodyConsumer, HttpAnswer, HttpRequest } from '../server/server.js';
import { BodyBudget, BodyMemory } from './body-memory.js';
import { unpackGzip } from './gzip-body.js';
import { importChunkCall, importStateCall, ingestCall } from './ingest-parameters.js';

const MESSAGE_PACK_TYPES = ['application/msgpack', 'application/x-msgpack', 'application/vnd.msgpack'];
const PROTOBUF_TYPES = ['application/x-protobuf', 'application/protobuf', 'application/vnd.google.protobuf'];

/** The parameter that makes a body a chunk of an import. */
const IMPORT_ID = 'import_id';

const MEBIBYTE = 1024 * 1024;
const TOO_LARGE = payloadTooLarge(
  `the body is over ${INGEST_PACKED_BYTE_LIMIT / MEBIBYTE} MiB; send the entries in several requests`,
);
const UNPACKED_TOO_LARGE = payloadTooLarge(
  `the body is over ${INGEST_UNPACKED_BYTE_LIMIT / MEBIBYTE} MiB unpacked; send the entries in several requests`,
);
const LIMITED_KEY = permissionDenied(
  'this key is limited to some projects, and such keys may neither post logs nor ask how far an import is',
);
const OUT_OF_MEMORY = unavailable(
  'there is no memory for a body of this size at the moment; where that goes on, send fewer entries at a time, or raise LOGRING_MEMORY_BUDGET_MB',
  INGEST_RETRY_SECONDS,
);

export class IngestApi {
  readonly #ingest: IngestPort;
  readonly #budget: BodyBudget;
  #refusedCount = 0;
  /**
   * Bodies are unpacked one after the other: several that are half unpacked could leave no room for any of
   * them.
   */
  #unpacking: Promise<void> = Promise.resolve();

  constructor(ingest: IngestPort, heldByteLimit: number, room?: MemoryRoom) {
    this.#ingest = ingest;
    this.#budget = new BodyBudget(heldByteLimit, room);
  }

  /** Bytes of the bodies in progress. */
  get heldBytes(): number {
    return this.#budget.held;
  }

  /** POSTs that were turned away because ingest was paused. */
  get refusedCount(): number {
    return this.#refusedCount;
  }

  /** The request is a POST with a valid ingest key; see refuseBody for those that aren't. */
  open(request: HttpRequest, query: DecodedQuery, grant: Grant): HttpAnswer | BodyConsumer {
    if (grant.projects !== null) return refuseBody(request, LIMITED_KEY);
    const refusal = this.#ingest.refusal();
    if (refusal !== null) {
      this.#refusedCount += 1;
      return refuseBody(request, unavailable(refusal.reason, refusal.retryAfterSeconds));
    }
    const isChunk = query.values.has(IMPORT_ID);
    const parsed = isChunk ? importChunkCall.parse(query) : ingestCall.parse(query);
    const idempotencyKey = keyOf(request, isChunk);
    if (!parsed.ok || typeof idempotencyKey === 'object') {
      const problems = parsed.ok ? [] : [...parsed.problems];
      if (typeof idempotencyKey === 'object') problems.push(idempotencyKey);
      return refuseBody(request, invalidArgument(problems));
    }
    const coding = request.headers.get('content-encoding').toLowerCase();
    if (coding !== '' && coding !== 'identity' && coding !== 'gzip' && coding !== 'x-gzip') {
      return refuseBody(
        request,
        errorAnswer(415, `the Content-Encoding ${quoted(coding)} is not known; known: gzip, identity`),
      );
    }
    const contentType = request.headers.get('content-type');
    const remedy = remedyFor(contentType);
    if (remedy !== null) return refuseBody(request, errorAnswer(415, remedy));
    const declaredBytes = Number(request.headers.get('content-length'));
    if (declaredBytes > INGEST_PACKED_BYTE_LIMIT) return refuseBody(request, TOO_LARGE);
    const packed = new BodyMemory(this.#budget, INGEST_PACKED_BYTE_LIMIT);
    // What would find no room is not read at all; of a body in chunks that shows as it comes.
    if (!packed.reserve(declaredBytes)) return refuseBody(request, OUT_OF_MEMORY);
    const { sourceName, ...chunk } = parsed.parameters;
    const identity = idempotencyKey === undefined ? chunk : { idempotencyKey };
    const close = isChunked(request.headers);
    const store = async (memory: BodyMemory) => {
      const reach = (byteCount: number) => memory.reach(byteCount);
      const outcome = await this.#ingest.append(sourceName, memory.bytes, contentType, identity, reach);
      return outcomeAnswer(outcome, sourceName);
    };
    return new IngestBody(packed, close, async () =>
      coding.endsWith('gzip') ? await this.#storeUnpacked(packed, store) : await store(packed),
    );
  }

  /** What is no POST, with a valid ingest key: how far an import has come. */
  answer(request: HttpRequest, grant: Grant): HttpAnswer {
    if (grant.projects !== null) return LIMITED_KEY;
    const query = decodeQuery(request.rawQuery);
    const isRead = request.method === 'GET' || request.method === 'HEAD';
    if (!isRead || !query.values.has(IMPORT_ID)) return methodNotAllowed(request.method, 'POST');
    const parsed = importStateCall.parse(query);
    if (!parsed.ok) return invalidArgument(parsed.problems);
    const { sourceName, importId } = parsed.parameters;
    const state = this.#ingest.importState(sourceName, importId);
    return state === null
      ? notFound(`no log is called ${quoted(sourceName)}`)
      : jsonAnswer({ import: importMember(state) });
  }

  /** Frees the packed body as soon as it can. */
  async #storeUnpacked(
    packed: BodyMemory,
    store: (memory: BodyMemory) => Promise<HttpAnswer>,
  ): Promise<HttpAnswer> {
    const unpacked = new BodyMemory(this.#budget, INGEST_UNPACKED_BYTE_LIMIT);
    try {
      const unpacking = this.#unpacking.then(() => unpackGzip(packed.bytes, unpacked));
      this.#unpacking = unpacking.then(nothing, nothing);
      const outcome = await unpacking;
      packed.release();
      if (outcome === 'whole') return await store(unpacked);
      if (outcome === 'too-large') return UNPACKED_TOO_LARGE;
      if (outcome === 'no-memory') return OUT_OF_MEMORY;
      return errorAnswer(400, `the body is not gzip, as its Content-Encoding says: ${outcome.notGzip}`);
    } finally {
      unpacked.release();
    }
  }
}

function nothing(): void {}

/** Answers a POST whose body isn't wanted after reading past it: a sender that is cut off sees no answer. */
export function refuseBody(request: HttpRequest, answer: HttpAnswer): HttpAnswer | BodyConsumer {
  if (Number(request.headers.get('content-length')) > REFUSED_BODY_BYTE_LIMIT)
    return { ...answer, close: true };
  let byteCount = 0;
  return {
    push(piece) {
      byteCount += piece.length;
      return byteCount <= REFUSED_BODY_BYTE_LIMIT;
    },
    end: () => ({ ...answer, close: isChunked(request.headers) }),
    abort() {},
  };
}

/** What to send instead of a body of this type; null where the body itself tells what it is. */
function remedyFor(contentType: string): string | null {
  const mediaType = mediaTypeOf(contentType);
  if (mediaType.startsWith('multipart/'))
    return 'the body is a form of several parts; send the entries as the body itself (curl: --data-binary @FILE, not -F)';
  if (MESSAGE_PACK_TYPES.includes(mediaType))
    return `the body is MessagePack (${mediaType}); send JSON (Fluent Bit: format json)`;
  if (PROTOBUF_TYPES.includes(mediaType))
    return `the body is protobuf (${mediaType}); send JSON (Vector: encoding.codec json)`;
  return null;
}

/** undefined without the header. */
function keyOf({ headers }: HttpRequest, isChunk: boolean): string | undefined | ParameterProblem {
  const parameter = 'Idempotency-Key';
  if (!headers.has('idempotency-key')) return undefined;
  if (isChunk)
    return { parameter, message: "can't be used with import_id: a chunk is known by its place in the file" };
  const message = `must be 1 to ${IDEMPOTENCY_KEY_LENGTH_LIMIT} printable ASCII characters, plain or as a quoted string`;
  return idempotencyKeyOf(headers) ?? { parameter, message };
}

function outcomeAnswer(outcome: AppendOutcome, sourceName: string): HttpAnswer {
  switch (outcome.kind) {
    case 'stored': {
      const { accepted, rejected, missing = {}, importState } = outcome;
      const shown = Object.keys(missing).length === 0 ? {} : { missing };
      const answer = { message: 'Logged!', accepted, rejected, ...shown };
      return jsonAnswer(importState === null ? answer : { ...answer, import: importMember(importState) });
    }
    case 'already-there':
      return jsonAnswer({
        message: 'Already there',
        accepted: 0,
        rejected: [],
        import: importMember(outcome.importState),
      });
    case 'out-of-place':
      return errorAnswer(
        409,
        `the chunk does not continue the import: ${outcome.importState.nextByte} bytes of its file stand, and the chunk does not begin there, or not after the same bytes`,
      );
    case 'unknown-source': {
      const message = `must be one of ${outcome.knownSources.join(', ')}, not ${quoted(sourceName)}`;
      return invalidArgument([{ parameter: 'source_name', message }]);
    }
    case 'not-json':
      return errorAnswer(400, `the body is not JSON, nothing of it was kept: ${outcome.detail}`);
    case 'too-many-entries':
      return payloadTooLarge(
        `the body holds more than ${outcome.maxCount} entries; send them in several requests`,
      );
    case 'entry-too-large':
      return payloadTooLarge(
        `the entry ${outcome.index} is larger than ${outcome.maxBytes / MEBIBYTE} MiB; nothing of the body was kept`,
      );
    case 'no-memory':
      return OUT_OF_MEMORY;
    case 'key-reused':
      return errorAnswer(
        409,
        'this Idempotency-Key was used before with another body; use a new key for each body',
      );
    case 'busy':
      return unavailable(`the log takes no more at the moment: ${outcome.reason}`, outcome.retryAfterSeconds);
    case 'unclear':
      return errorAnswer(
        500,
        'the storage failed while the entries were written, and they may be kept or not: sent again with the same Idempotency-Key, or as the same chunk of an import, they count once',
      );
  }
}

/** How far an import has come, as the wire has it. */
function importMember({ nextByte, digest, accepted, rejectedByReason }: ImportState) {
  return { next: nextByte, digest, accepted, rejected: rejectedByReason };
}

/** Gathers a body within its limit and the common budget. Once refused, the rest is read and thrown away. */
class IngestBody implements BodyConsumer {
  readonly #memory: BodyMemory;
  readonly #close: boolean;
  readonly #store: () => Promise<HttpAnswer>;
  #byteCount = 0;
  #refusal: HttpAnswer | null = null;

  constructor(memory: BodyMemory, close: boolean, store: () => Promise<HttpAnswer>) {
    this.#memory = memory;
    this.#close = close;
    this.#store = store;
  }

  push(piece: Uint8Array): boolean {
    this.#byteCount += piece.length;
    if (this.#refusal !== null) return this.#byteCount <= REFUSED_BODY_BYTE_LIMIT;
    if (this.#byteCount > INGEST_PACKED_BYTE_LIMIT) this.#refuse(TOO_LARGE);
    else if (!this.#memory.add(piece)) this.#refuse(OUT_OF_MEMORY);
    return true;
  }

  async end(): Promise<HttpAnswer> {
    if (this.#refusal !== null) return { ...this.#refusal, close: this.#close };
    try {
      return { ...(await this.#store()), close: this.#close };
    } finally {
      this.#memory.release();
    }
  }

  abort(): void {
    this.#memory.release();
  }

  #refuse(answer: HttpAnswer): void {
    this.#refusal = answer;
    this.#memory.release();
  }
}
