/**
 * ClickHouse within the asking process, where its package is installed: half a gigabyte, so it is no
 * dependency.
 */

import { createRequire } from 'node:module';
import type { EntryBatch } from './entries.js';
import type { AnswerRow, Peer, System } from './peer.js';
import { countsWindow, type Question, statsWindow } from './question.js';

/** The part of chdb's session that is used. */
interface Session {
  query(sql: string, format?: string): string;
  queryBind(sql: string, values: Readonly<Record<string, Value>>, format: string): string;
  insert(rows: { table: string; values: Buffer; format: 'JSONCompactEachRow' }): Promise<unknown>;
  close(): void;
}

type Value = string | number;

interface BoundQuestion {
  readonly sql: string;
  readonly values: Readonly<Record<string, Value>>;
}

/** A project's rows lie together; of rows of 2 KB, fewer than usual share an entry of the sparse index. */
const TABLES = [
  `create table edge (ts Int64, project LowCardinality(String), id String, message String, metadata String)
    engine = MergeTree order by (project, ts) settings index_granularity = 256`,
  `create table usage (ts Int64, rest UInt8, storage UInt8, auth UInt8, realtime UInt8, url String)
    engine = MergeTree order by ts`,
  `create table relay (ts Int64, project LowCardinality(String), ms Float64, status UInt16)
    engine = MergeTree order by (project, ts)`,
];
const FORMAT = 'JSONCompactEachRow';
const SETTINGS = 'settings output_format_json_quote_64bit_integers = 0';

const require = createRequire(import.meta.url);

/** A sentence when it is not installed. */
export async function openClickHouse(directory: string, nowUs: number): Promise<System | string> {
  let session: Session;
  try {
    session = new (require('chdb').Session)(directory);
  } catch {
    return 'chdb does not load here: `npm install --no-save chdb@3.4.0` brings it, half a gigabyte';
  }
  for (const table of TABLES) session.query(table);
  return {
    peers: [peerOf(session, nowUs)],
    insert: (batch) => insert(session, batch),
    // Each insert makes a part of each table: its manual advises one a second at most.
    insertEveryMs: 1_000,
    finish() {
      for (const table of ['edge', 'usage', 'relay']) session.query(`optimize table ${table} final`);
    },
    close: () => session.close(),
  };
}

function peerOf(session: Session, nowUs: number): Peer {
  return {
    name: 'ClickHouse',
    version: session.query('select version()', 'TabSeparated').trim(),
    reach: 'in process',
    includes: 'chdb, rows as JSON text',
    prepare(question) {
      const { sql, values } = boundQuestion(question, nowUs);
      return {
        run: () => session.queryBind(`${sql} ${SETTINGS}`, values, FORMAT),
        rows: (text: string) =>
          text
            .trimEnd()
            .split('\n')
            .map((line) => JSON.parse(line) as AnswerRow),
      };
    },
  };
}

async function insert(session: Session, { edge, relay }: EntryBatch): Promise<void> {
  const send = <Row>(table: string, rows: readonly Row[], columns: (row: Row) => readonly Value[]) =>
    session.insert({
      table,
      values: Buffer.from(rows.map((row) => JSON.stringify(columns(row))).join('\n')),
      format: FORMAT,
    });
  await send('edge', edge, ({ timestampUs, project, id, message, metadata }) => [
    timestampUs,
    project,
    id,
    message,
    metadata,
  ]);
  await send('usage', edge, ({ timestampUs, rest, storage, auth, realtime, url }) => [
    timestampUs,
    rest,
    storage,
    auth,
    realtime,
    url,
  ]);
  await send('relay', relay, ({ timestampUs, project, executionTimeMs, statusCode }) => [
    timestampUs,
    project,
    executionTimeMs,
    statusCode,
  ]);
}

function boundQuestion(question: Question, nowUs: number): BoundQuestion {
  switch (question.kind) {
    case 'logs':
      return {
        sql: `select id, ts, message, metadata from edge
          where project = {project:String} and ts > {after:Int64} and ts <= {until:Int64} order by ts desc limit 100`,
        values: { project: question.project, after: question.afterUs ?? 0, until: question.untilUs ?? nowUs },
      };
    case 'stats': {
      const { fromUs, endUs, bucketUs } = statsWindow(question, nowUs);
      return {
        // The nearest rank; its own quantileExact rounds otherwise.
        sql: `select bucket, count, errors, times[1], times[-1], mean,
            times[intDiv(95 * count + 99, 100)], times[intDiv(99 * count + 99, 100)]
          from (
            select intDiv(ts, ${bucketUs}) * ${bucketUs} as bucket, count() as count, countIf(status >= 400) as errors,
              avg(ms) as mean, arraySort(groupArray(ms)) as times
            from relay where project = {project:String} and ts >= {from:Int64} and ts < {end:Int64} group by bucket)
          order by bucket`,
        values: { project: question.project, from: fromUs, end: endUs },
      };
    }
    case 'counts': {
      const { fromUs, endUs, bucketUs } = countsWindow(question, nowUs);
      const matches = question.isPlain ? 'position(url, {text:String}) > 0' : 'match(url, {text:String})';
      return {
        sql: `select intDiv(ts, ${bucketUs}) * ${bucketUs} as bucket, sum(rest), sum(storage), sum(auth), sum(realtime)
          from usage where ts >= {from:Int64} and ts < {end:Int64} and ${matches} group by bucket order by bucket`,
        values: { text: question.expression, from: fromUs, end: endUs },
      };
    }
  }
}
