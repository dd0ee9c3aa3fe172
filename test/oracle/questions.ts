/**
 * What the oracle test asks: every tier, interval and kind of expression, with windows cut at chosen
 * microseconds.
 */

import type { Traffic } from '../../bench/generator/traffic.js';
import type { Random } from '../../src/demo/random.js';
import type { CountsQuery, EventsQuery, LogsQuery, StatsQuery } from './oracle.js';

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const TIERS = ['FREE', 'PRO', 'PAYG', 'ENTERPRISE', 'free', ''];
/** The last two are unknown, and behave as 1day. */
const STATS_INTERVALS = ['5min', '15min', '1hr', '1day', '7day', '1HR', ''];
const COUNTS_INTERVALS = ['hourly', 'daily', 'minutely'];
const SERIES: readonly (readonly [outerUs: number, innerUs: number])[] = [
  [5 * MINUTE, SECOND],
  [15 * MINUTE, MINUTE],
  [HOUR, MINUTE],
  [DAY, HOUR],
  [7 * DAY, DAY],
];

/**
 * The edges of all windows as seen from nowUs, each with the microsecond before and after: ends of retention,
 * first buckets of series, starts of usage windows, now itself, and how far ahead an entry may lie (two
 * milliseconds less: the embedded log notes an entry's arrival in milliseconds).
 */
export function edgesUs(nowUs: number): number[] {
  const edges = [
    nowUs,
    nowUs - HOUR,
    nowUs - DAY,
    nowUs - 7 * DAY,
    nowUs - 90 * DAY + 1,
    nowUs + HOUR - 2_000,
  ];
  for (const [outerUs, innerUs] of SERIES) {
    edges.push(Math.floor((nowUs - outerUs) / innerUs) * innerUs, Math.floor(nowUs / innerUs) * innerUs);
    edges.push(Math.floor(nowUs / innerUs) * innerUs + innerUs - 1);
  }
  return [...new Set(edges.flatMap((edge) => [edge - 1, edge, edge + 1]))].filter(
    (edge) => edge >= nowUs - 90 * DAY && edge <= nowUs + HOUR,
  );
}

/** ISO 8601 to the microsecond. */
export function isoOf(timestampUs: number): string {
  const fraction = String(timestampUs % SECOND).padStart(6, '0');
  return `${new Date(Math.floor(timestampUs / SECOND) * 1_000).toISOString().slice(0, 19)}.${fraction}Z`;
}

/** `timesUs` are times of entries, from which windows are cut to the microsecond. */
export function logsQueries(
  random: Random,
  projects: readonly string[],
  timesUs: readonly number[],
): LogsQuery[] {
  const bound = (): string => isoOf(random.pick(timesUs) + random.between(-1, 1));
  return projects.flatMap((project) =>
    TIERS.flatMap((project_tier): LogsQuery[] => {
      const [first, second] = [bound(), bound()].sort();
      return [
        { project, project_tier },
        { project, project_tier, iso_timestamp_start: first },
        { project, project_tier, iso_timestamp_end: bound() },
        { project, project_tier, iso_timestamp_start: first, iso_timestamp_end: second },
        { project, project_tier, iso_timestamp_start: '', iso_timestamp_end: bound() },
        { project, project_tier, iso_timestamp_start: second, iso_timestamp_end: first },
      ];
    }),
  );
}

export function statsQueries(traffic: Traffic, projectIndexes: readonly number[]): StatsQuery[] {
  return projectIndexes.flatMap((index) => {
    const { ref, functions } = traffic.projects[index];
    const functionIds = [undefined, '', functions[0].id, 'no-such-function'];
    return STATS_INTERVALS.flatMap((interval) =>
      functionIds.map((function_id): StatsQuery => {
        const query = { project: ref, interval };
        return function_id === undefined ? query : { ...query, function_id };
      }),
    );
  });
}

export function countsQueries(projects: readonly string[]): CountsQuery[] {
  const [busiest, second, ...others] = projects;
  const expressions = [
    ...projects,
    'no-such-project',
    busiest.slice(0, 6),
    `^https://${busiest}\\.`,
    `^https://${second}\\.supabase\\.co/(?:rest|auth)/v1/`,
    `(${others.join('|')})`,
    `(?i)${busiest.toUpperCase()}`,
    '[?&]limit=\\d{2,3}\\b',
    'redirect_to=https(?:%3A|:)',
    '/object/(?:public/)?avatars/[0-9a-f-]{36}\\.webp$',
    '\\.(?:webp|ico)(?:\\?|$)',
    '(?-s)^.*realtime.*websocket$',
    'a.*b.*c.*d.*e.*f.*g$',
    '(?:ab?){3,}',
    '.',
    '\\?select=\\*&id=eq',
    '[[:upper:]]',
  ];
  return expressions.flatMap((project) => COUNTS_INTERVALS.map((interval) => ({ project, interval })));
}

export function* eventsQueries(projects: readonly string[]): Iterable<EventsQuery> {
  for (const project of [...projects, 'nobody'])
    for (const interval of COUNTS_INTERVALS)
      for (const tier of interval === 'daily' ? TIERS : ['PRO'])
        yield { project, project_tier: tier, interval };
}
