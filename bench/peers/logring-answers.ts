/** The questions as Logring's requests, and its bodies as rows to compare. */

import type { AnswerRow } from './peer.js';
import type { Question } from './question.js';

const PREFIX = '/api/endpoints/query/';

export interface Target {
  readonly path: string;
  readonly rawQuery: string;
}

export function targetOf(question: Question): Target {
  switch (question.kind) {
    case 'logs': {
      const { project, afterUs, untilUs } = question;
      return target('logs.all', {
        project,
        project_tier: 'ENTERPRISE',
        ...(afterUs === null ? {} : { iso_timestamp_start: isoOf(afterUs) }),
        ...(untilUs === null ? {} : { iso_timestamp_end: isoOf(untilUs) }),
      });
    }
    case 'stats':
      return target('functions.invocation-stats', { project: question.project, interval: question.interval });
    case 'counts':
      return target('usage.api-counts', { project: question.expression, interval: question.interval });
  }
}

export function rowsOfBody(question: Question, body: Uint8Array): AnswerRow[] {
  const { result } = JSON.parse(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString()) as {
    result: Record<string, string | number | null>[];
  };
  switch (question.kind) {
    case 'logs':
      return result.map((row) => [row.id, row.timestamp, row.event_message, JSON.stringify(row.metadata)]);
    case 'stats':
      return result.map((row) => [
        row.timestamp,
        row.count,
        row.error_count,
        row.min_execution_time,
        row.max_execution_time,
        row.avg_execution_time,
        row.p95_execution_time,
        row.p99_execution_time,
      ]);
    case 'counts':
      return result.map((row) => [
        Date.parse(`${row.timestamp}Z`) * 1000,
        row.total_rest_requests,
        row.total_storage_requests,
        row.total_auth_requests,
        row.total_realtime_requests,
      ]);
  }
}

function target(endpoint: string, parameters: Record<string, string>): Target {
  return { path: `${PREFIX}${endpoint}`, rawQuery: String(new URLSearchParams(parameters)) };
}

/** ISO 8601 to the microsecond. */
function isoOf(timestampUs: number): string {
  const fraction = String(timestampUs % 1_000_000).padStart(6, '0');
  return `${new Date(Math.floor(timestampUs / 1_000_000) * 1000).toISOString().slice(0, 19)}.${fraction}Z`;
}
