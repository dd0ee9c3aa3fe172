/**
 * Records and array elements that can't be used: kept with their reason and origin, never dropped; a crash
 * may keep one twice in Kafka. The decoder (decode/record.ts) finds the reason; the pipeline writes the
 * letter and waits until it is durable before the record's offset counts. Only a value that the brokers
 * refuse as too large is cut; a header says how long it was.
 *
 *   from Kafka   a topic of Kafka; the writer tries for ever (kafka/dead-letter-topic.ts). Of several zones
 *                the first one writes
 *   from POSTs   a journal of the store, bounded; none counts twice (src/store/dead-letter-store.ts)
 *   beside       counts by reason in the shard; a few samples in memory for the console (dead-letter-samples.ts)
 */

/** The reasons, which are also the values of `logring.reason` and of the metric's label. */
export const DEAD_LETTER_REASONS = [
  'not-json',
  'not-an-object',
  'missing-project',
  'name-too-long',
  'nested-too-deep',
  'invalid-timestamp',
  'too-old',
  'too-far-ahead',
  'too-large',
  'unknown-codec',
  'damaged-batch',
  'empty',
] as const;
export type DeadLetterReason = (typeof DEAD_LETTER_REASONS)[number];

export interface DeadLetter {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  /** The place within an array value; 0 for a value that is one object. */
  readonly index: number;
  readonly reason: DeadLetterReason;
  /** The element's bytes, or the whole value's where it could not be taken apart. */
  readonly value: Uint8Array;
}

/** Where dead letters go: a Kafka topic, or the store. */
export interface DeadLetterSink {
  /**
   * Resolves once the letters are durable. The same letter may come again after a crash; its origin tells it.
   */
  write(letters: readonly DeadLetter[]): Promise<void>;
}

/** The sink of a zone that isn't the first: that one keeps the same letters. */
export const WRITTEN_ELSEWHERE: DeadLetterSink = { write: () => Promise.resolve() };
