/** Checks a whole store: journals, values, files, and whether they agree. Changes nothing. */

import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { US_PER_MS } from '../../engine/time.js';
import { VIEWS } from '../../engine/views.js';
import { replacedFolders } from '../store/directory/handed-over.js';
import { MARKER_FILE, storeIdOf } from '../store/directory/store-marker.js';
import { SYSTEM_DISK } from '../store/disk/disk.js';
import { DROPPED_KEY } from '../store/dropped-parts.js';
import { parseJournalFile } from '../store/journal/journal-folder.js';
import { SHARDS_FOLDER, scopeOfName, shardFolder, TABLES_FOLDER } from '../store/journal/journals.js';
import { recordedFiles } from './file-blocks.js';
import { type Finding, note } from './findings.js';
import { checkLog } from './log-check.js';
import { LOG, topicsOf } from './log-records.js';
import { allOf, type CheckedStore, checkScope } from './scope-check.js';
import { FILES, LAST_KEY, META, SEGMENTS, type StoredJournal, StoredTables } from './stored-tables.js';

export interface CheckedResult {
  readonly store: CheckedStore;
  readonly findings: readonly Finding[];
  readonly scopeCount: number;
  readonly fileCount: number;
}

/**
 * To be called by the holder of the directory's lock. Throws a SegmentError for a directory whose journals are
 * missing, a StoreFormatError for a store of another version, or the system's error. `clockUs`: what time it is by the
 * machine's clock. `unsure`: see StoredTables.read.
 */
export function checkStore(directory: string, clockUs: number, unsure: Iterable<string> = []): CheckedResult {
  const tables = StoredTables.read(directory, unsure);
  const files = recordedFiles(tables.table(FILES));
  const { committedUs } = tables;
  const store: CheckedStore = {
    directory,
    tables,
    files,
    earliestUs: Math.min(clockUs, committedUs ?? -Infinity),
    latestUs: Math.max(clockUs, committedUs ?? -Infinity),
  };
  const scopes = scopesOf(tables);
  const ofScopes = scopes.flatMap((scope) => checkScope(store, scope));
  const findings = [
    ...checkJournals(store),
    ...ofScopes,
    ...checkLog(store, ofScopes),
    ...checkOthers(store),
    ...unknownFiles(store),
  ];
  return { store, findings, scopeCount: scopes.length, fileCount: files.size };
}

/** Partitions that have segments or files. */
function scopesOf(tables: StoredTables): string[] {
  const keys = [
    ...tables.table(SEGMENTS).keys(),
    ...tables.table(FILES).keys(),
    ...tables.damagedValues.filter(({ table }) => table === SEGMENTS).map(({ key }) => key),
  ];
  const scopes = keys.filter((key) => key.includes(':')).map((key) => key.slice(0, key.indexOf(':')));
  // One of which nothing else is left.
  const journals = [...tables.journals.keys()].map(scopeOfName).filter((scope) => scope !== null);
  const emptied = [...journals, ...topicsOf(tables).map((topic) => `${topic}/0`)].filter((scope) =>
    tables.mayHaveLost(SEGMENTS, `${scope}:shard`),
  );
  // One that went back to before its first commit.
  const shortened = [...tables.shortened].map(scopeOfName).filter((scope) => scope !== null);
  return [...new Set([...scopes, ...emptied, ...shortened])];
}

function checkJournals({ directory, tables, latestUs }: CheckedStore): Finding[] {
  const findings = tables.problems.map(
    ({ what, journal }): Finding => ({
      what,
      remedy: tables.shortened.has(journal)
        ? shortenedText(tables.journals.get(journal)!)
        : 'is written again with everything that can be read of it',
    }),
  );
  const hasLostDropped = tables.lostKeys(META, DROPPED_KEY, `${DROPPED_KEY}${LAST_KEY}`).length > 0;
  if (hasLostDropped || tables.shortened.has(`${TABLES_FOLDER}/${META}`)) {
    const what = 'what earlier repairs had dropped';
    findings.push({
      what: `${what} may be lost`,
      remedy: 'all answers say that they may lack something',
      dropped: VIEWS.map(({ kind }) => allOf(kind, latestUs, what)),
    });
  }
  for (const path of replacedFolders(SYSTEM_DISK, directory))
    findings.push(note(`${path} was being replaced by a copy; the next start, or --repair, brings it back`));
  if (storeIdOf(SYSTEM_DISK, directory) === null)
    findings.push(note(`${MARKER_FILE} is missing or damaged; the next start makes it`));
  return findings;
}

function shortenedText({ sequence, timeUs }: StoredJournal): string {
  if (sequence === 0) return 'goes back to before its first commit: all that it held is dropped';
  const time = timeUs === null ? '' : ` of ${new Date(timeUs / US_PER_MS).toISOString()}`;
  return `goes back to commit ${sequence}${time}: what later ones brought is dropped`;
}

/** Values of tables that nothing answers from. */
function checkOthers({ tables }: CheckedStore): Finding[] {
  return tables.damagedValues
    .filter(({ table }) => table !== SEGMENTS && table !== LOG)
    .map(({ table, problem }): Finding => {
      // The run or part whose file it is of is a finding of its own.
      const remedy =
        table === FILES
          ? 'is dropped; what becomes of its file is said with its rows or usage'
          : 'is dropped';
      return { what: `table ${table}: ${problem}`, remedy };
    });
}

function unknownFiles({ directory, files }: CheckedStore): Finding[] {
  const root = join(directory, SHARDS_FOLDER);
  if (!existsSync(root)) return [];
  const known = new Set(
    [...files.keys()].map((fileKey) => {
      const colon = fileKey.lastIndexOf(':');
      return join(shardFolder(directory, fileKey.slice(0, colon)), fileKey.slice(colon + 1));
    }),
  );
  const findings: Finding[] = [];
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isDirectory() && !known.has(path) && parseJournalFile(entry.name) === null)
      findings.push(note(`${path} is not a file of the store; the next start removes it`));
  }
  return findings;
}
