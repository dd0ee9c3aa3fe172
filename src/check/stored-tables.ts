/** Everything that the journals of a store hold, and what of it can't be read. */

import { join } from 'node:path';
import { entryOf } from '../../engine/entry-of.js';
import { finished } from '../../engine/steps.js';
import { FILE_KEY } from '../store/blocks/file-records.js';
import { hasMarker, lostStore, UnusableStoreError } from '../store/directory/store-marker.js';
import { SYSTEM_DISK } from '../store/disk/disk.js';
import { type JournalProblem, type Location, readJournal } from '../store/journal/journal-folder.js';
import {
  HEAD_KEY,
  headSequence,
  journalFolders,
  META_TABLE,
  SCOPE_KEY,
  scopeOfName,
  shardFolder,
  shardName,
  TABLES_FOLDER,
  valueName,
} from '../store/journal/journals.js';
import { OpenWindows } from '../store/journal/open-windows.js';
import { checkValue } from '../store/values/checked-value.js';
import { loadProblem } from './findings.js';

/** Segments of all shards, by scope and colon and name. */
export const SEGMENTS = 'segments';
/** What is known of files, by scope and colon and the key in the scope's journal. */
export const FILES = 'files';
export const META = META_TABLE;

/** Values as they are stored, by key, in order of key. */
export type StoredTable = Map<string, Uint8Array>;

export interface DamagedValue {
  readonly table: string;
  readonly key: string;
  readonly problem: string;
}

/** Keys of a table between which something is lost, both exclusive. */
interface LostKeys {
  readonly table: string;
  readonly low: string;
  readonly high: string;
}

/** A journal as it is to be written again. */
export interface StoredJournal {
  readonly name: string;
  readonly folder: string;
  /** Of its last commit. */
  readonly sequence: number;
  readonly timeUs: number | null;
}

/** Behind all keys, as strings are ordered. */
export const LAST_KEY = '\uffff';

/** The tables may be changed: a repair writes what is left of them. */
export class StoredTables {
  /** What is wrong with the journals, and with which. */
  readonly problems: { readonly what: string; readonly journal: string }[] = [];
  readonly damagedValues: DamagedValue[] = [];
  readonly journals = new Map<string, StoredJournal>();
  /** Journals that lack commits which they had. */
  readonly shortened = new Set<string>();
  readonly #lost: LostKeys[] = [];
  readonly #tables = new Map<string, StoredTable>();

  /**
   * Holds all of it in memory. `unsure`: journals that may lack their last commits, though it does not show. Throws a
   * StoreFormatError for a store of another version, a SegmentError for a directory without one, or the system's error.
   */
  static read(directory: string, unsure: Iterable<string> = []): StoredTables {
    const tables = new StoredTables();
    const isMarked = hasMarker(SYSTEM_DISK, directory);
    const windows = new OpenWindows(SYSTEM_DISK, 4, 0);
    try {
      for (const place of journalFolders(SYSTEM_DISK, directory)) tables.#readJournal(place, windows);
    } finally {
      windows.closeAll();
    }
    if (!tables.journals.has(`${TABLES_FOLDER}/${META}`)) {
      if (isMarked || tables.journals.size > 0) throw lostStore(directory, `${TABLES_FOLDER}/${META}`);
      throw new UnusableStoreError(`there is no store in ${directory}`);
    }
    tables.#compareWithMeta(directory);
    for (const name of unsure) {
      if (!tables.shortened.has(name))
        tables.#shorten(directory, name, `journal ${name} may lack its last commits`);
    }
    return tables;
  }

  /** The latest that a commit was told, µs since the epoch; null where none is left that was. */
  get committedUs(): number | null {
    const timesUs = [...this.journals.values()].flatMap(({ timeUs }) => timeUs ?? []);
    return timesUs.length === 0 ? null : Math.max(...timesUs);
  }

  table(name: string): StoredTable {
    return entryOf(this.#tables, name, () => new Map());
  }

  /** The keys of a table that begin with the prefix. */
  keysWith(table: string, prefix: string): string[] {
    return [...this.table(table).keys()].filter((key) => key.startsWith(prefix));
  }

  /** What a journal holds, by its own keys. */
  entriesOf(journal: string): [string, Uint8Array][] {
    const scope = scopeOfName(journal);
    if (scope === null) return [...this.table(journal.slice(TABLES_FOLDER.length + 1))];
    const prefix = `${scope}:`;
    return [SEGMENTS, FILES].flatMap((name) =>
      [...this.table(name)]
        .filter(([key]) => key.startsWith(prefix))
        .map(([key, value]): [string, Uint8Array] => [key.slice(prefix.length), value]),
    );
  }

  /** Whether a key may have been lost, its value or itself. */
  mayHaveLost(table: string, key: string): boolean {
    return this.lostKeys(table, key, `${key}\0`).length > 0;
  }

  /** Whether anything of a table may have been lost. */
  mayHaveLostAny(table: string): boolean {
    return this.#lost.some((lost) => lost.table === table);
  }

  /** What is lost that may lie in [low, high). */
  lostKeys(table: string, low: string, high: string): LostKeys[] {
    return this.#lost.filter((lost) => lost.table === table && lost.low < high && low < lost.high);
  }

  #readJournal(
    place: { readonly name: string; readonly folder: string; readonly fileNames: readonly string[] },
    windows: OpenWindows,
  ): void {
    const { name, folder } = place;
    const onProblem = ({ what, lost }: JournalProblem): void => {
      this.problems.push({ what, journal: name });
      if (lost === null) this.shortened.add(name);
      else this.#noteLost(name, lost.low, lost.high);
    };
    const valueProblem = (tableKey: string, value: Uint8Array): string | null =>
      loadProblem(() => checkValue('segment', tableKey, value));
    const isWholeValue = (key: string, value: Uint8Array): boolean =>
      valueProblem(valueName(name, key), value) === null;
    const steps = readJournal(SYSTEM_DISK, { ...place, upTo: Infinity, isWholeValue }, onProblem);
    const { sequence, timeUs, entries } = finished(steps);
    this.journals.set(name, { name, folder, sequence, timeUs });
    for (const key of [...entries.keys()].sort()) {
      const table = tableOf(name, key);
      const tableKey = valueName(name, key);
      const value = valueAt(windows, entries.get(key)!);
      const problem = valueProblem(tableKey, value);
      if (problem === null) this.table(table).set(tableKey, value);
      else this.damagedValues.push({ table, key: tableKey, problem });
    }
  }

  #noteLost(name: string, low: string | null, high: string | null): void {
    const scope = scopeOfName(name);
    const prefix = scope === null ? '' : `${scope}:`;
    this.#lost.push({
      table: scope === null ? name.slice(TABLES_FOLDER.length + 1) : SEGMENTS,
      low: `${prefix}${low ?? ''}`,
      high: `${prefix}${high ?? LAST_KEY}`,
    });
  }

  /** There is a journal of that name from now on, to be written again. */
  #shorten(directory: string, name: string, what: string): void {
    const scope = scopeOfName(name);
    const folder = scope === null ? join(directory, name) : shardFolder(directory, scope);
    if (!this.journals.has(name)) this.journals.set(name, { name, folder, sequence: 0, timeUs: null });
    this.problems.push({ what, journal: name });
    this.shortened.add(name);
  }

  /** What the store knows of its journals is more than they have. */
  #compareWithMeta(directory: string): void {
    const meta = this.table(META);
    for (const key of meta.keys()) {
      if (key.startsWith(SCOPE_KEY)) {
        const scope = key.slice(SCOPE_KEY.length);
        const name = shardName(scope);
        if (this.journals.has(name)) continue;
        const folder = shardFolder(directory, scope);
        this.problems.push({
          what: `the journal of partition ${scope} is missing: ${folder}`,
          journal: name,
        });
        this.journals.set(name, { name, folder, sequence: 0, timeUs: null });
        this.#noteLost(name, null, null);
      } else if (key.startsWith(HEAD_KEY)) {
        const name = key.slice(HEAD_KEY.length);
        const sequence = headSequence(key, meta.get(key)!);
        const has = this.journals.get(name)?.sequence ?? 0;
        if (has >= sequence || this.shortened.has(name)) continue;
        this.#shorten(directory, name, `journal ${name} ends with commit ${has}, and had commit ${sequence}`);
      }
    }
  }
}

function tableOf(journal: string, key: string): string {
  if (scopeOfName(journal) === null) return journal.slice(TABLES_FOLDER.length + 1);
  return key.startsWith(FILE_KEY) ? FILES : SEGMENTS;
}

function valueAt(windows: OpenWindows, { path, at, length }: Location): Uint8Array {
  return windows.read(path, at, length).slice();
}
