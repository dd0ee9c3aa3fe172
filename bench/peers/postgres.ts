/** PostgreSQL twice on the same entries: with indexes, and with roll-up tables. */

import { type Client, escapeLiteral } from 'pg';
import type { EntryBatch } from './entries.js';
import type { AnswerRow, Ask, Peer, System } from './peer.js';
import { findPostgres, type PostgresServer, startPostgres } from './postgres-server.js';
import { countsWindow, type Question, statsWindow } from './question.js';
import {
  countsFromRollUps,
  ROLL_UP_TABLES,
  type SqlQuestion,
  STATS_UNITS_US,
  statsFromRollUps,
  USAGE_UNITS_US,
} from './roll-ups.js';

/** Large integers come as text. */
type Cell = string | number | null;

const TABLES = `
  create unlogged table edge (ts bigint, project text, id text, message text, metadata text);
  create unlogged table usage (ts bigint, rest smallint, storage smallint, auth smallint, realtime smallint, url text);
  create unlogged table relay (ts bigint, project text, ms double precision, status smallint);
  ${ROLL_UP_TABLES}`;

const INSERT_EDGE = `insert into edge select * from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[])`;
const INSERT_USAGE = `insert into usage
  select * from unnest($1::bigint[], $2::smallint[], $3::smallint[], $4::smallint[], $5::smallint[], $6::text[])`;
const INSERT_RELAY = `insert into relay select * from unnest($1::bigint[], $2::text[], $3::float8[], $4::smallint[])`;

/**
 * What a question reads lies together in an index; by URL for expressions that say how it begins. One of
 * three-letter pieces (pg_trgm) would find a quiet project sooner; the busiest, which is asked about, it does
 * not, and the planner takes it for the last hour too, twenty times as long.
 */
const INDEXES = [
  'create index on edge (project, ts desc)',
  'create index on usage (ts) include (rest, storage, auth, realtime, url)',
  'create index on usage (url) include (ts, rest, storage, auth, realtime)',
  'create index on relay (project, ts) include (ms, status)',
];

const STATS_COLUMNS = `count(*), count(*) filter (where status >= 400), min(ms), max(ms), avg(ms),
  percentile_disc(0.95) within group (order by ms), percentile_disc(0.99) within group (order by ms)`;

/** `$1`: the projects with entries since, `$2`: the beginning of the first bucket that may have more. */
const statsRollUpSql = (unitUs: number) => `insert into stats_roll_up
  select project, ${unitUs}, ts / ${unitUs} * ${unitUs}, ${STATS_COLUMNS}
  from relay where project = any($1) and ts >= $2 group by 1, 3
  on conflict (project, unit_us, bucket) do update set (count, errors, min_ms, max_ms, mean_ms, p95_ms, p99_ms) =
    (excluded.count, excluded.errors, excluded.min_ms, excluded.max_ms, excluded.mean_ms, excluded.p95_ms,
      excluded.p99_ms)`;

/** `$1`: the time of the newest entry that is counted already. */
const usageRollUpSql = (unitUs: number) => `insert into usage_roll_up as counted
  select name, ${unitUs}, ts / ${unitUs} * ${unitUs}, sum(rest), sum(storage), sum(auth), sum(realtime)
  from usage, lateral (select distinct found[1] as name from regexp_matches(url, '[a-z]{20}', 'g') as found) as names
  where ts > $1 group by 1, 3
  on conflict (project, unit_us, bucket) do update set (rest, storage, auth, realtime) =
    (counted.rest + excluded.rest, counted.storage + excluded.storage, counted.auth + excluded.auth,
      counted.realtime + excluded.realtime)`;

/** A sentence when there is no PostgreSQL, or none that starts. */
export async function openPostgres(nowUs: number): Promise<System | string> {
  const programs = findPostgres();
  if (programs === null) return 'no PostgreSQL: neither on the PATH nor as a Debian package';
  let server: PostgresServer;
  try {
    server = await startPostgres(programs);
  } catch (error) {
    return `PostgreSQL does not start: ${error instanceof Error ? error.message : String(error)}`;
  }
  const client = await server.connect();
  const filler = new Filler(await server.connect());
  await client.query(TABLES);
  const { rows } = await client.query('show server_version');
  const shared = {
    version: rows[0].server_version.split(' ')[0],
    reach: 'over a socket',
    includes: 'pg, prepared statements, rows as arrays',
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
      return asked === null ? null : preparedAsk(client, `${name}: ${question.name}`, asked, question);
    },
  });
  return {
    peers: [
      peer('PostgreSQL', (question) => plainSql(question, nowUs)),
      peer(
        'PostgreSQL, roll-ups',
        (question) => rollUpSql(question, nowUs),
        () => filler.rollUp(),
      ),
    ],
    insert: (batch) => filler.insert(batch),
    async finish() {
      for (const sql of INDEXES) await client.query(sql);
      await filler.rollUp();
      await client.query('vacuum analyze');
    },
    async close() {
      await client.end();
      await filler.end();
      await server.stop();
    },
  };
}

/** Inserts entries, in order of time, and keeps the roll-up tables of them on a connection of its own. */
class Filler {
  readonly #client: Client;
  readonly #relayProjects = new Set<string>();
  #newestUs = 0;
  #rolledUpToUs = 0;

  constructor(client: Client) {
    this.#client = client;
  }

  async insert({ edge, relay }: EntryBatch): Promise<void> {
    const send = <Row>(sql: string, rows: readonly Row[], columns: readonly (keyof Row)[]) =>
      this.#client.query(
        sql,
        columns.map((column) => rows.map((row) => row[column])),
      );
    await send(INSERT_EDGE, edge, ['timestampUs', 'project', 'id', 'message', 'metadata']);
    await send(INSERT_USAGE, edge, ['timestampUs', 'rest', 'storage', 'auth', 'realtime', 'url']);
    await send(INSERT_RELAY, relay, ['timestampUs', 'project', 'executionTimeMs', 'statusCode']);
    for (const { project } of relay) this.#relayProjects.add(project);
    this.#newestUs = Math.max(this.#newestUs, edge.at(-1)!.timestampUs, relay.at(-1)!.timestampUs);
  }

  /**
   * Percentiles don't add up: buckets of statistics that got more entries are made again. Counts are added.
   */
  async rollUp(): Promise<void> {
    const projects = [...this.#relayProjects];
    for (const unitUs of STATS_UNITS_US) {
      const fromUs = Math.floor(this.#rolledUpToUs / unitUs) * unitUs;
      await this.#client.query(statsRollUpSql(unitUs), [projects, fromUs]);
    }
    for (const unitUs of USAGE_UNITS_US)
      await this.#client.query(usageRollUpSql(unitUs), [this.#rolledUpToUs]);
    this.#relayProjects.clear();
    this.#rolledUpToUs = this.#newestUs;
  }

  async end(): Promise<void> {
    await this.#client.end();
  }
}

function preparedAsk(
  client: Client,
  name: string,
  { sql, values }: SqlQuestion,
  { kind }: Question,
): Ask<Cell[][]> {
  const query = { name, text: sql, values: [...values], rowMode: 'array' } as const;
  return {
    run: async () => (await client.query<Cell[]>(query)).rows,
    rows: (rows): AnswerRow[] =>
      kind === 'logs'
        ? rows.map(([id, ts, ...texts]) => [id, Number(ts), ...texts])
        : rows.map((row) => row.map(Number)),
  };
}

function plainSql(question: Question, nowUs: number): SqlQuestion {
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
        sql: `select ts / ${bucketUs} * ${bucketUs}, ${STATS_COLUMNS} from relay
          where project = $1 and ts >= $2 and ts < $3 group by 1 order by 1`,
        values: [question.project, fromUs, endUs],
      };
    }
    case 'counts': {
      const { fromUs, endUs, bucketUs } = countsWindow(question, nowUs);
      const { expression, isPlain } = question;
      // Written out, an expression is planned for: of a parameter nobody knows how it begins.
      const matches = isPlain ? 'strpos(url, $3) > 0' : `url ~ ${escapeLiteral(expression)}`;
      return {
        sql: `select ts / ${bucketUs} * ${bucketUs}, sum(rest), sum(storage), sum(auth), sum(realtime) from usage
          where ts >= $1 and ts < $2 and ${matches} group by 1 order by 1`,
        values: isPlain ? [fromUs, endUs, expression] : [fromUs, endUs],
      };
    }
  }
}

function rollUpSql(question: Question, nowUs: number): SqlQuestion | null {
  if (question.kind === 'stats') return statsFromRollUps(question, nowUs);
  if (question.kind === 'logs' || !question.isPlain) return null;
  return countsFromRollUps(question, nowUs, 'strpos(url, $1) > 0');
}
