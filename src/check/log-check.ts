/**
 * The embedded log: offsets that agree with its records, and with what the state has; records without a hole.
 */

import { VIEWS } from '../../engine/views.js';
import { partitionOf } from '../../ingest/partition-id.js';
import type { Put } from '../store/journal/frame.js';
import { scopeOfName } from '../store/journal/journals.js';
import { type Chunk, encodeChunk, keysOf } from '../store/log-chunk.js';
import type { Finding } from './findings.js';
import {
  IMPORT_KEY,
  isShortened,
  LOG,
  POST_KEY,
  putOffset,
  type TopicLog,
  topicLog,
  topicsOf,
} from './log-records.js';
import { allOf, type CheckedStore, viewsOfLog } from './scope-check.js';
import { LAST_KEY, SEGMENTS, type StoredTables } from './stored-tables.js';

/** In the place of a record that is lost: it becomes a dead letter, and reading goes on behind it. */
const LOST_RECORD = 'a record that was lost';

/** What stands beside the records. */
const NOTES = [
  {
    pattern: IMPORT_KEY,
    folder: 'import/',
    name: 'how far an import has come',
    names: 'how far imports have come',
    again: 'importing the same file again',
  },
  {
    pattern: POST_KEY,
    folder: 'post/',
    name: 'what a POST was answered',
    names: 'what POSTs with an Idempotency-Key were answered',
    again: 'sending the same POST again',
  },
];

/** `before`: what is done about partitions, some of whose logs begin again elsewhere by that. */
export function checkLog(store: CheckedStore, before: readonly Finding[]): Finding[] {
  const fixes = before.flatMap(({ fixes = [] }) => fixes);
  const isMoved = (topic: string) =>
    fixes.some((fix) => fix.do === 'put' && fix.table === LOG && fix.key === `${topic}/end`);
  return [
    ...topicsOf(store.tables).flatMap((topic) => (isMoved(topic) ? [] : checkTopic(store, topic))),
    ...damagedNotes(store),
    ...lostNotes(store),
    ...lostEnd(store),
  ];
}

function damagedNotes({ tables }: CheckedStore): Finding[] {
  return tables.damagedValues.flatMap(({ table, key }): Finding[] => {
    const note = table === LOG ? NOTES.find(({ pattern }) => pattern.test(key)) : undefined;
    if (note === undefined) return [];
    return [
      {
        what: `embedded log: ${note.name} (${key}) is damaged`,
        remedy: `is dropped; ${note.again} would count its entries again`,
      },
    ];
  });
}

/** Where keys are lost, or commits, nothing tells which notes were among them. */
function lostNotes({ tables }: CheckedStore): Finding[] {
  const scopes = [...tables.journals.keys()].map(scopeOfName).filter((scope) => scope !== null);
  const topics = [...topicsOf(tables), ...scopes.map((scope) => partitionOf(scope).topic)];
  const isLost = (prefix: string) => tables.lostKeys(LOG, prefix, `${prefix}${LAST_KEY}`).length > 0;
  return NOTES.filter(
    ({ folder }) => isShortened(tables) || topics.some((topic) => isLost(`${topic}/${folder}`)),
  ).map(({ names, again }) => ({
    what: `embedded log: ${names} may be lost`,
    remedy: `${again} may count its entries again`,
  }));
}

function checkTopic(store: CheckedStore, topic: string): Finding[] {
  const log = topicLog(store.tables, topic);
  if (log === null) return [];
  const { storedStart, storedEnd, chunks, start, end } = log;
  const extra = chunks.filter((chunk) => chunk.end <= start);
  const findings: Finding[] = [];
  if ((storedStart ?? 0) !== start || (storedEnd ?? 0) !== end || extra.length > 0) {
    findings.push({
      what: `embedded log: the offsets of ${topic} don't agree with its records`,
      remedy: `are set to ${start} and ${end}, as its records are`,
      fixes: [
        putOffset(`${topic}/start`, start),
        putOffset(`${topic}/end`, end),
        { do: 'delete', table: LOG, keys: extra.flatMap(keysOf) },
      ],
    });
  }
  const lost = lostStretches(store, log);
  return lost.length === 0 ? findings : [...findings, lostRecords(store, log, topic, lost)];
}

/** Offsets, half-open. */
interface Stretch {
  readonly start: number;
  readonly end: number;
}

/** Of which the log has no records. A chunk that is damaged is one, whole, so that another takes its place. */
function lostStretches({ tables }: CheckedStore, { chunks, start, end }: TopicLog): Stretch[] {
  const stretches: Stretch[] = [];
  let at = start;
  for (const chunk of chunks) {
    if (chunk.end <= start) continue;
    if (chunk.start > at) stretches.push({ start: at, end: chunk.start });
    if (!isWhole(tables, chunk)) stretches.push({ start: chunk.start, end: chunk.end });
    at = chunk.end;
  }
  return at < end ? [...stretches, { start: at, end }] : stretches;
}

function isWhole(tables: StoredTables, chunk: Chunk): boolean {
  return keysOf(chunk).every((key) => tables.table(LOG).has(key));
}

function lostRecords(
  { latestUs, tables }: CheckedStore,
  { chunks }: TopicLog,
  topic: string,
  lost: readonly Stretch[],
): Finding {
  const count = lost.reduce((sum, { start, end }) => sum + end - start, 0);
  const what = `${count} records of the embedded log of ${topic}, the first at offset ${lost[0].start}`;
  const prefix = `${topic}/0:`;
  const names = tables.keysWith(SEGMENTS, prefix).map((key) => key.slice(prefix.length));
  return {
    what: `${what}: damaged or missing`,
    remedy: 'become dead letters',
    fixes: [
      {
        do: 'delete',
        table: LOG,
        keys: chunks.filter((chunk) => !isWhole(tables, chunk)).flatMap(keysOf),
      },
      ...lost.map((stretch) => ({ do: 'put' as const, table: LOG, ...placeholders(topic, stretch) })),
    ],
    dropped: viewsOfLog(names).map(({ kind }) => allOf(kind, latestUs, what)),
  };
}

function placeholders(topic: string, { start, end }: Stretch): Put {
  const value = Buffer.from(LOST_RECORD);
  const records = Array.from({ length: end - start }, (_, i) => ({
    offset: start + i,
    timestampMs: 0,
    value,
  }));
  return encodeChunk(topic, records);
}

/**
 * Where neither the end nor the records behind can be read, records may have been lost that nothing tells of.
 */
function lostEnd({ tables, latestUs }: CheckedStore): Finding[] {
  const isEndLost = topicsOf(tables).some((topic) => tables.mayHaveLost(LOG, `${topic}/end`));
  const isLost = isEndLost || topicsOf(tables).length === 0 ? tables.mayHaveLostAny(LOG) : false;
  if (!isLost && !isShortened(tables)) return [];
  const what = 'records that were posted and not counted yet';
  return [
    {
      what: `${what} may be lost`,
      remedy: 'those that can be read stay, the others are dropped',
      dropped: VIEWS.map(({ kind }) => allOf(kind, latestUs, what)),
    },
  ];
}
