/**
 * How a history's records reach the shards of one life: by a log that lies elsewhere, or by POSTs to the
 * embedded log.
 */

import type { PlannedRecord } from '../model/history.js';
import type { ModelPartition } from '../model/model-reader.js';

export interface Delivery {
  /** New records are there: they are delivered while other things happen. */
  deliver(partition: ModelPartition, records: readonly PlannedRecord[]): void;
  /** Goes on wherever something is left and nothing under way. */
  deliverAll(): void;
  /** The partition is taken away and comes back. */
  redeliver(partition: ModelPartition, back: number): Promise<void>;
  /** The model reads what the shards say that they have read. */
  readAlong(): void;
  /** Delivers no more; resolves when nothing is under way. */
  stop(): Promise<void>;
}
