/**
 * Dead letters when there is no Kafka to hold them: a table of the store, keyed by origin, so that none
 * stands twice.
 */

import type { DeadLetter, DeadLetterReason, DeadLetterSink } from '../../ingest/dead-letters.js';
import { openEnvelope } from './envelope.js';
import type { Store } from './store.js';
import type { Table } from './tables.js';

export class DeadLetterTable implements DeadLetterSink {
  readonly #store: Store;
  readonly #table: Table;

  constructor(store: Store) {
    this.#store = store;
    this.#table = store.table('dead-letters');
  }

  async write(letters: readonly DeadLetter[]): Promise<void> {
    const segments = letters.map((letter) => {
      const reason = Buffer.from(letter.reason);
      const bytes = Buffer.concat([Uint8Array.of(reason.length), reason, letter.value]);
      return { name: originKey(letter), bytes };
    });
    const values = await this.#store.compress(segments);
    const puts = segments.map(({ name: key }, i) => ({ key, value: values[i] }));
    await this.#store.room.retried(() =>
      this.#store.transaction([{ table: this.#table, puts, removedKeys: [] }]),
    );
  }

  /** All letters, by topic, partition, offset and index. */
  *letters(): Iterable<DeadLetter> {
    for (const { key, value } of this.#table.getRange()) {
      const raw = openEnvelope(key, value);
      const [topic, partition, offset, index] = key.split('/');
      const reasonEnd = 1 + raw[0];
      yield {
        topic,
        partition: Number(partition),
        offset: Number(offset),
        index: Number(index),
        reason: Buffer.from(raw.subarray(1, reasonEnd)).toString() as DeadLetterReason,
        value: raw.subarray(reasonEnd),
      };
    }
  }
}

function originKey({ topic, partition, offset, index }: DeadLetter): string {
  return `${topic}/${String(partition).padStart(8, '0')}/${String(offset).padStart(16, '0')}/${String(index).padStart(8, '0')}`;
}
