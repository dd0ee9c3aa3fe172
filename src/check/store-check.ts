/** Checks a whole store: tables, values, files, and whether they agree. Changes nothing. */

import { existsSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { VIEWS } from '../../engine/views.js';
import { scopeFolder } from '../store/block-files.js';
import { FORMAT_KEY, lostTables, MARKER_FILE, ROW_FILES_FOLDER, TABLE_FILE } from '../store/sound-table.js';
import { recordedFiles } from './file-blocks.js';
import { type Finding, note } from './findings.js';
import { checkLog } from './log-check.js';
import { topicsOf } from './log-records.js';
import { allOf, type CheckedStore, checkScope } from './scope-check.js';
import { SEGMENTS } from './scope-segments.js';
import { StoredTables } from './stored-tables.js';

export interface CheckedResult {
  readonly store: CheckedStore;
  readonly findings: readonly Finding[];
  readonly scopeCount: number;
  readonly fileCount: number;
}

/**
 * To be called by the holder of the directory's lock. Throws a SegmentError for a directory whose tables are
 * missing, a StoreFormatError for a store of another version, or the system's error.
 */
export function checkStore(directory: string, nowUs: number): CheckedResult {
  const path = join(directory, TABLE_FILE);
  const byteCount = statSync(path, { throwIfNoEntry: false })?.size;
  if (byteCount === undefined || byteCount === 0)
    throw lostTables(path, byteCount === undefined ? 'missing' : 'empty');
  const tables = StoredTables.read(directory);
  const files = recordedFiles(tables.table('files'));
  const store: CheckedStore = { directory, tables, files, nowUs };
  const scopes = scopesOf(tables);
  const findings = [
    ...checkTables(store),
    ...scopes.flatMap((scope) => checkScope(store, scope)),
    ...checkLog(store),
    ...checkOthers(store),
    ...unknownFiles(store),
  ];
  return { store, findings, scopeCount: scopes.length, fileCount: files.size };
}

/** Partitions that have segments or files. */
function scopesOf(tables: StoredTables): string[] {
  const keys = [
    ...tables.table(SEGMENTS).keys(),
    ...tables.table('files').keys(),
    ...tables.damagedValues.filter(({ table }) => table === SEGMENTS).map(({ key }) => key),
  ];
  const scopes = keys.filter((key) => key.includes(':')).map((key) => key.slice(0, key.indexOf(':')));
  // A partition of the embedded log of which nothing else is left.
  const ofLog = topicsOf(tables)
    .map((topic) => `${topic}/0`)
    .filter((scope) => tables.mayHaveLost(SEGMENTS, `${scope}:shard`));
  return [...new Set([...scopes, ...ofLog])];
}

function checkTables({ directory, tables, nowUs }: CheckedStore): Finding[] {
  const { problems, isOutdated, lost } = tables.survey;
  const findings = problems.map(
    (problem): Finding => ({
      what: `${TABLE_FILE}: ${problem}`,
      remedy: 'the tables are written again with everything that can be read of them',
      fixes: [{ do: 'rewrite-tables' }],
      dropped: [],
    }),
  );
  const isOfUnknownExtent =
    isOutdated ||
    lost.some(
      ({ table, low, high }) => table === '*' || (table === SEGMENTS && scopeOf(low) !== scopeOf(high)),
    );
  if (isOfUnknownExtent) {
    const what = isOutdated ? 'what the last commit brought' : 'what stood on damaged pages';
    findings.push({
      ...note(`${TABLE_FILE}: ${what} may be lost, and it is not known of what`),
      remedy: 'is kept as far as it can be read',
      dropped: VIEWS.map(({ kind }) => allOf(kind, nowUs, what)),
    });
  }
  if (!tables.isEmpty && !tables.table('meta').has(FORMAT_KEY)) {
    findings.push({
      what: `${TABLE_FILE}: its format is not written in it`,
      remedy: 'is written',
      fixes: [{ do: 'rewrite-tables' }],
      dropped: [],
    });
  }
  if (!existsSync(join(directory, MARKER_FILE)))
    findings.push(note(`${MARKER_FILE} is missing; the next start makes it`));
  return findings;
}

function scopeOf(key: string | null): string | null {
  return key === null ? null : key.slice(0, key.indexOf(':'));
}

/** Values of tables that nothing answers from. */
function checkOthers({ tables }: CheckedStore): Finding[] {
  return tables.damagedValues
    .filter(({ table }) => table !== SEGMENTS && table !== 'log')
    .map(({ table, problem }): Finding => {
      // The run or part whose file it is of is a finding of its own.
      const remedy = table === 'files' ? 'is dropped with what it is of' : 'is dropped';
      return { what: `table ${table}: ${problem}`, remedy, fixes: [{ do: 'rewrite-tables' }], dropped: [] };
    });
}

function unknownFiles({ directory, files }: CheckedStore): Finding[] {
  const root = join(directory, ROW_FILES_FOLDER);
  if (!existsSync(root)) return [];
  const known = new Set(
    [...files.keys()].map((fileKey) => {
      const colon = fileKey.lastIndexOf(':');
      return join(scopeFolder(root, fileKey.slice(0, colon)), fileKey.slice(colon + 1));
    }),
  );
  const findings: Finding[] = [];
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isDirectory() && !known.has(path))
      findings.push(note(`${path} is not a file of the store; the next start removes it`));
  }
  return findings;
}
