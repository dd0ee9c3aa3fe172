/** What `/api/status` answers, as a schema; its type holds it to what the service gives. */

import { z } from 'zod';
import type { ServiceStatus } from '../../console/service-status.js';

const count = z.int().min(0);
const name = z.string();

const lookups = { bytes: count, hits: count, misses: count };

export const serviceStatus = z.strictObject({
  nowUs: z.number().meta({ description: 'When it was read, microseconds since the epoch.' }),
  version: name,
  logSource: z.enum(['Kafka', 'embedded log']),
  problems: z
    .array(z.string())
    .meta({ description: 'Why the service is not ready, as /readyz says it; none when it is.' }),
  notes: z.array(z.string()),
  members: z
    .array(
      z.strictObject({
        zone: name,
        url: name.meta({ description: 'Where other members ask it; empty for this process.' }),
        answers: z.boolean().nullable().meta({ description: 'null until it was asked.' }),
        readCount: count.meta({ description: 'Partitions that it reads.' }),
        copyCount: count.meta({ description: 'Partitions that it has whole copies of.' }),
        ageSeconds: z
          .number()
          .nullable()
          .meta({ description: 'Of the oldest copy of what it reads; null where one was never whole.' }),
      }),
    )
    .nullable()
    .meta({ description: 'Those that answer together, this process first; null where it answers alone.' }),
  partitions: z.array(
    z.strictObject({
      topic: name,
      partition: count,
      isRead: z.boolean().meta({ description: 'Whether this process reads it.' }),
      isHeld: z.boolean().meta({ description: 'Whether it is on hold: /readyz says why.' }),
      nextOffset: z.int().nullable().meta({ description: 'null before the first record.' }),
      endOffset: z
        .int()
        .nullable()
        .meta({ description: "The offset after the log's last record; null while it is not known." }),
      received: count.meta({ description: 'Entries, usable or not, since the store began.' }),
    }),
  ),
  views: z.array(
    z.strictObject({
      name,
      title: name,
      label: name.nullable().meta({ description: 'What there is a line for each of; null: one line.' }),
      figures: z.array(
        z.strictObject({
          name: name.meta({ description: 'As in the metrics, behind `logring_`.' }),
          title: name,
          unit: z.enum(['count', 'bytes', 'timestampSeconds']),
        }),
      ),
      lines: z.array(
        z.strictObject({
          label: name.nullable(),
          values: z
            .array(z.number().nullable())
            .meta({ description: 'In the order of the figures; null: not known.' }),
        }),
      ),
    }),
  ),
  resultCache: z.strictObject({ entries: count, ...lookups }).nullable(),
  blockCache: z.strictObject(lookups),
  deadLetters: z.strictObject({
    counts: z.array(z.strictObject({ topic: name, reason: name, count })),
    samples: z.array(
      z.strictObject({
        topic: name,
        partition: count,
        offset: count,
        index: count.meta({ description: 'The place within an array.' }),
        reason: name,
        text: z.string().meta({ description: 'The beginning of it.' }),
        byteCount: count.meta({ description: 'Of all of it.' }),
      }),
    ),
  }),
  missing: z
    .strictObject({ url: count, status: count, time: count })
    .meta({ description: 'Entries without it, since the process began.' }),
  store: z.strictObject({ usedBytes: count, damagedFiles: count }),
  gaps: z.array(
    z.strictObject({
      topic: name,
      partition: count,
      reason: name,
      expectedOffset: z.int(),
      resumedOffset: z.int(),
    }),
  ),
  memory: z.strictObject({
    budgetBytes: count,
    parts: z.array(z.strictObject({ part: name, bytes: count })),
  }),
}) satisfies z.ZodType<ServiceStatus>;
