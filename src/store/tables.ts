/**
 * The transactional tables that the store is built on: a seam, so that other tables can be put in the place of LMDB's.
 * All writes of one event turn are one transaction, done whole or not at all.
 */

import { join } from 'node:path';
import { open } from 'lmdb';

/** A table of bytes by name, in order of name. */
export interface Table {
  /** As the last transaction left it: a write that is under way is not seen. */
  getBinary(key: string): Buffer | undefined;
  getKeys(range?: {
    readonly start?: string;
    readonly end?: string;
    readonly limit?: number;
  }): Iterable<string>;
  getRange(): Iterable<{ readonly key: string; readonly value: Buffer }>;
  /** Resolves when the transaction is durable. */
  put(key: string, value: Buffer): Promise<unknown>;
  /** As put. */
  remove(key: string): Promise<unknown>;
}

export interface Tables {
  table(name: string): Table;
  /** To be called once a write is durable: a read begun before would go on seeing the tables as they were. */
  refreshReads(): void;
  /** Bytes of the pages in use. */
  usedBytes(): number;
  /** Waits for transactions under way. */
  close(): Promise<void>;
}

/** The tables of a data directory. Throws the system's error when it can't be used. */
export function openLmdb(directory: string): Tables {
  // Without overlappingSync a write's promise resolves when it is on the disk, not when it is visible.
  const root = open({
    path: join(directory, 'store.lmdb'),
    encoding: 'binary',
    overlappingSync: false,
    maxDbs: 8,
  });
  return {
    table: (name) => root.openDB<Buffer, string>({ name, encoding: 'binary' }),
    refreshReads: () => root.resetReadTxn(),
    usedBytes: () => {
      const stats = root.getStats() as { lastPageNumber?: number; pageSize?: number };
      return (stats.lastPageNumber ?? 0) * (stats.pageSize ?? 0);
    },
    close: () => root.close(),
  };
}
