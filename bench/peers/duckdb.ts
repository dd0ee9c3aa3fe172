/** DuckDB within the asking process. */

import { type DuckDBAppender, type DuckDBConnection, DuckDBInstance, version } from '@duckdb/node-api';
import type { EntryBatch } from './entries.js';
import type { AnswerRow, Peer, System } from './peer.js';
import { countsWindow, type Question, statsWindow } from './question.js';
import type { SqlQuestion } from './roll-ups.js';

const TABLES = `
  create table edge_arrived (ts bigint, project varchar, id varchar, message varchar, metadata varchar);
  create table usage (ts bigint, rest smallint, storage smallint, auth smallint, realtime smallint, url varchar);
  create table relay_arrived (ts bigint, project varchar, ms double, status smallint);`;

/**
 * It passes over row groups by the least and greatest values in them: so a project's rows should lie
 * together, and those of 2 KB in groups of which few bytes are read for nothing.
 */
const SORTED = `
  create table wide.edge as select * from edge_arrived order by project, ts;
  create table relay as select * from relay_arrived order by project, ts;
  drop table edge_arrived; drop table relay_arrived; checkpoint;`;

/** Where entries go: catalog and table. */
interface Tables {
  readonly edge: readonly [catalog: string | null, table: string];
  readonly relay: readonly [catalog: string | null, table: string];
}

const ARRIVED: Tables = { edge: [null, 'edge_arrived'], relay: [null, 'relay_arrived'] };
/** What comes later lies behind what was sorted. */
const FINISHED: Tables = { edge: ['wide', 'edge'], relay: [null, 'relay'] };

export async function openDuckDb(file: string, nowUs: number): Promise<System> {
  const instance = await DuckDBInstance.create(file);
  const asker = await instance.connect();
  const filler = await instance.connect();
  await filler.run(`attach '${file}-wide' as wide (row_group_size 8192);${TABLES}`);
  let tables = ARRIVED;
  return {
    peers: [await peerOf(asker, nowUs)],
    insert: (batch) => insert(filler, tables, batch),
    async finish() {
      await filler.run(SORTED);
      tables = FINISHED;
    },
    close() {
      asker.closeSync();
      filler.closeSync();
      instance.closeSync();
    },
  };
}

async function peerOf(connection: DuckDBConnection, nowUs: number): Promise<Peer> {
  return {
    name: 'DuckDB',
    version: version(),
    reach: 'in process',
    includes: '@duckdb/node-api, prepared statements, rows as arrays',
    prepare(question) {
      const { sql, values } = sqlOf(question, nowUs);
      const prepared = connection.prepare(sql).then((statement) => {
        values.forEach((value, i) => {
          if (typeof value === 'string') statement.bindVarchar(i + 1, value);
          else statement.bindBigInt(i + 1, BigInt(value));
        });
        return statement;
      });
      return {
        run: async () => (await (await prepared).runAndReadAll()).getRows(),
        rows: (rows: unknown[][]) =>
          rows.map(
            (row): AnswerRow => row.map((value) => (typeof value === 'string' ? value : Number(value))),
          ),
      };
    },
  };
}

async function insert(
  connection: DuckDBConnection,
  tables: Tables,
  { edge, relay }: EntryBatch,
): Promise<void> {
  await append(connection, tables.edge, edge, (to, { timestampUs, project, id, message, metadata }) => {
    to.appendBigInt(BigInt(timestampUs));
    for (const text of [project, id, message, metadata]) to.appendVarchar(text);
  });
  await append(
    connection,
    [null, 'usage'],
    edge,
    (to, { timestampUs, rest, storage, auth, realtime, url }) => {
      to.appendBigInt(BigInt(timestampUs));
      for (const count of [rest, storage, auth, realtime]) to.appendSmallInt(count);
      to.appendVarchar(url);
    },
  );
  await append(
    connection,
    tables.relay,
    relay,
    (to, { timestampUs, project, executionTimeMs, statusCode }) => {
      to.appendBigInt(BigInt(timestampUs));
      to.appendVarchar(project);
      to.appendDouble(executionTimeMs);
      to.appendSmallInt(statusCode);
    },
  );
}

async function append<Row>(
  connection: DuckDBConnection,
  [catalog, table]: readonly [string | null, string],
  rows: readonly Row[],
  columns: (to: DuckDBAppender, row: Row) => void,
): Promise<void> {
  const appender = await connection.createAppender(table, null, catalog);
  for (const row of rows) {
    columns(appender, row);
    appender.endRow();
  }
  appender.closeSync();
}

function sqlOf(question: Question, nowUs: number): SqlQuestion {
  switch (question.kind) {
    case 'logs':
      return {
        // Found first, then read: half the time.
        sql: `select id, ts, message, metadata from wide.edge where rowid in (
            select rowid from wide.edge where project = $1 and ts > $2 and ts <= $3 order by ts desc limit 100)
          order by ts desc`,
        values: [question.project, question.afterUs ?? 0, question.untilUs ?? nowUs],
      };
    case 'stats': {
      const { fromUs, endUs, bucketUs } = statsWindow(question, nowUs);
      return {
        // The nearest rank; its own quantile_disc rounds otherwise.
        sql: `select bucket, count, errors, times[1], times[-1], mean,
            times[(95 * count + 99) // 100], times[(99 * count + 99) // 100]
          from (
            select ts // ${bucketUs} * ${bucketUs} as bucket, count(*) as count,
              count(*) filter (where status >= 400) as errors, favg(ms) as mean, list_sort(list(ms)) as times
            from relay where project = $1 and ts >= $2 and ts < $3 group by 1)
          order by bucket`,
        values: [question.project, fromUs, endUs],
      };
    }
    case 'counts': {
      const { fromUs, endUs, bucketUs } = countsWindow(question, nowUs);
      return {
        sql: `select ts // ${bucketUs} * ${bucketUs}, sum(rest), sum(storage), sum(auth), sum(realtime) from usage
          where ts >= $2 and ts < $3 and ${question.isPlain ? 'contains(url, $1)' : 'regexp_matches(url, $1)'}
          group by 1 order by 1`,
        values: [question.expression, fromUs, endUs],
      };
    }
  }
}
