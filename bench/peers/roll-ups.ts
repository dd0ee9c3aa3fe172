/**
 * The roll-up tables that PostgreSQL and SQLite are given, and the questions over them; the same SQL for both
 * except how parameters are bound.
 *
 * Statistics: a finished row for each project and minute, hour and day, percentiles and all. Usage: counts
 * for each minute and hour, by every project that a URL names, its own or another's in the query string; the
 * ends of a window, which cut through minutes, are counted in the entries themselves. So answers are exact,
 * for names of projects.
 */

import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../../engine/time.js';
import { type CountsQuestion, countsWindow, type StatsQuestion, statsWindow } from './question.js';

export const STATS_UNITS_US = [US_PER_MINUTE, US_PER_HOUR, US_PER_DAY] as const;
export const USAGE_UNITS_US = [US_PER_MINUTE, US_PER_HOUR] as const;

export const ROLL_UP_TABLES = `
  create table stats_roll_up (project text, unit_us bigint, bucket bigint, count bigint, errors bigint,
    min_ms double precision, max_ms double precision, mean_ms double precision, p95_ms double precision,
    p99_ms double precision, primary key (project, unit_us, bucket));
  create table usage_roll_up (project text, unit_us bigint, bucket bigint, rest bigint, storage bigint, auth bigint,
    realtime bigint, primary key (project, unit_us, bucket));`;

export interface SqlQuestion {
  readonly sql: string;
  readonly values: readonly (string | number)[];
}

export function statsFromRollUps(question: StatsQuestion, nowUs: number): SqlQuestion {
  const { fromUs, endUs, bucketUs } = statsWindow(question, nowUs);
  return {
    sql: `select bucket, count, errors, min_ms, max_ms, mean_ms, p95_ms, p99_ms from stats_roll_up
      where project = $1 and unit_us = $2 and bucket >= $3 and bucket < $4 order by bucket`,
    values: [question.project, bucketUs, fromUs, endUs],
  };
}

/** `names` is a condition on a URL, true where it contains `$1`. */
export function countsFromRollUps(question: CountsQuestion, nowUs: number, names: string): SqlQuestion {
  const { fromUs, endUs, bucketUs } = countsWindow(question, nowUs);
  const up = (timeUs: number, unitUs: number) => Math.ceil(timeUs / unitUs) * unitUs;
  const down = (timeUs: number, unitUs: number) => Math.floor(timeUs / unitUs) * unitUs;
  const minutes = [up(fromUs, US_PER_MINUTE), down(endUs, US_PER_MINUTE)];
  const hours =
    bucketUs === US_PER_DAY ? [up(fromUs, US_PER_HOUR), down(endUs, US_PER_HOUR)] : [minutes[1], minutes[1]];
  const values: (string | number)[] = [question.expression];
  const parts: string[] = [];
  const entries = (startUs: number, stopUs: number) => {
    parts.push(`select ts, rest, storage, auth, realtime from usage
      where ts >= $${values.push(startUs)} and ts < $${values.push(stopUs)} and ${names}`);
  };
  const rolledUp = (unitUs: number, startUs: number, stopUs: number) => {
    if (startUs >= stopUs) return;
    parts.push(`select bucket, rest, storage, auth, realtime from usage_roll_up
      where project = $1 and unit_us = ${unitUs} and bucket >= $${values.push(startUs)} and bucket < $${values.push(stopUs)}`);
  };
  entries(fromUs, minutes[0]);
  rolledUp(US_PER_MINUTE, minutes[0], hours[0]);
  rolledUp(US_PER_HOUR, hours[0], hours[1]);
  rolledUp(US_PER_MINUTE, hours[1], minutes[1]);
  entries(minutes[1], endUs);
  return {
    sql: `select ts / ${bucketUs} * ${bucketUs} as bucket, sum(rest), sum(storage), sum(auth), sum(realtime)
      from (${parts.join(' union all ')}) as parts group by 1 order by 1`,
    values,
  };
}
