/**
 * What every peer is asked: the parameter sets of the comparison, narrow ones and wide ones, about one
 * project.
 */

import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../../engine/time.js';

export interface LogsQuestion {
  readonly name: string;
  readonly kind: 'logs';
  readonly project: string;
  /** Rows are strictly later; null: no bound. */
  readonly afterUs: number | null;
  readonly untilUs: number | null;
}

export interface StatsQuestion {
  readonly name: string;
  readonly kind: 'stats';
  readonly project: string;
  readonly interval: '1hr' | '1day' | '7day';
}

export interface CountsQuestion {
  readonly name: string;
  readonly kind: 'counts';
  readonly interval: 'minutely' | 'daily';
  /** Searched in the URL. */
  readonly expression: string;
  /** Whether it is text to look for, without characters that mean something to a regular expression. */
  readonly isPlain: boolean;
}

export type Question = LogsQuestion | StatsQuestion | CountsQuestion;

/** The half-open span of time that a bucketed question reads, and its buckets. All in µs. */
export interface Window {
  readonly fromUs: number;
  readonly endUs: number;
  readonly bucketUs: number;
}

export function questionsAbout(project: string, nowUs: number): Question[] {
  const stats = (interval: StatsQuestion['interval']): StatsQuestion => ({
    name: `invocation-stats, ${interval}`,
    kind: 'stats',
    project,
    interval,
  });
  const logs = { kind: 'logs', project } as const;
  const plain = { kind: 'counts', expression: project, isPlain: true } as const;
  return [
    { ...logs, name: 'logs.all, newest 100', afterUs: null, untilUs: null },
    {
      ...logs,
      name: 'logs.all, a day of the seven',
      afterUs: nowUs - 4 * US_PER_DAY,
      untilUs: nowUs - 3 * US_PER_DAY,
    },
    stats('1hr'),
    stats('1day'),
    stats('7day'),
    { ...plain, name: 'api-counts, minutely, a project', interval: 'minutely' },
    { ...plain, name: 'api-counts, daily, a project', interval: 'daily' },
    {
      kind: 'counts',
      name: 'api-counts, daily, an expression',
      expression: `^https://${project}\\.supabase\\.co/(?:rest|auth)/v1/`,
      isPlain: false,
      interval: 'daily',
    },
  ];
}

const SERIES = {
  '1hr': { backUs: US_PER_HOUR, bucketUs: US_PER_MINUTE },
  '1day': { backUs: US_PER_DAY, bucketUs: US_PER_HOUR },
  '7day': { backUs: 7 * US_PER_DAY, bucketUs: US_PER_DAY },
} as const;

/** From the beginning of the first bucket to the end of the bucket of now. */
export function statsWindow({ interval }: StatsQuestion, nowUs: number): Window {
  const { backUs, bucketUs } = SERIES[interval];
  return {
    fromUs: Math.floor((nowUs - backUs) / bucketUs) * bucketUs,
    endUs: (Math.floor(nowUs / bucketUs) + 1) * bucketUs,
    bucketUs,
  };
}

/** Ends at now, which belongs to it, and begins in the middle of a bucket. */
export function countsWindow({ interval }: CountsQuestion, nowUs: number): Window {
  return interval === 'daily'
    ? { fromUs: nowUs - 7 * US_PER_DAY, endUs: nowUs + 1, bucketUs: US_PER_DAY }
    : { fromUs: nowUs - US_PER_HOUR, endUs: nowUs + 1, bucketUs: US_PER_MINUTE };
}
