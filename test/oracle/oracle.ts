/**
 * The queries as SQL over a table of raw entries, run by DuckDB: an oracle that shares no code with the
 * engine.
 */

import { type DuckDBConnection, DuckDBInstance, type DuckDBValue } from '@duckdb/node-api';

export interface LogsRow {
  readonly id: string;
  readonly timestamp: number;
  readonly event_message: string | null;
  readonly metadata: unknown;
}

export interface StatsRow {
  readonly timestamp: number;
  readonly min_execution_time: number | null;
  readonly max_execution_time: number | null;
  readonly avg_execution_time: number | null;
  readonly p95_execution_time: number | null;
  readonly p99_execution_time: number | null;
  readonly count: number;
  readonly error_count: number;
}

export interface OracleStatsRow extends StatsRow {
  /**
   * All execution times of the bucket in rising order, to bound the rank error of an approximate quantile.
   */
  readonly sortedTimesMs: readonly number[];
}

export interface CountsRow {
  readonly timestamp: string;
  readonly total_rest_requests: number;
  readonly total_storage_requests: number;
  readonly total_auth_requests: number;
  readonly total_realtime_requests: number;
}

export interface LogsQuery {
  readonly project: string;
  readonly project_tier: string;
  readonly iso_timestamp_start?: string;
  readonly iso_timestamp_end?: string;
}

export interface StatsQuery {
  readonly project: string;
  readonly interval: string;
  readonly function_id?: string;
}

export interface EventsRow {
  readonly timestamp: number;
  readonly ok_count: number;
  readonly warning_count: number;
  readonly error_count: number;
}

export interface EventsQuery {
  readonly project: string;
  readonly project_tier: string;
  readonly interval: string;
}

export interface CountsQuery {
  readonly project: string;
  readonly interval: string;
}

export interface Oracle {
  logs(query: LogsQuery, nowUs: number): Promise<LogsRow[]>;
  invocationStats(query: StatsQuery, nowUs: number): Promise<OracleStatsRow[]>;
  apiCounts(query: CountsQuery, nowUs: number): Promise<CountsRow[]>;
  eventCounts(query: EventsQuery, nowUs: number): Promise<EventsRow[]>;
  close(): void;
}

/**
 * The order of rows with one timestamp is ours, not the contract's: FNV-1a of the (here ASCII) id, as 32
 * bits.
 */
const ID_HASH = `list_reduce(
  list_prepend(2166136261::UBIGINT, list_transform(string_split(id, ''), lambda c: ascii(c)::UBIGINT)),
  lambda hash, byte: (xor(hash, byte) * 16777619::UBIGINT) % 4294967296::UBIGINT)`;

const TABLES = `
create table edge_raw (raw JSON);
create table relay_raw (raw JSON);`;

const EDGE_TABLE = `
create table edge as
select *, ${ID_HASH} as id_hash,
  case ring_tier when 'PRO' then interval 7 day when 'PAYG' then interval 90 day
    when 'ENTERPRISE' then interval 90 day else interval 1 day end as kept
from (
  select raw->>'$.id' as id,
    make_timestamp((raw->>'$.timestamp')::BIGINT) as timestamp,
    raw->>'$.event_message' as event_message,
    raw->>'$.project' as project,
    coalesce(raw->>'$.project_tier', 'ENTERPRISE') as ring_tier,
    json_extract(raw, '$.metadata')::VARCHAR as metadata,
    raw->>'$.metadata.request.url' as url,
    raw->>'$.metadata.request.path' as path,
    (raw->>'$.metadata.response.status_code')::INTEGER as status_code
  from edge_raw)`;

const RELAY_TABLE = `
create table relay as
select make_timestamp((raw->>'$.timestamp')::BIGINT) as timestamp,
  raw->>'$.metadata.project_ref' as project,
  raw->>'$.metadata.function_id' as function_id,
  (raw->>'$.metadata.execution_time_ms')::DOUBLE as execution_time_ms,
  (raw->>'$.metadata.response.status_code')::INTEGER as status_code
from relay_raw`;

const LOGS = `
with retention as (
  select make_timestamp($now::BIGINT) - case $tier
    when 'FREE' then interval 1 day
    when 'PRO' then interval 7 day
    when 'PAYG' then interval 90 day
    when 'ENTERPRISE' then interval 90 day
    else interval 1 day end as oldest)
select id, epoch_us(timestamp)::DOUBLE as timestamp, event_message, metadata
from edge, retention
where project = $project
  and timestamp >= oldest
  and timestamp >= make_timestamp($now::BIGINT) - kept
  and case when coalesce($start, '') = '' then true else timestamp > $start::TIMESTAMP end
  and case when coalesce($end, '') = '' then true else timestamp <= $end::TIMESTAMP end
order by edge.timestamp desc, id_hash
limit 100`;

/** interval → step count, outer unit, inner unit. */
const SERIES: Readonly<Record<string, readonly [number, string, string]>> = {
  '5min': [5, 'minute', 'second'],
  '15min': [15, 'minute', 'minute'],
  '1hr': [1, 'hour', 'minute'],
  '1day': [1, 'day', 'hour'],
  '7day': [7, 'day', 'day'],
};

const statsSql = (stepCount: number, outer: string, inner: string): string => `
with series as (
  select unnest(generate_series(
    date_trunc('${inner}', make_timestamp($now::BIGINT) - interval ${stepCount} ${outer}),
    date_trunc('${inner}', make_timestamp($now::BIGINT)),
    interval 1 ${inner}))::TIMESTAMP as bucket),
buckets as (
  select date_trunc('${inner}', timestamp) as bucket,
    min(execution_time_ms) as min_execution_time,
    max(execution_time_ms) as max_execution_time,
    favg(execution_time_ms) as avg_execution_time,
    list_sort(list(execution_time_ms) filter (execution_time_ms is not null)) as times,
    count(*) as count,
    count(*) filter (status_code >= 400) as error_count
  from relay
  where project = $project
    and case when coalesce($function_id, '') = '' then true else function_id = $function_id end
    and timestamp >= (select min(bucket) from series)
  group by 1)
select epoch_us(series.bucket)::DOUBLE as timestamp,
  min_execution_time, max_execution_time, avg_execution_time,
  times[(95 * len(times) + 99) // 100] as p95_execution_time,
  times[(99 * len(times) + 99) // 100] as p99_execution_time,
  count::DOUBLE as count, error_count::DOUBLE as error_count, coalesce(times, []) as times
from series join buckets on series.bucket = buckets.bucket
order by series.bucket`;

/** interval → window, bucket. */
const WINDOWS: Readonly<Record<string, readonly [string, string]>> = {
  hourly: ['1 hour', 'hour'],
  daily: ['7 day', 'day'],
  minutely: ['60 minute', 'minute'],
};

const countsSql = (window: string, bucket: string): string => `
with counted as (
  select date_trunc('${bucket}', timestamp) as bucket,
    case when regexp_matches(path, '/rest') then 1 else 0 end as rest,
    case when regexp_matches(path, '/storage') then 1 else 0 end as storage,
    case when regexp_matches(path, '/auth') then 1 else 0 end as auth,
    case when regexp_matches(path, '/realtime') then 1 else 0 end as realtime
  from edge
  where timestamp >= make_timestamp($now::BIGINT) - interval ${window}
    and timestamp <= make_timestamp($now::BIGINT)
    and regexp_matches(url, $project))
select strftime(bucket, '%Y-%m-%dT%H:%M:%S') as timestamp,
  coalesce(sum(rest), 0)::DOUBLE as total_rest_requests,
  coalesce(sum(storage), 0)::DOUBLE as total_storage_requests,
  coalesce(sum(auth), 0)::DOUBLE as total_auth_requests,
  coalesce(sum(realtime), 0)::DOUBLE as total_realtime_requests
from counted group by bucket order by bucket`;

/** interval → how far back, bucket; the days go back as far as the tier. */
const EVENT_WINDOWS: Readonly<Record<string, readonly [string, string]>> = {
  minutely: ['60 minute', 'minute'],
  hourly: ['24 hour', 'hour'],
  daily: ['tier', 'day'],
};

const TIER_DAYS: Readonly<Record<string, number>> = { PRO: 7, PAYG: 90, ENTERPRISE: 90 };

const eventsSql = (window: string, bucket: string): string => `
select epoch_us(date_trunc('${bucket}', timestamp)::TIMESTAMP)::DOUBLE as timestamp,
  (count(*) filter (status_code < 400 or status_code is null))::DOUBLE as ok_count,
  (count(*) filter (status_code between 400 and 499))::DOUBLE as warning_count,
  (count(*) filter (status_code >= 500))::DOUBLE as error_count
from edge
where project = $project
  and timestamp >= date_trunc('${bucket}', make_timestamp($now::BIGINT) - interval ${window})
  and date_trunc('${bucket}', timestamp) <= date_trunc('${bucket}', make_timestamp($now::BIGINT))
group by 1 order by 1`;

async function fill(connection: DuckDBConnection, table: string, texts: readonly string[]): Promise<void> {
  const appender = await connection.createAppender(table);
  for (const text of texts) {
    appender.appendVarchar(text);
    appender.endRow();
  }
  appender.closeSync();
}

/**
 * Takes the raw texts of the entries of both topics; each carries its own integer timestamp in µs, and an id.
 */
export async function createOracle(
  edgeTexts: readonly string[],
  relayTexts: readonly string[],
): Promise<Oracle> {
  const instance = await DuckDBInstance.create(':memory:', { threads: '1' });
  const connection = await instance.connect();
  await connection.run(TABLES);
  await fill(connection, 'edge_raw', edgeTexts);
  await fill(connection, 'relay_raw', relayTexts);
  await connection.run(`${EDGE_TABLE};${RELAY_TABLE};drop table edge_raw;drop table relay_raw`);

  // DuckDB's values become what JSON.parse would give: every number is selected as a double.
  const rows = async <Row>(sql: string, values: Record<string, DuckDBValue>): Promise<Row[]> => {
    const reader = await connection.runAndReadAll(sql, values);
    return reader.getRowObjectsJS() as unknown as Row[];
  };

  return {
    async logs(query, nowUs) {
      const found = await rows<LogsRow & { metadata: string | null }>(LOGS, {
        now: String(nowUs),
        project: query.project,
        tier: query.project_tier,
        start: query.iso_timestamp_start ?? null,
        end: query.iso_timestamp_end ?? null,
      });
      return found.map((row) => ({
        ...row,
        metadata: row.metadata === null ? null : JSON.parse(row.metadata),
      }));
    },
    async invocationStats(query, nowUs) {
      const [stepCount, outer, inner] = SERIES[query.interval] ?? SERIES['1day'];
      const values = {
        now: String(nowUs),
        project: query.project,
        function_id: query.function_id ?? null,
      };
      const found = await rows<StatsRow & { times: number[] }>(statsSql(stepCount, outer, inner), values);
      return found.map(({ times, ...row }) => ({ ...row, sortedTimesMs: times }));
    },
    apiCounts(query, nowUs) {
      const [window, bucket] = WINDOWS[query.interval];
      return rows<CountsRow>(countsSql(window, bucket), { now: String(nowUs), project: query.project });
    },
    eventCounts({ project, project_tier, interval }, nowUs) {
      const [window, bucket] = EVENT_WINDOWS[interval];
      const back = window === 'tier' ? `${TIER_DAYS[project_tier] ?? 1} day` : window;
      return rows<EventsRow>(eventsSql(back, bucket), { now: String(nowUs), project });
    },
    close() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}
