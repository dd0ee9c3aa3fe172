/** SQLite within the asking process, twice on the same entries: with indexes, and with roll-up tables. */

import { createRequire } from 'node:module';
import type { EntryBatch } from './entries.js';
import type { AnswerRow, Ask, Peer, System } from './peer.js';
import { countsWindow, type Question, statsWindow } from './question.js';
import {
  countsFromRollUps,
  ROLL_UP_TABLES,
  type SqlQuestion,
  STATS_UNITS_US,
  statsFromRollUps,
  USAGE_UNITS_US,
} from './roll-ups.js';

type Value = string | number;

/** The part of a client that is used; it is the same in both. */
interface Database {
  exec(sql: string): void;
  prepare(sql: string): {
    run(...values: Value[]): unknown;
    all(...values: (Value | Readonly<Record<string, Value>>)[]): Record<string, Value>[];
  };
  close(): void;
}

interface SqliteClient {
  readonly name: string;
  open(file: string): Database;
}

const INDEXED_TABLES = `
  create table edge (ts integer, project text, id text, message text, metadata text);
  create table usage (ts integer, rest integer, storage integer, auth integer, realtime integer, url text);
  create table relay (ts integer, project text, ms real, status integer);
  ${ROLL_UP_TABLES.replaceAll('bucket));', 'bucket)) without rowid;')}`;

const INDEXES = `
  create index edge_by_project on edge (project, ts desc);
  create index usage_by_time on usage (ts, rest, storage, auth, realtime, url);
  create index relay_by_project on relay (project, ts, ms, status);`;

/** Its build has no percentiles: the nearest ranks are numbered. */
const statsSql = (bucketUs: number, project: string, where: string, groups: string) => `
  select ${project} ts / ${bucketUs} * ${bucketUs} as bucket, count(*) as count, sum(status >= 400) as errors,
    min(ms) as min_ms, max(ms) as max_ms, avg(ms) as mean_ms,
    max(case when place = (95 * total + 99) / 100 then ms end) as p95_ms,
    max(case when place = (99 * total + 99) / 100 then ms end) as p99_ms
  from (
    select *, row_number() over (partition by ${project} ts / ${bucketUs} order by ms) as place,
      count(*) over (partition by ${project} ts / ${bucketUs}) as total
    from relay ${where})
  group by ${groups}`;

const require = createRequire(import.meta.url);

/** better-sqlite3, the fastest, where somebody has installed it: it may have to be compiled. */
function findClient(): SqliteClient {
  try {
    const BetterSqlite = require('better-sqlite3');
    return { name: 'better-sqlite3', open: (file) => new BetterSqlite(file) };
  } catch {
    const { DatabaseSync } = require('@photostructure/sqlite');
    return { name: '@photostructure/sqlite', open: (file) => new DatabaseSync(file) };
  }
}

/** A sentence when no client loads here. */
export async function openSqlite(file: string, nowUs: number): Promise<System | string> {
  let client: SqliteClient;
  let database: Database;
  try {
    client = findClient();
    database = client.open(file);
  } catch (error) {
    return `no client of SQLite loads: ${error instanceof Error ? error.message : String(error)}`;
  }
  database.exec(`pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -4000000;
    pragma mmap_size = 17179869184; ${INDEXED_TABLES}`);
  const shared = {
    version: String(database.prepare('select sqlite_version() as version').all()[0].version),
    reach: 'in process',
    includes: `${client.name}, rows as objects`,
  } as const;
  const peer = (
    name: string,
    sqlOf: (question: Question) => SqlQuestion | null,
    refresh?: Peer['refresh'],
  ): Peer => ({
    ...shared,
    name,
    refresh,
    prepare: (question) => {
      const asked = sqlOf(question);
      return asked === null ? null : preparedAsk(database, asked);
    },
  });
  return {
    peers: [
      peer('SQLite', (question) => plainSql(question, nowUs)),
      peer('SQLite, roll-ups', (question) => rollUpSql(question, nowUs), null),
    ],
    insert: (batch) => insert(database, batch),
    finish() {
      database.exec(INDEXES);
      rollUp(database);
      database.exec('analyze');
    },
    close: () => database.close(),
  };
}

function insert(database: Database, { edge, relay }: EntryBatch): void {
  const intoEdge = database.prepare('insert into edge values (?, ?, ?, ?, ?)');
  const intoUsage = database.prepare('insert into usage values (?, ?, ?, ?, ?, ?)');
  const intoRelay = database.prepare('insert into relay values (?, ?, ?, ?)');
  database.exec('begin');
  for (const { timestampUs, project, id, message, metadata, rest, storage, auth, realtime, url } of edge) {
    intoEdge.run(timestampUs, project, id, message, metadata);
    intoUsage.run(timestampUs, rest, storage, auth, realtime, url);
  }
  for (const { timestampUs, project, executionTimeMs, statusCode } of relay) {
    intoRelay.run(timestampUs, project, executionTimeMs, statusCode);
  }
  database.exec('commit');
}

/** SQLite can't take URLs apart: the names in them are found here. */
function rollUp(database: Database): void {
  for (const unitUs of STATS_UNITS_US) {
    database.exec(`insert into stats_roll_up select project, ${unitUs}, bucket, count, errors, min_ms, max_ms, mean_ms,
      p95_ms, p99_ms from (${statsSql(unitUs, 'project,', '', '1, 2')})`);
  }
  database.exec('create temp table named (row integer, name text)');
  const intoNamed = database.prepare('insert into named values (?, ?)');
  const page = database.prepare(
    'select rowid as row, url from usage where rowid > ? order by rowid limit 10000',
  );
  database.exec('begin');
  for (let last = 0; ; ) {
    const rows = page.all(last);
    if (rows.length === 0) break;
    for (const { row, url } of rows)
      for (const name of new Set(String(url).match(/[a-z]{20}/g))) intoNamed.run(row, name);
    last = Number(rows.at(-1)!.row);
  }
  database.exec('commit');
  for (const unitUs of USAGE_UNITS_US) {
    database.exec(`insert into usage_roll_up
      select name, ${unitUs}, ts / ${unitUs} * ${unitUs}, sum(rest), sum(storage), sum(auth), sum(realtime)
      from named join usage on usage.rowid = named.row group by 1, 3`);
  }
  database.exec('drop table named');
}

function preparedAsk(database: Database, { sql, values }: SqlQuestion): Ask<Record<string, Value>[]> {
  const statement = database.prepare(sql);
  const named = Object.fromEntries(values.map((value, i) => [i + 1, value]));
  return {
    run: () => statement.all(named),
    rows: (rows): AnswerRow[] => rows.map((row) => Object.values(row)),
  };
}

function plainSql(question: Question, nowUs: number): SqlQuestion | null {
  switch (question.kind) {
    case 'logs':
      return {
        sql: `select id, ts, message, metadata from edge where project = $1 and ts > $2 and ts <= $3
          order by ts desc limit 100`,
        values: [question.project, question.afterUs ?? 0, question.untilUs ?? nowUs],
      };
    case 'stats': {
      const { fromUs, endUs, bucketUs } = statsWindow(question, nowUs);
      return {
        sql: `${statsSql(bucketUs, '', 'where project = $1 and ts >= $2 and ts < $3', '1')} order by 1`,
        values: [question.project, fromUs, endUs],
      };
    }
    case 'counts': {
      // It has no regular expressions.
      if (!question.isPlain) return null;
      const { fromUs, endUs, bucketUs } = countsWindow(question, nowUs);
      return {
        sql: `select ts / ${bucketUs} * ${bucketUs} as bucket, sum(rest) as rest, sum(storage) as storage,
          sum(auth) as auth, sum(realtime) as realtime from usage
          where ts >= $2 and ts < $3 and instr(url, $1) > 0 group by 1 order by 1`,
        values: [question.expression, fromUs, endUs],
      };
    }
  }
}

function rollUpSql(question: Question, nowUs: number): SqlQuestion | null {
  if (question.kind === 'stats') return statsFromRollUps(question, nowUs);
  if (question.kind === 'logs' || !question.isPlain) return null;
  return countsFromRollUps(question, nowUs, 'instr(url, $1) > 0');
}
