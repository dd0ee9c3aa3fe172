/**
 * The transactional tables that the store is built on: a seam, so that others can be put in the place of
 * LMDB's.
 */

/** A table of bytes by name, in order of name, as the last transaction left it. */
export interface Table {
  getBinary(key: string): Uint8Array | undefined;
  getKeys(range?: {
    readonly start?: string;
    readonly end?: string;
    readonly limit?: number;
  }): Iterable<string>;
  getRange(): Iterable<{ readonly key: string; readonly value: Uint8Array }>;
}

/** What a transaction does to a table. */
export interface TableWrites {
  readonly table: Table;
  readonly puts: readonly { readonly key: string; readonly value: Uint8Array }[];
  readonly removedKeys: readonly string[];
}

export interface Tables {
  /** The table of a name, made where it is missing. */
  table(name: string): Table;
  /** Throws a StoreChangedError when they are no longer what was opened. */
  assertSame(): void;
  /** Of the pages in use. */
  readonly usedBytes: number;
  /** To be called once a write is durable: a read begun before would go on seeing the tables as they were. */
  refreshReads(): void;
  /**
   * Makes the writes durable as one; what is asked for while a transaction runs goes together into the next.
   * Rejects with what the system said; then none is kept, and the same may be tried again.
   */
  write(writes: readonly TableWrites[]): Promise<void>;
  /** Waits for writes under way; none may follow. */
  close(): Promise<void>;
}
