/** The embedded log's table, topic by topic: its offsets as they are stored and as its records are. */

import { openEnvelope, rawEnvelope } from '../store/envelope.js';
import type { Fix } from './findings.js';
import type { StoredTables } from './stored-tables.js';

export const LOG = 'log';
const RECORD_KEY = /^(.+)\/([0-9]{16})$/;
const TOPIC_KEY = /^(.+)\/(?:start|end|[0-9]{16}|(?:import|post)\/.+)$/;
export const IMPORT_KEY = /^.+\/import\/.+$/;
export const POST_KEY = /^.+\/post\/[0-9a-f]{64}$/;

export interface TopicLog {
  /** As stored; null when it is lost or was never written. */
  readonly storedStart: number | null;
  readonly storedEnd: number | null;
  /** Of records, those with damaged values included, ascending. */
  readonly offsets: readonly number[];
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
  const log = tables.table(LOG);
  const damaged = tables.damagedValues.filter(({ table }) => table === LOG).map(({ key }) => key);
  const offsets = [...log.keys(), ...damaged]
    .flatMap((key) => {
      const match = RECORD_KEY.exec(key);
      return match?.[1] === topic ? [Number(match[2])] : [];
    })
    .sort((a, b) => a - b);
  const storedStart = offsetAt(tables, `${topic}/start`);
  const storedEnd = offsetAt(tables, `${topic}/end`);
  if (storedStart === null && storedEnd === null && offsets.length === 0) return null;
  const behind = offsets.length === 0 ? null : offsets[offsets.length - 1] + 1;
  const isStartLost = storedStart === null && tables.mayHaveLost(LOG, `${topic}/start`);
  const start = isStartLost ? (offsets[0] ?? storedEnd ?? 0) : (storedStart ?? 0);
  const end = Math.max(storedEnd ?? start, behind ?? start, start);
  return { storedStart, storedEnd, offsets, start, end };
}

/** Leaves the log empty, at its end. */
export function withoutRecords(topic: string, { offsets, end }: TopicLog): Fix[] {
  return [
    putLog(`${topic}/start`, offsetBytes(end)),
    putLog(`${topic}/end`, offsetBytes(end)),
    { do: 'delete', table: LOG, keys: offsets.map((offset) => recordKey(topic, offset)) },
  ];
}

export function putLog(key: string, raw: Uint8Array): Fix {
  return { do: 'put', table: LOG, key, value: rawEnvelope(key, raw) };
}

export function recordKey(topic: string, offset: number): string {
  return `${topic}/${String(offset).padStart(16, '0')}`;
}

export function offsetBytes(offset: number): Uint8Array {
  const raw = new Uint8Array(8);
  new DataView(raw.buffer).setFloat64(0, offset, true);
  return raw;
}

function offsetAt(tables: StoredTables, key: string): number | null {
  const value = tables.table(LOG).get(key);
  if (value === undefined) return null;
  const raw = openEnvelope(key, value);
  return new DataView(raw.buffer, raw.byteOffset).getFloat64(0, true);
}
