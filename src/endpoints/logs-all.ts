/** `logs.all`. Source: SPEC. */

import { z } from 'zod';
import { parseIsoTimestampUs } from '../../engine/iso-timestamp.js';
import { LOG_ROW_LIMIT } from '../../engine/limits.js';
import { LikelyRows, lackingRows } from '../../engine/rows/lacking-rows.js';
import type { LogsReading } from '../../engine/rows/logs-reading.js';
import {
  collectLogs,
  combineLogs,
  type LogsParameters,
  type LogsPartial,
  mergeLogs,
  readLogs,
  writeLogs,
} from '../../engine/rows/partial.js';
import { RETENTION_US, tierClassOf } from '../../engine/tier.js';
import { quoted } from '../quoted.js';
import { CallParameters, projectName, projectTier, timestampUs } from './call-parameters.js';
import type { AnsweringShards, LiveEndpoint, LiveQuery } from './endpoint.js';
import { ISO_TIMESTAMP_PATTERN } from './iso-timestamp-pattern.js';
import { LOGS_MEMO_SHARE } from './limits.js';
import { LogsAnswers } from './logs-answers.js';
import { logsWindow } from './logs-body.js';
import { LogsMemo } from './logs-memo.js';

const isoTimestamp = z
  .string()
  .transform((value, context): number | null => {
    if (value === '') return null;
    const timestampUs = parseIsoTimestampUs(value);
    if (timestampUs === null) {
      context.addIssue(`must be an ISO 8601 timestamp such as 2026-11-21T07:00:00Z, not ${quoted(value)}`);
      return z.NEVER;
    }
    return timestampUs;
  })
  .optional()
  .meta({ pattern: ISO_TIMESTAMP_PATTERN });

export const logsAll = {
  name: 'logs.all',
  id: '1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a01',
  idSetting: 'LOGS_ALL_ID',
  log: 'edge',
  isCached: false,
  limitedKeyRule: 'it may ask for those only',
  parameters: new CallParameters(
    {
      project: projectName,
      project_tier: projectTier,
      iso_timestamp_start: isoTimestamp.meta({
        description:
          'Only entries after this time, itself excluded: ISO 8601, such as `2026-11-21T07:00:00Z`; UTC where it has no offset. Empty: no bound.',
      }),
      iso_timestamp_end: isoTimestamp.meta({
        description:
          'Only entries up to this time, itself included: ISO 8601, such as `2026-11-21T08:00:00Z`; UTC where it has no offset. Empty: no bound.',
      }),
    },
    (wire): LogsParameters => {
      const startUs = wire.iso_timestamp_start ?? null;
      return {
        project: wire.project,
        retentionUs: RETENTION_US[tierClassOf(wire.project_tier)],
        // The wire's bounds are `> start` and `<= end`; inside both are inclusive, and times are whole
        // microseconds.
        startUs: startUs === null ? null : startUs + 1,
        endUs: wire.iso_timestamp_end ?? null,
      };
    },
  ),
  projectOf: ({ project }) => project,
  description: {
    operationId: 'logsAll',
    bodyName: 'LogsAll',
    text: 'The newest 100 edge logs of a project, within the retention of its tier and the given bounds.',
    order: 'Newest first.',
    maxRowCount: LOG_ROW_LIMIT,
    row: z.strictObject({
      id: z.string().meta({ description: 'Identifier of the entry; made where it came without one.' }),
      timestamp: timestampUs.meta({ description: 'Time of the entry, microseconds since the epoch.' }),
      event_message: z.string().nullable(),
      metadata: z.unknown().meta({ description: 'As it was ingested, byte for byte; null without any.' }),
    }),
  },
  window: (parameters, nowUs) => logsWindow(parameters, -Infinity, nowUs),
  open: ({ shards, largeAnswers, memoBytes, nowUs: readClock }) => {
    const collect = (
      parameters: LogsParameters,
      nowUs: number,
      from: AnsweringShards,
      reading: LogsReading | null = null,
    ) => from.edge.map(({ rows }) => collectLogs(rows, parameters, nowUs, reading));
    const answers = new LogsAnswers(largeAnswers, readClock);
    const answerWith: LiveQuery<LogsParameters, LogsPartial>['answerWith'] = (
      others,
      parameters,
      nowUs,
      from,
    ) =>
      answers.answer(
        parameters,
        nowUs,
        (asOfUs, byteLimit, reading) =>
          mergeLogs([...collect(parameters, asOfUs, from, reading), ...others], byteLimit),
        others,
      );
    const likely = new LikelyRows();
    const memo = new LogsMemo(
      {
        views: () => shards.edge.map(({ rows }) => rows),
        answer: (parameters, nowUs) => answerWith([], parameters, nowUs, shards),
      },
      LOGS_MEMO_SHARE * memoBytes,
    );
    return {
      collect: (parameters, nowUs, from = shards) => collect(parameters, nowUs, from),
      combine: combineLogs,
      write: writeLogs,
      read: readLogs,
      likelyDetail: (processCount, { project }) => likely.count(project, processCount),
      lacking: (partials, unseenBytes, { project }) =>
        lackingRows(partials, unseenBytes, (mostNeeded) => likely.note(project, mostNeeded)),
      answerWith,
      answer: (parameters, nowUs) => memo.answer(parameters, nowUs),
      get memoBytes() {
        return memo.heldBytes;
      },
      trim: (byteLimit) => memo.trim(byteLimit),
    };
  },
} as const satisfies LiveEndpoint<LogsParameters, LogsPartial>;
