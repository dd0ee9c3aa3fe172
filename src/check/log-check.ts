/** The embedded log's table and the dead letters: offsets that agree, records without a hole. */

import { openEnvelope, rawEnvelope } from '../store/envelope.js';
import type { Finding, Fix } from './findings.js';
import { allOf, type CheckedStore, VIEWS } from './scope-check.js';
import type { StoredTable } from './stored-tables.js';

const LOG = 'log';
const RECORD_KEY = /^(.+)\/([0-9]{16})$/;
const OFFSET_KEY = /^(.+)\/(start|end)$/;
const IMPORT_KEY = /^(.+)\/import\/.+$/;
/** In the place of a record that is lost: it becomes a dead letter, and reading goes on behind it. */
const LOST_RECORD = 'a record that was lost';

export function checkLog(store: CheckedStore): Finding[] {
  const { tables } = store;
  const log = tables.table(LOG);
  const damagedKeys = tables.damagedValues.filter(({ table }) => table === LOG).map(({ key }) => key);
  const topics = new Set<string>();
  for (const key of [...log.keys(), ...damagedKeys]) {
    const match = OFFSET_KEY.exec(key) ?? RECORD_KEY.exec(key) ?? IMPORT_KEY.exec(key);
    if (match !== null) topics.add(match[1]);
  }
  const findings = [...topics].flatMap((topic) => checkTopic(store, topic));
  for (const key of damagedKeys.filter((key) => IMPORT_KEY.test(key))) {
    findings.push({
      what: `embedded log: how far an import has come (${key}) is damaged`,
      remedy: 'is dropped; importing the same file again would count its entries again',
      fixes: [{ do: 'delete', table: LOG, keys: [key] }],
      dropped: [],
    });
  }
  return findings;
}

function checkTopic(store: CheckedStore, topic: string): Finding[] {
  const log = store.tables.table(LOG);
  const offsets: number[] = [];
  for (const key of log.keys()) {
    const match = RECORD_KEY.exec(key);
    if (match?.[1] === topic) offsets.push(Number(match[2]));
  }
  const stored = { start: offsetAt(log, `${topic}/start`), end: offsetAt(log, `${topic}/end`) };
  // Damaged records stand in the range as well.
  for (const { table, key } of store.tables.damagedValues) {
    const match = table === LOG ? RECORD_KEY.exec(key) : null;
    if (match?.[1] === topic) offsets.push(Number(match[2]));
  }
  const first = offsets.reduce((least, offset) => Math.min(least, offset), Infinity);
  const behind = offsets.reduce((most, offset) => Math.max(most, offset + 1), 0);
  const hasStart = stored.start !== null || !isDamaged(store, `${topic}/start`);
  const start = hasStart ? (stored.start ?? 0) : Math.min(first, stored.end ?? behind);
  const end = Math.max(stored.end ?? behind, behind, start);
  const findings: Finding[] = [];
  if (!hasStart || stored.end !== end || first < start)
    findings.push(
      wrongOffsets(
        topic,
        start,
        end,
        offsets.filter((offset) => offset < start),
      ),
    );
  const lost = lostRecords(log, topic, start, end);
  if (lost.length > 0) findings.push(lostFinding(store, topic, lost));
  return findings;
}

function isDamaged({ tables }: CheckedStore, key: string): boolean {
  return tables.mayHaveLost(LOG, key);
}

function lostRecords(log: StoredTable, topic: string, start: number, end: number): number[] {
  const lost: number[] = [];
  for (let offset = start; offset < end; offset++) if (!log.has(recordKey(topic, offset))) lost.push(offset);
  return lost;
}

function wrongOffsets(topic: string, start: number, end: number, extra: readonly number[]): Finding {
  const fixes: Fix[] = [
    putRaw(`${topic}/start`, offsetBytes(start)),
    putRaw(`${topic}/end`, offsetBytes(end)),
    { do: 'delete', table: LOG, keys: extra.map((offset) => recordKey(topic, offset)) },
  ];
  return {
    what: `embedded log: the offsets of ${topic} don't agree with its records`,
    remedy: `are set to ${start} and ${end}, as its records are`,
    fixes,
    dropped: [],
  };
}

function lostFinding({ nowUs, tables }: CheckedStore, topic: string, lost: readonly number[]): Finding {
  const what = `${lost.length} records of the embedded log of ${topic}, the first at offset ${lost[0]}`;
  const views = VIEWS.filter((view) =>
    [...tables.table('segments').keys()].some((key) => key.startsWith(`${topic}/0:${view}/`)),
  );
  return {
    what: `${what}: they are damaged or missing, and no answer has them yet`,
    remedy: 'become dead letters',
    fixes: lost.map((offset) => putRaw(recordKey(topic, offset), recordBytes())),
    dropped: (views.length > 0 ? views : VIEWS).map((view) => allOf(view, nowUs, what)),
  };
}

function putRaw(key: string, raw: Uint8Array): Fix {
  return { do: 'put', table: LOG, key, value: rawEnvelope(key, raw) };
}

function recordBytes(): Uint8Array {
  return Buffer.concat([offsetBytes(0), Buffer.from(LOST_RECORD)]);
}

function recordKey(topic: string, offset: number): string {
  return `${topic}/${String(offset).padStart(16, '0')}`;
}

function offsetBytes(offset: number): Uint8Array {
  const raw = new Uint8Array(8);
  new DataView(raw.buffer).setFloat64(0, offset, true);
  return raw;
}

function offsetAt(log: StoredTable, key: string): number | null {
  const value = log.get(key);
  if (value === undefined) return null;
  const raw = openEnvelope(key, value);
  return new DataView(raw.buffer, raw.byteOffset).getFloat64(0, true);
}
