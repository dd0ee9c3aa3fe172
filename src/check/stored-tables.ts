/** Everything that the tables of a store hold, read without LMDB, and what of it can't be read. */

import { join } from 'node:path';
import { COMMITTED_TIME_KEY } from '../store/committed-time.js';
import { type LostKeys, type Survey, surveyLmdb } from '../store/lmdb-survey.js';
import { FORMAT_KEY, TABLE_FILE, TABLES, valueProblem } from '../store/sound-table.js';
import { isReadableFormat, storeFormatError } from '../store/store-format.js';

/** Values as they are stored, by key, in order of key. */
export type StoredTable = Map<string, Uint8Array>;

export interface DamagedValue {
  readonly table: string;
  readonly key: string;
  readonly problem: string;
}

/** The tables may be changed: a repair writes what is left of them. */
export class StoredTables {
  readonly survey: Survey;
  readonly damagedValues: readonly DamagedValue[];
  /** Whether there is anything in them at all. */
  readonly isEmpty: boolean;
  readonly #tables: ReadonlyMap<string, StoredTable>;

  private constructor(
    survey: Survey,
    tables: ReadonlyMap<string, StoredTable>,
    damaged: readonly DamagedValue[],
  ) {
    this.survey = survey;
    this.#tables = tables;
    this.damagedValues = damaged;
    this.isEmpty = damaged.length === 0 && [...tables.values()].every(({ size }) => size === 0);
  }

  /**
   * Holds all of it in memory. Throws a StoreFormatError for a store of another version, or the system's
   * error.
   */
  static read(directory: string): StoredTables {
    const path = join(directory, TABLE_FILE);
    const tables = new Map<string, StoredTable>(TABLES.map((name) => [name, new Map()]));
    const damaged: DamagedValue[] = [];
    const survey = surveyLmdb(path, (table, key, value) => {
      const problem = entryProblem(table, key, value, path);
      if (problem === null) tables.get(table)!.set(key, value);
      else damaged.push({ table, key, problem });
      return problem === null;
    });
    return new StoredTables(survey, tables, damaged);
  }

  table(name: string): StoredTable {
    return this.#tables.get(name)!;
  }

  all(): Iterable<[string, StoredTable]> {
    return this.#tables;
  }

  /** Whether a key may have been lost, its value or itself. */
  mayHaveLost(table: string, key: string): boolean {
    return this.lostKeys(table, key, `${key}\0`).length > 0;
  }

  /** What is lost that may lie in [low, high). */
  lostKeys(table: string, low: string, high: string): LostKeys[] {
    return this.survey.lost.filter(
      (lost) =>
        (lost.table === table || lost.table === '*') &&
        (lost.low === null || lost.low < high) &&
        (lost.high === null || low < lost.high),
    );
  }
}

function entryProblem(table: string, key: string, value: Uint8Array, path: string): string | null {
  if (!TABLES.includes(table))
    return `${JSON.stringify(key)} is in an unknown table ${JSON.stringify(table)}`;
  if (table !== 'meta' || key === COMMITTED_TIME_KEY) return valueProblem(key, value);
  const format = Buffer.from(value).toString();
  if (key === FORMAT_KEY && isReadableFormat(format)) return null;
  if (key === FORMAT_KEY && /^[1-9][0-9]{0,5}$/.test(format)) throw storeFormatError(path, format);
  return `the table meta holds no format version under ${JSON.stringify(key)}`;
}
