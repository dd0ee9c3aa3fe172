/** The embedded log's table, topic by topic: its offsets as they are stored and as its records are. */

import { TABLES_FOLDER } from '../store/journal/journals.js';
import { type Chunk, keysOf, offsetPut, parseChunkKey, storedOffset } from '../store/log-chunk.js';
import type { Fix } from './findings.js';
import type { StoredTables } from './stored-tables.js';

export const LOG = 'log';
const TOPIC_KEY = /^([^/]+)\//;
export const IMPORT_KEY = /^.+\/import\/.+$/;
export const POST_KEY = /^.+\/post\/[0-9a-f]{64}$/;

export interface TopicLog {
  /** As stored; null when it is lost or was never written. */
  readonly storedStart: number | null;
  readonly storedEnd: number | null;
  /** In order, those with damaged values included. */
  readonly chunks: readonly Chunk[];
  /**
   * The range of records that is to be taken for the log's: as stored, where it is, else as the records are.
   */
  readonly start: number;
  readonly end: number;
}

export function topicsOf(tables: StoredTables): string[] {
  const damaged = tables.damagedValues.filter(({ table }) => table === LOG).map(({ key }) => key);
  const topics = [...tables.table(LOG).keys(), ...damaged].flatMap((key) => TOPIC_KEY.exec(key)?.[1] ?? []);
  return [...new Set(topics)];
}

/** null when the log has nothing of the topic. */
export function topicLog(tables: StoredTables, topic: string): TopicLog | null {
  const damaged = tables.damagedValues.filter(({ table }) => table === LOG).map(({ key }) => key);
  const chunks = [...tables.table(LOG).keys(), ...damaged]
    .flatMap((key) => {
      const chunk = parseChunkKey(key);
      return chunk?.topic === topic ? [chunk] : [];
    })
    .sort((a, b) => a.start - b.start);
  const storedStart = offsetAt(tables, `${topic}/start`);
  const storedEnd = offsetAt(tables, `${topic}/end`);
  if (storedStart === null && storedEnd === null && chunks.length === 0) return null;
  const behind = chunks.at(-1)?.end ?? null;
  const isStartLost = storedStart === null && tables.mayHaveLost(LOG, `${topic}/start`);
  const start = isStartLost ? (chunks[0]?.start ?? storedEnd ?? 0) : (storedStart ?? 0);
  const end = Math.max(storedEnd ?? start, behind ?? start, start);
  return { storedStart, storedEnd, chunks, start, end };
}

/** Of a topic of which the log has nothing left: null when it never had anything, as with Kafka. */
export function lostLog(tables: StoredTables): TopicLog | null {
  const isDamaged = isShortened(tables) || tables.mayHaveLostAny(LOG);
  return isDamaged ? { storedStart: null, storedEnd: null, chunks: [], start: 0, end: 0 } : null;
}

/** Whether the log lacks commits that it had. */
export function isShortened(tables: StoredTables): boolean {
  return tables.shortened.has(`${TABLES_FOLDER}/${LOG}`);
}

/** Leaves the log empty, at its end. */
export function withoutRecords(topic: string, { chunks, end }: TopicLog): Fix[] {
  return [
    putOffset(`${topic}/start`, end),
    putOffset(`${topic}/end`, end),
    { do: 'delete', table: LOG, keys: chunks.flatMap(keysOf) },
  ];
}

export function putOffset(key: string, offset: number): Fix {
  return { do: 'put', table: LOG, ...offsetPut(key, offset) };
}

function offsetAt(tables: StoredTables, key: string): number | null {
  const value = tables.table(LOG).get(key);
  return value === undefined ? null : storedOffset(key, value);
}
