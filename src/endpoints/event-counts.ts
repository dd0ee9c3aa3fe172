/** `logs.event-counts`: the histogram above a list of logs. Ours, not the contract's. */

import { z } from 'zod';
import { EVENT_COUNTS } from '../../engine/event-counts/kind.js';
import {
  collectEventCounts,
  type EventCountsParameters,
  type EventCountsPartial,
  type EventCountsRow,
  eventQuestionOf,
  mergeEventCounts,
  readEventCounts,
  writeEventCounts,
} from '../../engine/event-counts/partial.js';
import { EVENT_INTERVALS, EVENT_LEVELS } from '../../engine/event-counts/windows.js';
import { RETENTION_US, tierClassOf } from '../../engine/tier.js';
import { CallParameters, count, oneOf, projectName, projectTier, timestampUs } from './call-parameters.js';
import { type CachedEndpoint, encodeRows } from './endpoint.js';

export const eventCounts = {
  name: 'logs.event-counts',
  id: '1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a04',
  idSetting: 'EVENT_COUNTS_ID',
  log: 'edge',
  isCached: true,
  limitedKeyRule: 'it may ask for those only',
  parameters: new CallParameters(
    {
      project: projectName,
      project_tier: projectTier,
      interval: oneOf(EVENT_INTERVALS).meta({
        description:
          'The last 60 minutes by the minute, the last 24 hours by the hour, or the retention of the tier by the day.',
      }),
    },
    (wire): EventCountsParameters => ({
      project: wire.project,
      retentionUs: RETENTION_US[tierClassOf(wire.project_tier)],
      interval: wire.interval,
    }),
  ),
  projectOf: ({ project }) => project,
  description: {
    operationId: 'eventCounts',
    bodyName: 'EventCounts',
    text: 'Edge logs of a project, bucket by bucket, by how they ended. An addition of Logring: other log services do not have it. An entry counts as long as its bucket is in the interval, whatever the tier that its row was kept for.',
    order: 'A row a bucket that has entries, oldest first.',
    row: z.strictObject({
      timestamp: timestampUs.meta({ description: 'Start of the bucket, microseconds since the epoch.' }),
      ok_count: count.meta({ description: 'Entries with a response status below 400, or without any.' }),
      warning_count: count.meta({ description: 'Entries with a response status from 400 to 499.' }),
      error_count: count.meta({ description: 'Entries with a response status of 500 and above.' }),
    }),
  },
  cacheKey: ({ interval, retentionUs, project }) => `${interval} ${retentionUs} ${project}`,
  window: (parameters, nowUs) => {
    const { level, firstSlot, lastSlot } = eventQuestionOf(parameters, nowUs);
    const { name, unitUs } = EVENT_LEVELS[level];
    return {
      view: EVENT_COUNTS.name,
      level: name,
      startUs: firstSlot * unitUs,
      endUs: (lastSlot + 1) * unitUs - 1,
    };
  },
  open: ({ shards }) => ({
    collect: (parameters, nowUs, from = shards) => {
      const question = eventQuestionOf(parameters, nowUs);
      const views = from.edge.map(({ eventCounts: view }) => view);
      return views.length === 0 ? [] : [collectEventCounts(views, question)];
    },
    merge: (partials) => encodeRows(mergeEventCounts(partials).map(encodeRow)),
    write: writeEventCounts,
    read: (bytes, parameters, nowUs) => readEventCounts(bytes, eventQuestionOf(parameters, nowUs)),
  }),
} as const satisfies CachedEndpoint<EventCountsParameters, EventCountsPartial>;

function encodeRow({ bucketStartUs, ok, warning, error }: EventCountsRow): string {
  return `{"timestamp":${bucketStartUs},"ok_count":${ok},"warning_count":${warning},"error_count":${error}}`;
}
