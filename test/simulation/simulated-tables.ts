/**
 * LMDB's guarantees in memory: what is written in one turn of the event loop is one transaction, done whole or not at
 * all, durable when its promises resolve, not seen before. LMDB itself is native code and is not simulated.
 */

import type { Random } from '../../bench/generator/random.js';
import type { Table, Tables } from '../../src/store/tables.js';
import { type Faults, LifeEnded } from './faults.js';
import type { Schedule } from './schedule.js';

export interface WrittenKey {
  readonly table: string;
  readonly key: string;
}

interface Write extends WrittenKey {
  /** null removes. */
  readonly value: Buffer | null;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** What is on the disk. */
export class SimulatedTables {
  readonly #tables = new Map<string, Map<string, Buffer>>();

  of(name: string): Map<string, Buffer> {
    let table = this.#tables.get(name);
    if (table === undefined) {
      table = new Map();
      this.#tables.set(name, table);
    }
    return table;
  }
}

export interface TablesPorts {
  readonly stored: SimulatedTables;
  readonly faults: Faults;
  readonly schedule: Schedule;
  readonly random: () => Random;
  /** Told what a transaction has written, once it is done, before anybody else can know. */
  readonly onDone: (writes: readonly WrittenKey[]) => void;
}

/** The tables as one life sees them. */
export class TablesOfLife implements Tables {
  readonly #ports: TablesPorts;
  #transactions: Write[][] = [];
  /** The transaction that takes what is written in this turn. */
  #open: Write[] | null = null;
  #openSinceTurn = -1;
  readonly #idle: (() => void)[] = [];

  constructor(ports: TablesPorts) {
    this.#ports = ports;
  }

  table(name: string): Table {
    const stored = this.#ports.stored.of(name);
    return {
      getBinary: (key) => stored.get(key),
      getKeys: ({ start, end, limit } = {}) => {
        const keys = [...stored.keys()]
          .filter((key) => (start === undefined || key >= start) && (end === undefined || key < end))
          .sort();
        return limit === undefined ? keys : keys.slice(0, limit);
      },
      getRange: () => [...stored.keys()].sort().map((key) => ({ key, value: stored.get(key)! })),
      put: (key, value) => this.#write(name, key, Buffer.from(value)),
      remove: (key) => this.#write(name, key, null),
    };
  }

  refreshReads(): void {}

  usedBytes(): number {
    return 0;
  }

  async close(): Promise<void> {
    if (this.#transactions.length === 0 || this.#ports.faults.ended !== null) return;
    await new Promise<void>((resolve) => this.#idle.push(resolve));
  }

  /** A bug may be planted here: a write that gets a transaction of its own, before the others of its turn or after. */
  protected apart(_table: string, _key: string): 'before' | 'after' | null {
    return null;
  }

  #write(table: string, key: string, value: Buffer | null): Promise<void> {
    const { schedule } = this.#ports;
    return new Promise((resolve, reject) => {
      const write: Write = { table, key, value, resolve, reject };
      const apart = this.apart(table, key);
      if (apart !== null) this.#begin([write], apart === 'before' ? 0 : this.#transactions.length);
      else if (this.#openSinceTurn === schedule.turn && this.#open !== null) this.#open.push(write);
      else {
        this.#open = [write];
        this.#openSinceTurn = schedule.turn;
        this.#begin(this.#open, this.#transactions.length);
      }
    });
  }

  #begin(writes: Write[], at: number): void {
    this.#transactions.splice(at, 0, writes);
    this.#ports.schedule.push('tables', () => this.#transact());
  }

  #transact(): void {
    const { stored, faults, schedule, onDone } = this.#ports;
    const writes = this.#transactions.shift()!;
    if (writes === this.#open) this.#open = null;
    let failure: unknown = null;
    try {
      faults.run('commit', (part) => {
        if (part < 0.5) return;
        for (const { table, key, value } of writes) {
          if (value === null) stored.of(table).delete(key);
          else stored.of(table).set(key, value);
        }
        onDone(writes);
      });
    } catch (error) {
      if (error instanceof LifeEnded) return;
      failure = error;
    }
    // The serving thread hears of it later.
    schedule.push('main', () => {
      for (const { resolve, reject } of writes) failure === null ? resolve() : reject(failure);
      if (this.#transactions.length === 0) for (const resolve of this.#idle.splice(0)) resolve();
    });
  }
}
