/**
 * What the store knows of its journals beside them: which shards there are, so that one whose journal is missing is
 * noticed, how far each journal had come, and what repairs have dropped.
 */

import { DROPPED_KEY, type DroppedPart, decodeDropped } from './dropped-parts.js';
import type { Put } from './journal/frame.js';
import type { Journal } from './journal/journal.js';
import type { JournalChanges } from './journal/journal-writer.js';
import {
  HEAD_KEY,
  type Journals,
  META_TABLE,
  SCOPE_KEY,
  scopeOfName,
  shardName,
} from './journal/journals.js';
import { HEADS_DELAY_US } from './limits.js';
import { rawEnvelope } from './values/envelope.js';

/** Makes changes of the table durable. */
export type WriteMeta = (changes: Omit<JournalChanges, 'journal'>) => Promise<void>;

export class MetaTable {
  readonly journal: Journal;
  readonly #journals: Journals;
  readonly #write: WriteMeta;
  /** How far the journals had come at a time, µs since the epoch. */
  #heads: { readonly puts: readonly Put[]; readonly atUs: number } = {
    puts: [],
    atUs: Number.NEGATIVE_INFINITY,
  };

  constructor(journals: Journals, write: WriteMeta) {
    this.journal = journals.table(META_TABLE);
    this.#journals = journals;
    this.#write = write;
  }

  /** What repairs have dropped, in order of repair. */
  dropped(): DroppedPart[] {
    return this.journal.keys(DROPPED_KEY).map((key) => decodeDropped(key, this.journal.get(key)!));
  }

  /** Notes which of these are of shards that it does not know yet. */
  async register(journals: readonly Journal[]): Promise<void> {
    const known = new Set(this.journal.keys(SCOPE_KEY));
    const puts = journals.flatMap(({ name }) => {
      const scope = scopeOfName(name);
      const key = `${SCOPE_KEY}${scope}`;
      return scope === null || known.has(key) ? [] : [{ key, value: rawEnvelope(key) }];
    });
    await this.#put(puts);
  }

  /** The shard of a scope goes. */
  async forget(scope: string): Promise<void> {
    const headKey = `${HEAD_KEY}${shardName(scope)}`;
    this.#heads = { ...this.#heads, puts: this.#heads.puts.filter(({ key }) => key !== headKey) };
    await this.#write({ puts: [], removedKeys: [`${SCOPE_KEY}${scope}`, headKey], timeUs: null });
  }

  /** What time it is, µs since the epoch, where no commit of a partition has told. */
  async noteTime(timeUs: number): Promise<void> {
    await this.#write({ puts: [], removedKeys: [], timeUs });
  }

  /** The heads of a while ago, so that a copy which is made meanwhile has all that it says it has. */
  async noteHeads(nowUs: number): Promise<void> {
    if (Math.abs(nowUs - this.#heads.atUs) < HEADS_DELAY_US) return;
    const { puts } = this.#heads;
    this.#heads = { puts: this.#journals.heads(), atUs: nowUs };
    await this.#put(puts);
  }

  async #put(puts: readonly Put[]): Promise<void> {
    if (puts.length > 0) await this.#write({ puts, removedKeys: [], timeUs: null });
  }
}
