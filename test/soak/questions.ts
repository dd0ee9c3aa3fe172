/**
 * Questions of all kinds: the endpoints, all intervals, tiers, time ranges, literal and regular expressions.
 */

import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../../engine/time.js';
import type { Random } from '../../src/demo/random.js';
import type { CountsQuestion, EventsQuestion, LogsQuestion, StatsQuestion } from '../model/model.js';

export type Question =
  | ({ readonly endpoint: 'logs.all' } & LogsQuestion)
  | ({ readonly endpoint: 'functions.invocation-stats' } & StatsQuestion)
  | ({ readonly endpoint: 'usage.api-counts' } & CountsQuestion)
  | ({ readonly endpoint: 'logs.event-counts' } & EventsQuestion);

/** Whom a question is about. */
export interface Subject {
  readonly project: string;
  readonly functionIds: readonly string[];
}

const TIERS = ['FREE', 'PRO', 'PAYG', 'ENTERPRISE', '', 'free'];
const STATS_INTERVALS = ['5min', '15min', '1hr', '1day', '7day', ''];
const COUNTS_INTERVALS = ['hourly', 'daily', 'minutely'];
const BACK_US = [US_PER_MINUTE, US_PER_HOUR, US_PER_DAY, 7 * US_PER_DAY];

export function drawQuestion(random: Random, { project, functionIds }: Subject, nowUs: number): Question {
  switch (random.below(4)) {
    case 0:
      return {
        endpoint: 'logs.all',
        project,
        tier: random.pick(TIERS),
        afterUs: random.chance(0.5) ? null : drawTime(random, nowUs),
        untilUs: random.chance(0.5) ? null : drawTime(random, nowUs),
      };
    case 1:
      return {
        endpoint: 'functions.invocation-stats',
        project,
        functionId: random.chance(0.5) ? null : random.pick(functionIds),
        interval: random.pick(STATS_INTERVALS),
      };
    case 2:
      return {
        endpoint: 'logs.event-counts',
        project,
        tier: random.pick(TIERS),
        interval: random.pick(COUNTS_INTERVALS),
      };
    default: {
      // They mean the same to RE2 and to JavaScript.
      const expressions = [project, project, `^https?://${project}[.]`, `${project}.*(?:rest|auth)`];
      if (random.chance(0.1)) expressions.push(`${project}.*[?]id=${random.below(30)}$`);
      return {
        endpoint: 'usage.api-counts',
        expression: random.pick(expressions),
        interval: random.pick(COUNTS_INTERVALS),
      };
    }
  }
}

function drawTime(random: Random, nowUs: number): number {
  return nowUs - random.below(random.pick(BACK_US));
}

/** Every question that the end of a soak asks about a subject. */
export function allQuestions({ project, functionIds }: Subject): Question[] {
  return [
    ...TIERS.map((tier) => ({ endpoint: 'logs.all' as const, project, tier, afterUs: null, untilUs: null })),
    ...STATS_INTERVALS.flatMap((interval) =>
      [null, ...functionIds].map((functionId) => ({
        endpoint: 'functions.invocation-stats' as const,
        project,
        functionId,
        interval,
      })),
    ),
    ...COUNTS_INTERVALS.map((interval) => ({
      endpoint: 'logs.event-counts' as const,
      project,
      tier: 'ENTERPRISE',
      interval,
    })),
    ...COUNTS_INTERVALS.flatMap((interval) =>
      [project, `^https?://${project}[.]`].map((expression) => ({
        endpoint: 'usage.api-counts' as const,
        expression,
        interval,
      })),
    ),
  ];
}

export function pathOf(question: Question): string {
  return `/api/endpoints/query/${question.endpoint}?${new URLSearchParams(parametersOf(question))}`;
}

function parametersOf(question: Question): Record<string, string> {
  switch (question.endpoint) {
    case 'logs.all': {
      const { project, tier, afterUs, untilUs } = question;
      return {
        project,
        project_tier: tier,
        ...(afterUs === null ? {} : { iso_timestamp_start: isoOf(afterUs) }),
        ...(untilUs === null ? {} : { iso_timestamp_end: isoOf(untilUs) }),
      };
    }
    case 'functions.invocation-stats': {
      const { project, functionId, interval } = question;
      return { project, interval, ...(functionId === null ? {} : { function_id: functionId }) };
    }
    case 'logs.event-counts': {
      const { project, tier, interval } = question;
      return { project, project_tier: tier, interval };
    }
    case 'usage.api-counts':
      return { project: question.expression, interval: question.interval };
  }
}

function isoOf(timestampUs: number): string {
  const micros = String(timestampUs % 1000).padStart(3, '0');
  return new Date(Math.floor(timestampUs / 1000)).toISOString().replace('Z', `${micros}Z`);
}
