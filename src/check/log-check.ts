/**
 * The embedded log: offsets that agree with its records, and with what the state has; records without a hole.
 */

import { VIEWS } from '../../engine/views.js';
import type { Finding } from './findings.js';
import {
  IMPORT_KEY,
  LOG,
  offsetBytes,
  POST_KEY,
  putLog,
  recordKey,
  topicLog,
  topicsOf,
} from './log-records.js';
import { allOf, type CheckedStore } from './scope-check.js';

/** In the place of a record that is lost: it becomes a dead letter, and reading goes on behind it. */
const LOST_RECORD = 'a record that was lost';

/** What stands beside the records. */
const NOTES = [
  { pattern: IMPORT_KEY, name: 'how far an import has come', again: 'importing the same file again' },
  { pattern: POST_KEY, name: 'what a POST was answered', again: 'sending the same POST again' },
];

export function checkLog(store: CheckedStore): Finding[] {
  const { tables } = store;
  const findings = topicsOf(tables).flatMap((topic) => checkTopic(store, topic));
  for (const { table, key } of tables.damagedValues) {
    if (table !== LOG) continue;
    const note = NOTES.find(({ pattern }) => pattern.test(key));
    if (note === undefined) continue;
    const { name, again } = note;
    findings.push({
      what: `embedded log: ${name} (${key}) is damaged`,
      remedy: `is dropped; ${again} would count its entries again`,
      fixes: [],
      dropped: [],
    });
  }
  return [...findings, ...lostEnd(store)];
}

function checkTopic(store: CheckedStore, topic: string): Finding[] {
  const log = topicLog(store.tables, topic);
  if (log === null) return [];
  const { storedStart, storedEnd, offsets, start, end } = log;
  const extra = offsets.filter((offset) => offset < start);
  const findings: Finding[] = [];
  if ((storedStart ?? 0) !== start || (storedEnd ?? 0) !== end || extra.length > 0) {
    findings.push({
      what: `embedded log: the offsets of ${topic} don't agree with its records`,
      remedy: `are set to ${start} and ${end}, as its records are`,
      fixes: [
        putLog(`${topic}/start`, offsetBytes(start)),
        putLog(`${topic}/end`, offsetBytes(end)),
        { do: 'delete', table: LOG, keys: extra.map((offset) => recordKey(topic, offset)) },
      ],
      dropped: [],
    });
  }
  const lost: number[] = [];
  for (let offset = start; offset < end; offset++)
    if (!store.tables.table(LOG).has(recordKey(topic, offset))) lost.push(offset);
  return lost.length === 0 ? findings : [...findings, lostRecords(store, topic, lost)];
}

function lostRecords({ nowUs, tables }: CheckedStore, topic: string, lost: readonly number[]): Finding {
  const what = `${lost.length} records of the embedded log of ${topic}, the first at offset ${lost[0]}`;
  const keys = [...tables.table('segments').keys()];
  const views = VIEWS.filter(({ kind }) => keys.some((key) => key.startsWith(`${topic}/0:${kind.name}/`)));
  const placeholder = Buffer.concat([offsetBytes(0), Buffer.from(LOST_RECORD)]);
  return {
    what: `${what}: damaged or missing`,
    remedy: 'become dead letters',
    fixes: lost.map((offset) => putLog(recordKey(topic, offset), placeholder)),
    dropped: (views.length > 0 ? views : VIEWS).map(({ kind }) => allOf(kind, nowUs, what)),
  };
}

/**
 * Where neither the end nor the records behind can be read, records may have been lost that nothing tells of.
 */
function lostEnd({ tables, nowUs }: CheckedStore): Finding[] {
  const isLost = tables.survey.lost.some(({ table, low, high }) => {
    if (table !== LOG && table !== '*') return false;
    return (
      topicsOf(tables).every((topic) => topicLog(tables, topic)?.storedEnd === null) ||
      low === null ||
      high === null
    );
  });
  if (!isLost) return [];
  const what = 'records that were posted and not counted yet';
  return [
    {
      what: `${what} may be lost`,
      remedy: 'those that can be read stay, the others are dropped',
      fixes: [],
      dropped: VIEWS.map(({ kind }) => allOf(kind, nowUs, what)),
    },
  ];
}
