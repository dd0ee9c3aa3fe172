/**
 * Repairs a store: drops what a check has found to be damaged, notes what answers lack from then on, and
 * writes the journals again. What stood before is kept beside.
 */

import { closeSync, existsSync, fsyncSync, openSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { entryOf } from '../../engine/entry-of.js';
import { indexPrefix, openName } from '../../engine/rows/fresh-run.js';
import { decodeManifest, encodeManifest, type RunInfo, runFile } from '../../engine/rows/run.js';
import { finished } from '../../engine/steps.js';
import { CompactionFiles } from '../store/blocks/compaction-files.js';
import { SYSTEM_DISK } from '../store/disk/disk.js';
import {
  DROPPED_KEY,
  type DroppedPart,
  decodeDropped,
  droppedKey,
  encodeDropped,
  isStillMissed,
} from '../store/dropped-parts.js';
import { writeEntries } from '../store/journal/checkpoint.js';
import { journalPath, parseJournalFile } from '../store/journal/journal-folder.js';
import { SCOPE_KEY, scopeOfName, shardFolder, shardName, TABLES_FOLDER } from '../store/journal/journals.js';
import { ReadableFile } from '../store/journal/readable-file.js';
import { BACKUP_STRETCH_BYTES } from '../store/limits.js';
import { openEnvelope, rawEnvelope, wrapEnvelope } from '../store/values/envelope.js';
import { fileRecordPrefix, systemFiles, wholeFileRecord } from './file-blocks.js';
import type { Finding, Fix } from './findings.js';
import { salvage } from './salvage.js';
import type { CheckedStore } from './scope-check.js';
import { FILES, META, SEGMENTS, type StoredJournal, type StoredTables } from './stored-tables.js';

/** Begins the name of the folder with what was there before a repair. */
export const BEFORE_REPAIR_FOLDER = 'before-repair';
const MANIFEST = 'rows/manifest';

export function repairStore(store: CheckedStore, findings: readonly Finding[]): void {
  const repair = new Repair(store);
  for (const { fixes = [] } of findings) for (const fix of fixes) repair.apply(fix);
  repair.finish(findings.flatMap(({ dropped = [] }) => dropped));
  writeJournals(store);
}

type SalvageFix = Extract<Fix, { readonly do: 'salvage-run' }>;

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
        this.#salvageRun(fix);
        return;
    }
  }

  /** Notes what is gone, and which runs there are. */
  finish(dropped: readonly DroppedPart[]): void {
    const { tables, earliestUs } = this.#store;
    for (const [scope, { nextId, list }] of this.#runs) {
      const key = `${scope}:${MANIFEST}`;
      tables.table(SEGMENTS).set(key, wrapEnvelope(key, encodeManifest(nextId, list)));
    }
    const meta = tables.table(META);
    const parts: DroppedPart[] = [];
    for (const [key, value] of [...meta]) {
      if (key.startsWith(DROPPED_KEY)) parts.push(decodeDropped(key, value));
      meta.delete(key);
    }
    for (const [i, part] of [...parts, ...dropped]
      .filter((part) => isStillMissed(part, earliestUs))
      .entries())
      meta.set(droppedKey(i), encodeDropped(droppedKey(i), part));
    for (const scope of scopesWithEntries(tables))
      meta.set(`${SCOPE_KEY}${scope}`, rawEnvelope(`${SCOPE_KEY}${scope}`));
  }

  #runsOf(scope: string): Runs {
    return entryOf(this.#runs, scope, () => {
      const key = `${scope}:${MANIFEST}`;
      const { nextId, runs } = decodeManifest(
        openEnvelope(key, this.#store.tables.table(SEGMENTS).get(key)!),
      );
      return { nextId, list: runs };
    });
  }

  /** What is in its file goes; a block that is still being filled stays, and the run with it. */
  #dropRun(scope: string, info: RunInfo): void {
    const { tables } = this.#store;
    const file = runFile(info);
    const runs = this.#runsOf(scope);
    const open = `${scope}:${openName(file)}`;
    for (const key of tables.keysWith(SEGMENTS, `${scope}:${indexPrefix(file)}`))
      tables.table(SEGMENTS).delete(key);
    for (const key of tables.keysWith(FILES, fileRecordPrefix(`${scope}:${file}`)))
      tables.table(FILES).delete(key);
    if (tables.table(SEGMENTS).has(open)) return;
    runs.list.splice(
      runs.list.findIndex((run) => runFile(run) === file),
      1,
    );
  }

  #salvageRun({ scope, info, stored, damagedBlocks }: SalvageFix): void {
    const { directory, tables } = this.#store;
    const runs = this.#runsOf(scope);
    const made: RunInfo = { ...info, id: runs.nextId++, kind: 'sorted', isClosed: true };
    const folder = shardFolder(directory, scope);
    rmSync(join(folder, runFile(made)), { force: true });
    const frameEnds = salvage(
      new CompactionFiles(systemFiles(), `${scope}:`, folder, [stored]),
      info,
      damagedBlocks,
      runFile(made),
    );
    this.#dropRun(scope, info);
    if (frameEnds.length === 0) return;
    const { key, value } = wholeFileRecord(scope, { file: runFile(made), frameEnds, hasDictionary: true });
    tables.table(FILES).set(key, value);
    runs.list.push(made);
  }
}

function idAfter(runs: readonly RunInfo[]): number {
  return runs.reduce((next, { id }) => Math.max(next, id + 1), 0);
}

function scopesWithEntries(tables: StoredTables): string[] {
  const scopes = [...tables.journals.keys()].map(scopeOfName).filter((scope) => scope !== null);
  return scopes.filter((scope) => tables.entriesOf(shardName(scope)).length > 0);
}

/**
 * Each journal becomes a checkpoint; what stood before is kept aside first. What is dropped is noted before
 * anything is: a repair that is killed in between is begun again. Durable when it returns.
 */
function writeJournals({ directory, tables }: CheckedStore): void {
  const kept = firstFree(directory);
  const { folders } = systemFiles();
  const meta = `${TABLES_FOLDER}/${META}`;
  const others = [...tables.journals.values()].filter(({ name }) => name !== meta);
  const journals = [tables.journals.get(meta)!, ...others];
  for (const { folder } of journals) {
    if (!existsSync(folder)) continue;
    const aside = join(kept, relative(directory, folder));
    folders.make(aside);
    // Copies, as what is left of a journal may get more if the repair is not finished.
    for (const fileName of journalFileNames(folder))
      copyReadable(join(folder, fileName), join(aside, fileName));
  }
  folders.sync();
  for (const journal of journals) writeJournal(journal, tables.entriesOf(journal.name));
}

function writeJournal(
  { name, folder, sequence, timeUs }: StoredJournal,
  entries: [string, Uint8Array][],
): void {
  const files = systemFiles();
  const { disk, folders } = files;
  folders.make(folder);
  const old = journalFileNames(folder);
  const number = 1 + Math.max(0, ...old.map((fileName) => parseJournalFile(fileName)!.number));
  const path = journalPath(folder, number);
  disk.close(disk.open(path, 'wx+'));
  const values = new Map(entries);
  const written = writeEntries(files, { folder, name }, number, {
    keys: [...values.keys()].sort(),
    value: (key) => values.get(key)!,
    last: { sequence, timeUs, checksum: 0 },
  });
  finished(written);
  folders.sync();
  for (const fileName of old) disk.remove(join(folder, fileName));
}

function journalFileNames(folder: string): string[] {
  return existsSync(folder)
    ? readdirSync(folder).filter((fileName) => parseJournalFile(fileName) !== null)
    : [];
}

/** With zeros for what the disk does not give back. Durable when it returns. */
function copyReadable(path: string, copy: string): void {
  const file = new ReadableFile(SYSTEM_DISK, path, 0);
  const descriptor = openSync(copy, 'w');
  try {
    for (let at = 0; at < file.byteCount; at += BACKUP_STRETCH_BYTES)
      writeFileSync(descriptor, file.read(at, BACKUP_STRETCH_BYTES));
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
    file.close();
  }
}

function firstFree(directory: string): string {
  for (let i = 1; ; i++) {
    const folder = join(directory, `${BEFORE_REPAIR_FOLDER}-${i}`);
    if (!existsSync(folder)) return folder;
  }
}
