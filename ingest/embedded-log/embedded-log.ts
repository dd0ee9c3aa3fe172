/**
 * The log source without Kafka: entries that were posted, kept in a durable local log until the state has
 * them.
 */

import { createHash } from 'node:crypto';
import { AssertionError, assert } from '../../engine/assert.js';
import { decodeEdgeElement } from '../decode/edge-entry.js';
import { decodeRelayElement } from '../decode/relay-entry.js';
import {
  BACKLOG_BYTES,
  BUSY_RETRY_SECONDS,
  MAX_BODY_ELEMENTS,
  MAX_RECORD_BYTES,
  SPLIT_BYTES,
  STAGED_FROM_BYTES,
} from '../limits.js';
import type { LogSink, LogSource, LogSourceStatus, Position } from '../log-source.js';
import type { Arrival, TimeBounds } from './arrival.js';
import { type BodyElements, type Reach, splitBody } from './body.js';
import { type DurableLog, LogFullError } from './durable-log.js';
import type { ImportChunk, ImportState } from './import-state.js';
import { PostedRecords } from './posted-records.js';
import type { PostIdentity, PostResult } from './remembered-posts.js';
import {
  type AppendResult,
  type AppendTerms,
  type KeyedPost,
  type RecordValues,
  TopicLog,
} from './topic-log.js';

export interface EmbeddedLogPorts {
  readonly log: DurableLog;
  /** Also the names of the sources that can be posted to; '' where a log is turned off. */
  readonly edgeTopic: string;
  readonly relayTopic: string;
  /** Whether an edge entry without a URL gets one of its project and path; false unless given. */
  readonly urlFromPath?: boolean;
  readonly nowUs: () => number;
  readonly time: () => TimeBounds;
  /** Resolves in a later turn of the event loop, after waiting I/O. */
  readonly yieldTurn: () => Promise<void>;
  /** For large bodies, whose turns are long; yieldTurn unless given. */
  readonly yieldLargeTurn?: () => Promise<void>;
  /** Makes durable what the sink was told. */
  readonly commit: () => Promise<void>;
  /** Told when the sink has all that was acknowledged before the start, topic by topic. */
  readonly onWhole?: () => void;
  /** Told when delivery failed, which ends the process. */
  readonly onFatal: (error: unknown) => void;
  /** Bytes that may be held or owed to the sink before POSTs are turned away; BACKLOG_BYTES unless given. */
  readonly maxBacklogBytes?: number;
  /** Bytes of a POST from which it is staged; STAGED_FROM_BYTES unless given. */
  readonly stagedFromBytes?: number;
}

export type AppendOutcome =
  | (PostResult & {
      /** On disk, what was rejected too: it becomes dead letters. */
      readonly kind: 'stored';
      /** How far the import has come whose chunk it is; null for any other body. */
      readonly importState: ImportState | null;
    })
  /** A chunk of an import that is on disk already. */
  | { readonly kind: 'already-there'; readonly importState: ImportState }
  /** Of a body with one of these outcomes nothing is kept. */
  | { readonly kind: 'unknown-source'; readonly knownSources: readonly string[] }
  | { readonly kind: 'not-json'; readonly detail: string }
  | { readonly kind: 'too-many-entries'; readonly maxCount: number }
  /** No record could hold it, so it can't even be a dead letter. */
  | { readonly kind: 'entry-too-large'; readonly index: number; readonly maxBytes: number }
  /** A chunk of an import that doesn't continue what stands of it. */
  | { readonly kind: 'out-of-place'; readonly importState: ImportState }
  /** See Reach. */
  | { readonly kind: 'no-memory' }
  /** The Idempotency-Key came before, with another body. */
  | { readonly kind: 'key-reused' }
  | { readonly kind: 'busy'; readonly reason: string; readonly retryAfterSeconds: number }
  /** The storage failed: whether the body is kept only the next start tells. */
  | { readonly kind: 'unclear' };

/**
 * What a body says of itself: which chunk of an import it is, or by which key it is known when it is sent
 * again.
 */
export interface BodyIdentity {
  readonly chunk?: ImportChunk;
  readonly idempotencyKey?: string;
}

const NO_IDENTITY: BodyIdentity = {};
const NOT_OPEN = busy('it is being opened or closed');
const BEHIND = busy('what came before is not counted yet');
const UNCLEAR: AppendOutcome = { kind: 'unclear' };
const NO_MEMORY: AppendOutcome = { kind: 'no-memory' };
const EMPTY: AppendOutcome = { kind: 'not-json', detail: 'it is empty' };
const TOO_MANY_ENTRIES: AppendOutcome = { kind: 'too-many-entries', maxCount: MAX_BODY_ELEMENTS };
const NO_ELEMENTS: BodyElements = { form: 'lines', starts: [], ends: [] };
const LINES_TYPE = 'application/x-ndjson';
const NOT_JSON: AppendOutcome = {
  kind: 'not-json',
  detail: 'it is neither a JSON object, nor an array of objects, nor one object a line',
};

/**
 * Each topic has one partition, 0, and dense offsets. The sink must judge entries by the time of arrival,
 * which is the timestamp of their record: only then does the answer to a POST stay true when the log is
 * replayed.
 */
export class EmbeddedLog implements LogSource {
  readonly #ports: EmbeddedLogPorts;
  readonly #topics: readonly TopicLog[];
  #isOpen = false;
  readonly #inFlight = new Set<Promise<AppendOutcome>>();
  #inFlightBytes = 0;
  #delivery: Promise<unknown> = Promise.resolve();
  #problem: string | null = null;

  constructor(ports: EmbeddedLogPorts) {
    this.#ports = ports;
    this.#topics = [ports.edgeTopic, ports.relayTopic]
      .filter((topic) => topic !== '')
      .map((topic) => new TopicLog(topic, ports.log, () => ports.onWhole?.(), ports.stagedFromBytes));
  }

  async start(sink: LogSink): Promise<void> {
    this.#isOpen = true;
    const bound = this.#topics.map((topic) => ({ topic, settle: topic.bind(sink) }));
    const deliveries = bound.map(async ({ topic, settle }) => {
      if (settle === null || (await this.#isSettled(settle))) await topic.deliver(sink);
    });
    this.#delivery = Promise.all(deliveries).catch(this.#ports.onFatal);
  }

  /** False when it is stopped before that: the next start does it. */
  async #isSettled(settle: () => Promise<void>): Promise<boolean> {
    try {
      // The gap first: a start after a kill would find the log where it was expected, and none.
      await this.#ports.commit();
      await settle();
      return true;
    } catch (error) {
      if (this.#isOpen) throw error;
      return false;
    }
  }

  /**
   * Takes the entries of a body: durable when it resolves, and visible in answers soon after. The body must
   * not change until then. Rejects only for our own bugs. The body of a chunk of an import is taken as lines,
   * whatever its content type. `reach`: see Reach.
   */
  async append(
    sourceName: string,
    body: Uint8Array,
    contentType: string,
    identity: BodyIdentity = NO_IDENTITY,
    reach: Reach = always,
  ): Promise<AppendOutcome> {
    const topic = this.#topics.find(({ key }) => key.topic === sourceName);
    if (topic === undefined) {
      return { kind: 'unknown-source', knownSources: this.#topics.map(({ key }) => key.topic) };
    }
    if (!this.#isOpen || !topic.isOpen) return NOT_OPEN;
    if (this.#isBehind(body.length)) return BEHIND;
    this.#inFlightBytes += body.length;
    const outcome = this.#append(topic, body, contentType, identity, reach);
    this.#inFlight.add(outcome);
    try {
      return await outcome;
    } finally {
      this.#inFlight.delete(outcome);
      this.#inFlightBytes -= body.length;
    }
  }

  /** How far an import has come; null for a source that can't be posted to. */
  importState(sourceName: string, importId: string): ImportState | null {
    return this.#topics.find(({ key }) => key.topic === sourceName)?.importState(importId) ?? null;
  }

  /**
   * Bytes of what is being written and of what is remembered of POSTs and imports. The bodies themselves, and what is held
   * of their entries, are their reader's account.
   */
  get heldBytes(): number {
    return this.#topics.reduce((bytes, topic) => bytes + topic.heldBytes, 0);
  }

  status(): LogSourceStatus {
    return {
      missingTopics: [],
      topics: this.#topics.map(({ key: { topic } }) => ({ topic, partitionCount: 1, topicId: topic })),
      unassigned: [],
      assigned: this.#topics.map(({ key, endOffset, isWhole }) => ({
        ...key,
        endOffset,
        wholeAsOfMs: isWhole ? Number.POSITIVE_INFINITY : null,
      })),
      held: [],
      problem: this.#problem,
      isUnreachable: false,
      members: null,
      unheardZones: [],
      logEnds: null,
    };
  }

  /** What is in the state for good need not be kept any more. */
  async committed(positions: readonly Position[]): Promise<void> {
    for (const { topic, partition, nextOffset } of positions) {
      const log = this.#topics.find(({ key }) => key.topic === topic && key.partition === partition);
      await log?.truncateBefore(nextOffset);
    }
  }

  /** Takes no more bodies, and resolves when all that were taken are delivered. */
  async stop(): Promise<void> {
    this.#isOpen = false;
    await Promise.allSettled(this.#inFlight);
    for (const topic of this.#topics) topic.stop();
    await this.#delivery;
  }

  /** One body always fits when there is no other. */
  #isBehind(byteCount: number): boolean {
    let backlogBytes = this.#inFlightBytes;
    for (const { undeliveredBytes } of this.#topics) backlogBytes += undeliveredBytes;
    const { maxBacklogBytes = BACKLOG_BYTES } = this.#ports;
    return backlogBytes > 0 && backlogBytes + byteCount > maxBacklogBytes;
  }

  async #append(
    topic: TopicLog,
    body: Uint8Array,
    contentType: string,
    { chunk, idempotencyKey }: BodyIdentity,
    reach: Reach,
  ): Promise<AppendOutcome> {
    const { edgeTopic, urlFromPath, nowUs, time, yieldLargeTurn } = this.#ports;
    const isLarge = yieldLargeTurn !== undefined && body.length >= STAGED_FROM_BYTES;
    const yieldTurn = isLarge ? yieldLargeTurn : this.#ports.yieldTurn;
    const timestampMs = Math.floor(nowUs() / 1000);
    const arrival = { timestampMs, ...time() };
    const split = await splitBody(body, chunk === undefined ? contentType : LINES_TYPE, yieldTurn, reach);
    if (split === 'empty' && chunk === undefined) return EMPTY;
    if (split === 'too-many-entries') return TOO_MANY_ENTRIES;
    if (split === 'no-memory') return NO_MEMORY;
    const elements = split === 'empty' ? NO_ELEMENTS : split;
    const tooLarge = elements.ends.findIndex((end, i) => end - elements.starts[i] > MAX_RECORD_BYTES);
    if (tooLarge >= 0) return { kind: 'entry-too-large', index: tooLarge, maxBytes: MAX_RECORD_BYTES };
    const decodeElement = topic.key.topic === edgeTopic ? decodeEdgeElement : decodeRelayElement;
    const wholeBody = { offset: 0, timestampMs, value: body, projectTier: null };
    const records = new PostedRecords(elements, topic.key, wholeBody, decodeElement, reach, urlFromPath);
    const isHeld = await records.fill(yieldTurn);
    if (records.hasTooMany) return TOO_MANY_ENTRIES;
    if (!isHeld) return NO_MEMORY;
    // Amidst an import each bad line counts on its own; at its beginning it is rather the wrong file.
    const mustHaveJson = chunk === undefined || chunk.startByte === 0;
    if (mustHaveJson && elements.starts.length > 0 && records.jsonCount === 0) return NOT_JSON;
    if (chunk !== undefined) return await this.#storeChunk(topic, records, arrival, chunk);
    if (idempotencyKey !== undefined) {
      const bodyDigest = await digestOf(body, yieldTurn);
      const keyDigest = createHash('sha256').update(idempotencyKey).digest('hex');
      return await this.#storePost(topic, records, arrival, { keyDigest, bodyDigest });
    }
    if (records.count === 0) return storedOutcome(records);
    const result = await this.#store(topic, records, arrival, {});
    return 'kind' in result ? result : storedOutcome(records);
  }

  /** The first with its key is taken; the same again is answered as the first was, and counts no further. */
  async #storePost(
    topic: TopicLog,
    records: PostedRecords,
    arrival: Arrival,
    identity: PostIdentity,
  ): Promise<AppendOutcome> {
    const { accepted, rejected, missing } = records;
    const post: KeyedPost = { ...identity, accepted, rejected, missing };
    const result = await this.#store(topic, records, arrival, { post });
    if ('kind' in result) return result;
    const first = result.first ?? post;
    if (first.bodyDigest !== post.bodyDigest) return { kind: 'key-reused' };
    return storedOutcome(first);
  }

  async #storeChunk(
    topic: TopicLog,
    records: PostedRecords,
    arrival: Arrival,
    chunk: ImportChunk,
  ): Promise<AppendOutcome> {
    const { accepted, rejected } = records;
    const part = { chunk, accepted, rejectedReasons: rejected.map(({ reason }) => reason) };
    const result = await this.#store(topic, records, arrival, { part });
    if ('kind' in result) return result;
    const { progress } = result;
    assert(progress !== null, 'a chunk was appended as if it were none');
    const { place, state: importState } = progress;
    if (place === 'next') return storedOutcome(records, importState);
    return { kind: place === 'there' ? 'already-there' : 'out-of-place', importState };
  }

  /** An outcome when the storage can't take it: that is for the operator to mend, and the sender tries again. */
  async #store(
    topic: TopicLog,
    values: RecordValues,
    arrival: Arrival,
    terms: AppendTerms,
  ): Promise<AppendResult | AppendOutcome> {
    try {
      const result = await topic.append(values, arrival, terms);
      this.#problem = null;
      return result;
    } catch (error) {
      if (error instanceof AssertionError) throw error;
      if (error instanceof LogFullError) return busy(error.message);
      this.#problem = `the embedded log can't be written: ${error instanceof Error ? error.message : String(error)}`;
      return UNCLEAR;
    }
  }
}

function always(): boolean {
  return true;
}

function busy(reason: string): AppendOutcome {
  return { kind: 'busy', reason, retryAfterSeconds: BUSY_RETRY_SECONDS };
}

function storedOutcome(
  { accepted, rejected, missing = {} }: PostResult,
  importState: ImportState | null = null,
): AppendOutcome {
  return { kind: 'stored', accepted, rejected, missing, importState };
}

/** SHA-256 in hexadecimal, taken in several turns. */
async function digestOf(body: Uint8Array, yieldTurn: () => Promise<void>): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; at < body.length; at += SPLIT_BYTES) {
    hash.update(body.subarray(at, at + SPLIT_BYTES));
    await yieldTurn();
  }
  return hash.digest('hex');
}
