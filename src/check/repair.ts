/**
 * Repairs a store: drops what a check has found to be damaged, notes what answers lack from then on, and
 * writes the tables again. What stood before counts until the new tables take their place, in one step; they
 * are kept beside.
 */

import { closeSync, fsyncSync, openSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { open } from 'lmdb';
import { indexPrefix, openName } from '../../engine/rows/fresh-run.js';
import { decodeManifest, encodeManifest, type RunInfo, runFile } from '../../engine/rows/run.js';
import { fileRecord, scopeFolder } from '../store/block-files.js';
import { CompactionFiles } from '../store/compaction-files.js';
import { SYSTEM_DISK } from '../store/disk.js';
import {
  DROPPED_TABLE,
  type DroppedPart,
  decodeDropped,
  droppedKey,
  encodeDropped,
  isStillMissed,
} from '../store/dropped-table.js';
import { openEnvelope, wrapEnvelope } from '../store/envelope.js';
import { FORMAT_KEY, ROW_FILES_FOLDER, TABLE_FILE, TABLE_LOCK_FILE } from '../store/sound-table.js';
import { STORE_FORMAT } from '../store/store-format.js';
import { systemFiles } from './file-blocks.js';
import type { Finding, Fix } from './findings.js';
import { salvage } from './salvage.js';
import type { CheckedStore } from './scope-check.js';
import { SEGMENTS } from './scope-segments.js';

/** What was there before the repair. */
export const BEFORE_REPAIR_FILE = 'store.lmdb.before-repair';
const NEW_TABLES_FILE = 'store.lmdb.new';
const MANIFEST = 'rows/manifest';

export async function repairStore(store: CheckedStore, findings: readonly Finding[]): Promise<void> {
  const repair = new Repair(store);
  for (const { fixes } of findings) for (const fix of fixes) repair.apply(fix);
  repair.finish(findings.flatMap(({ dropped }) => dropped));
  await writeTables(store);
}

/** Runs of a scope after the repair. */
interface Runs {
  nextId: number;
  readonly list: RunInfo[];
}

class Repair {
  readonly #store: CheckedStore;
  readonly #runs = new Map<string, Runs>();

  constructor(store: CheckedStore) {
    this.#store = store;
  }

  apply(fix: Fix): void {
    const { tables } = this.#store;
    switch (fix.do) {
      case 'rewrite-tables':
        return;
      case 'delete':
        for (const key of fix.keys) tables.table(fix.table).delete(key);
        return;
      case 'put':
        tables.table(fix.table).set(fix.key, fix.value);
        return;
      case 'set-runs':
        this.#runs.set(fix.scope, { nextId: idAfter(fix.runs), list: [...fix.runs] });
        return;
      case 'drop-run':
        this.#dropRun(fix.scope, fix.info);
        return;
      case 'salvage-run':
        this.#salvageRun(fix.scope, fix.info, fix.damagedBlocks);
        return;
    }
  }

  /** Notes what is gone, and which runs there are. */
  finish(dropped: readonly DroppedPart[]): void {
    const { tables, nowUs } = this.#store;
    for (const [scope, { nextId, list }] of this.#runs) {
      const key = `${scope}:${MANIFEST}`;
      tables.table(SEGMENTS).set(key, wrapEnvelope(key, encodeManifest(nextId, list)));
    }
    const table = tables.table(DROPPED_TABLE);
    const parts = [...[...table].map(([key, value]) => decodeDropped(key, value)), ...dropped];
    table.clear();
    for (const [i, part] of parts.filter((part) => isStillMissed(part, nowUs)).entries())
      table.set(droppedKey(i), encodeDropped(droppedKey(i), part));
    tables.table('meta').set(FORMAT_KEY, Buffer.from(String(STORE_FORMAT)));
  }

  #runsOf(scope: string): Runs {
    let runs = this.#runs.get(scope);
    if (runs === undefined) {
      const key = `${scope}:${MANIFEST}`;
      const decoded = decodeManifest(openEnvelope(key, this.#store.tables.table(SEGMENTS).get(key)!));
      runs = { nextId: decoded.nextId, list: decoded.runs };
      this.#runs.set(scope, runs);
    }
    return runs;
  }

  /** What is in its file goes; a block that is still being filled stays, and the run with it. */
  #dropRun(scope: string, info: RunInfo): void {
    const { tables } = this.#store;
    const file = runFile(info);
    const runs = this.#runsOf(scope);
    const open = `${scope}:${openName(file)}`;
    deleteKeys(tables.table(SEGMENTS), `${scope}:${indexPrefix(file)}`);
    deleteKeys(tables.table('files'), `${scope}:${file}#`);
    if (tables.table(SEGMENTS).has(open)) return;
    runs.list.splice(
      runs.list.findIndex((run) => runFile(run) === file),
      1,
    );
  }

  #salvageRun(scope: string, info: RunInfo, damagedBlocks: readonly number[]): void {
    const { directory, tables, files } = this.#store;
    const file = runFile(info);
    const runs = this.#runsOf(scope);
    const made: RunInfo = { ...info, id: runs.nextId++, kind: 'sorted', isClosed: true };
    const folder = scopeFolder(join(directory, ROW_FILES_FOLDER), scope);
    rmSync(join(folder, runFile(made)), { force: true });
    const inputs = [files.get(`${scope}:${file}`)!];
    const frameEnds = salvage(
      new CompactionFiles(systemFiles(), `${scope}:`, folder, inputs),
      info,
      damagedBlocks,
      runFile(made),
    );
    this.#dropRun(scope, info);
    if (frameEnds.length === 0) return;
    const lengths = Array.from(frameEnds, (end, i) => end - (i === 0 ? 0 : frameEnds[i - 1]));
    const { key, value } = fileRecord(`${scope}:${runFile(made)}`, 0, true, lengths);
    tables.table('files').set(key, value);
    runs.list.push(made);
  }
}

function deleteKeys(table: Map<string, Uint8Array>, prefix: string): void {
  for (const key of table.keys()) if (key.startsWith(prefix)) table.delete(key);
}

function idAfter(runs: readonly RunInfo[]): number {
  return runs.reduce((next, { id }) => Math.max(next, id + 1), 0);
}

/** Durable when it resolves. */
async function writeTables({ directory, tables }: CheckedStore): Promise<void> {
  const path = join(directory, NEW_TABLES_FILE);
  for (const left of [path, `${path}-lock`]) rmSync(left, { force: true });
  const root = open({ path, encoding: 'binary', overlappingSync: false, maxDbs: 8 });
  for (const [name, entries] of tables.all()) {
    const table = root.openDB<Buffer, string>({ name, encoding: 'binary' });
    table.transactionSync(() => {
      for (const [key, value] of entries) table.putSync(key, Buffer.from(value));
    });
  }
  await root.flushed;
  await root.close();
  const descriptor = openSync(path, 'r+');
  fsyncSync(descriptor);
  closeSync(descriptor);
  for (const left of [`${path}-lock`, join(directory, TABLE_LOCK_FILE)]) rmSync(left, { force: true });
  renameSync(join(directory, TABLE_FILE), join(directory, BEFORE_REPAIR_FILE));
  renameSync(path, join(directory, TABLE_FILE));
  SYSTEM_DISK.syncFolder(directory);
}
