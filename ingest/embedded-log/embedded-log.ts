/** The log source without Kafka: entries that were posted, kept in a durable local log until the state has them. */

import { AssertionError } from '../../engine/assert.js';
import { decodeEdgeElement } from '../decode/edge-entry.js';
import { decodeRelayElement } from '../decode/relay-entry.js';
import { BACKLOG_BYTES, BUSY_RETRY_SECONDS, MAX_BODY_ELEMENTS } from '../limits.js';
import type { LogSink, LogSource, LogSourceStatus, PartitionKey } from '../log-source.js';
import { splitBody } from './body.js';
import type { DurableLog } from './durable-log.js';
import { PostedRecords, type RejectedEntry } from './posted-records.js';
import { TopicLog } from './topic-log.js';

export interface EmbeddedLogPorts {
  readonly log: DurableLog;
  /** Also the names of the sources that can be posted to. */
  readonly edgeTopic: string;
  readonly relayTopic: string;
  readonly nowUs: () => number;
  /** Resolves in a later turn of the event loop, after waiting I/O. */
  readonly yieldTurn: () => Promise<void>;
  /** Told when delivery failed, which ends the process. */
  readonly onFatal: (error: unknown) => void;
  /** Bytes that may be held or owed to the sink before POSTs are turned away; BACKLOG_BYTES unless given. */
  readonly maxBacklogBytes?: number;
}

export type AppendOutcome =
  | {
      /** On disk, what was rejected too: it becomes dead letters. */
      readonly kind: 'stored';
      readonly accepted: number;
      /** In order of index. */
      readonly rejected: readonly RejectedEntry[];
    }
  /** Of a body with one of these outcomes nothing is kept. */
  | { readonly kind: 'unknown-source'; readonly knownSources: readonly string[] }
  | { readonly kind: 'not-json'; readonly detail: string }
  | { readonly kind: 'too-many-entries'; readonly maxCount: number }
  | { readonly kind: 'busy'; readonly retryAfterSeconds: number };

const BUSY: AppendOutcome = { kind: 'busy', retryAfterSeconds: BUSY_RETRY_SECONDS };
const EMPTY: AppendOutcome = { kind: 'not-json', detail: 'it is empty' };
const NOT_JSON: AppendOutcome = {
  kind: 'not-json',
  detail: 'it is neither a JSON object, nor an array of objects, nor one object a line',
};

/**
 * Each topic has one partition, 0, and dense offsets. The sink must judge entries by the time of arrival, which is
 * the timestamp of their record: only then does the answer to a POST stay true when the log is replayed.
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
    this.#topics = [ports.edgeTopic, ports.relayTopic].map((topic) => new TopicLog(topic, ports.log));
  }

  async start(sink: LogSink): Promise<void> {
    for (const topic of this.#topics) topic.bind(sink);
    this.#delivery = Promise.all(this.#topics.map((topic) => topic.deliver(sink))).catch(this.#ports.onFatal);
    this.#isOpen = true;
  }

  /**
   * Takes the entries of a body: durable when it resolves, and visible in answers soon after. The body must not
   * change until then. Rejects only for our own bugs.
   */
  async append(sourceName: string, body: Uint8Array, contentType: string): Promise<AppendOutcome> {
    const topic = this.#topics.find(({ key }) => key.topic === sourceName);
    if (topic === undefined) {
      return { kind: 'unknown-source', knownSources: this.#topics.map(({ key }) => key.topic) };
    }
    if (!this.#isOpen || this.#isBehind(body.length)) return BUSY;
    this.#inFlightBytes += body.length;
    const outcome = this.#append(topic, body, contentType);
    this.#inFlight.add(outcome);
    try {
      return await outcome;
    } finally {
      this.#inFlight.delete(outcome);
      this.#inFlightBytes -= body.length;
    }
  }

  status(): LogSourceStatus {
    return {
      missingTopics: [],
      unassigned: [],
      assigned: this.#topics.map(({ key, endOffset }) => ({ ...key, endOffset })),
      problem: this.#problem,
    };
  }

  /** What is in the state for good need not be kept any more. */
  async committed(positions: readonly (PartitionKey & { readonly nextOffset: number })[]): Promise<void> {
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

  async #append(topic: TopicLog, body: Uint8Array, contentType: string): Promise<AppendOutcome> {
    const { edgeTopic, nowUs, yieldTurn } = this.#ports;
    const timestampMs = Math.floor(nowUs() / 1000);
    const elements = await splitBody(body, contentType, yieldTurn);
    if (elements === 'empty') return EMPTY;
    if (elements === 'too-many-entries') return { kind: 'too-many-entries', maxCount: MAX_BODY_ELEMENTS };
    const decodeElement = topic.key.topic === edgeTopic ? decodeEdgeElement : decodeRelayElement;
    const wholeBody = { offset: 0, timestampMs, value: body, projectTier: null };
    const records = new PostedRecords(elements, topic.key, wholeBody, decodeElement);
    await records.fill(yieldTurn);
    if (elements.starts.length > 0 && records.jsonCount === 0) return NOT_JSON;
    const isStored = records.values.length === 0 || (await this.#store(topic, records.values, timestampMs));
    return isStored ? { kind: 'stored', accepted: records.accepted, rejected: records.rejected } : BUSY;
  }

  /** False when the storage can't take it: a full disk is for the operator to mend, and the sender tries again. */
  async #store(topic: TopicLog, values: readonly Uint8Array[], timestampMs: number): Promise<boolean> {
    try {
      await topic.append(values, timestampMs);
      this.#problem = null;
      return true;
    } catch (error) {
      if (error instanceof AssertionError) throw error;
      this.#problem = `the embedded log can't be written: ${error instanceof Error ? error.message : String(error)}`;
      return false;
    }
  }
}
