/**
 * The guarantees of the store's tables in memory: a transaction is done whole or not at all, durable when its
 * promise resolves, not seen before. LMDB itself is native code and is not simulated.
 */

import type { Table, Tables, TableWrites } from '../../src/store/tables.js';
import { type Faults, LifeEnded } from './faults.js';
import type { Schedule } from './schedule.js';

/** What is on the disk. */
export class SimulatedTables {
  readonly #tables = new Map<string, Map<string, Uint8Array>>();

  of(name: string): Map<string, Uint8Array> {
    let table = this.#tables.get(name);
    if (table === undefined) {
      table = new Map();
      this.#tables.set(name, table);
    }
    return table;
  }
}

export interface WrittenKey {
  readonly table: string;
  readonly key: string;
}

export interface TablesPorts {
  readonly stored: SimulatedTables;
  readonly faults: Faults;
  readonly schedule: Schedule;
  /** Told what a transaction has written, once it is done, before anybody else can know. */
  readonly onDone: (keys: readonly WrittenKey[]) => void;
}

interface Transaction {
  readonly writes: readonly TableWrites[];
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The tables as one life sees them. */
export class TablesOfLife implements Tables {
  readonly usedBytes = 0;
  readonly #ports: TablesPorts;
  readonly #names = new Map<Table, string>();
  readonly #waiting: Transaction[] = [];
  /** Transactions of which the serving thread has not heard yet. */
  #untoldCount = 0;
  readonly #idle: (() => void)[] = [];

  constructor(ports: TablesPorts) {
    this.#ports = ports;
  }

  table(name: string): Table {
    const stored = this.#ports.stored.of(name);
    const table: Table = {
      getBinary: (key) => stored.get(key),
      getKeys: ({ start, end, limit } = {}) => {
        const keys = [...stored.keys()]
          .filter((key) => (start === undefined || key >= start) && (end === undefined || key < end))
          .sort();
        return limit === undefined ? keys : keys.slice(0, limit);
      },
      getRange: () => [...stored.keys()].sort().map((key) => ({ key, value: stored.get(key)! })),
    };
    this.#names.set(table, name);
    return table;
  }

  /** Nobody else can reach them. */
  assertSame(): void {}

  refreshReads(): void {}

  async write(writes: readonly TableWrites[]): Promise<void> {
    await Promise.all(this.transactionsOf(writes).map((part) => this.#begin(part)));
  }

  async close(): Promise<void> {
    if (this.#untoldCount === 0 || this.#ports.faults.ended !== null) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** All as one; a bug may be planted here. */
  protected transactionsOf(writes: readonly TableWrites[]): readonly (readonly TableWrites[])[] {
    return [writes];
  }

  protected nameOf(table: Table): string {
    return this.#names.get(table)!;
  }

  #begin(writes: readonly TableWrites[]): Promise<void> {
    return new Promise((resolve, reject) => {
      // The bytes may be used for something else once the writer is told.
      const copies = writes.map(({ table, puts, removedKeys }) => {
        return { table, removedKeys, puts: puts.map(({ key, value }) => ({ key, value: value.slice() })) };
      });
      this.#waiting.push({ writes: copies, resolve, reject });
      this.#untoldCount += 1;
      this.#ports.schedule.push('tables', () => this.#transact());
    });
  }

  #transact(): void {
    const { faults, schedule } = this.#ports;
    const { writes, resolve, reject } = this.#waiting.shift()!;
    let failure: unknown = null;
    try {
      faults.run('commit', (part) => {
        if (part > 0.5) this.#apply(writes);
      });
    } catch (error) {
      if (error instanceof LifeEnded) return;
      failure = error;
    }
    // The serving thread hears of it later.
    schedule.push('main', () => {
      if (failure === null) resolve();
      else reject(failure);
      this.#untoldCount -= 1;
      if (this.#untoldCount === 0) for (const idle of this.#idle.splice(0)) idle();
    });
  }

  #apply(writes: readonly TableWrites[]): void {
    const written: WrittenKey[] = [];
    for (const { table, puts, removedKeys } of writes) {
      const name = this.nameOf(table);
      const stored = this.#ports.stored.of(name);
      for (const { key, value } of puts) {
        stored.set(key, value);
        written.push({ table: name, key });
      }
      for (const key of removedKeys) {
        stored.delete(key);
        written.push({ table: name, key });
      }
    }
    this.#ports.onDone(written);
  }
}
