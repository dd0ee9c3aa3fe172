/**
 * The bodies of requests and answers as schemas, for the OpenAPI document; tests hold the service's answers
 * against them.
 */

import { z } from 'zod';
import { TIER_NAMES } from '../../../engine/tier.js';
import { DEAD_LETTER_REASONS } from '../../../ingest/dead-letters.js';
import { count } from '../../endpoints/call-parameters.js';
import type { Endpoint } from '../../endpoints/endpoint.js';
import { ENDPOINTS, endpointNames } from '../../endpoints/list.js';
import { serviceStatus } from './status-body.js';

const gap = z.strictObject({
  topic: z.string(),
  partition: z.int(),
  reason: z.enum(['log-start-moved', 'log-truncated', 'log-diverged', 'topic-recreated', 'wrong-checksum']),
  expectedOffset: z.int().meta({ description: 'The offset that would have been read next.' }),
  resumedOffset: z.int().meta({ description: 'The offset where reading went on.' }),
});

const heldPartition = z.strictObject({
  topic: z.string(),
  partition: z.int(),
  offset: z.int().meta({ description: 'The first offset that is not applied.' }),
  reason: z.enum(['clock', 'checksum']),
  sentence: z.string().meta({
    description: 'What was found, what ends the hold, and what an acknowledgment does.',
  }),
});

const entryMembers = {
  id: z.string().optional(),
  timestamp: z.union([z.string(), z.number()]).optional().meta({
    description:
      'ISO 8601, or a number in s, ms, µs or ns; without it the first of `date`, `@timestamp` and `time`, else the time of arrival.',
  }),
  event_message: z
    .string()
    .optional()
    .meta({ description: 'Without it the first that is a string of `message`, `log` and `msg`.' }),
  project_tier: z
    .string()
    .optional()
    .meta({ examples: [...TIER_NAMES] }),
};

const edgeEntry = z
  .looseObject({
    project: z.string(),
    ...entryMembers,
    metadata: z
      .looseObject({
        request: z.looseObject({ url: z.string().optional(), path: z.string().optional() }).optional(),
      })
      .optional(),
  })
  .meta({ description: `A request at the edge: for ${endpointNames('edge')}.` });

const relayEntry = z
  .looseObject({
    ...entryMembers,
    metadata: z.looseObject({
      project_ref: z.string(),
      function_id: z.string().optional(),
      execution_time_ms: z.number().optional(),
      response: z.looseObject({ status_code: z.int().optional() }).optional(),
    }),
  })
  .meta({ description: `An invocation of a function: for ${endpointNames('relay')}.` });

const element = z.unknown().meta({
  description: 'What cannot be used as an entry is kept as a dead letter and reported as rejected.',
});

const other = z.looseObject({}).meta({ description: 'Any other object: no entry, either.' });

/** The rows of an endpoint. */
function rowsBody({ description: { row, order, maxRowCount } }: Endpoint): z.ZodObject {
  const rows = z.array(row);
  return z
    .strictObject({ result: maxRowCount === undefined ? rows : rows.max(maxRowCount) })
    .meta({ description: order });
}

/** By the names that the document gives them. */
export const BODIES: Readonly<Record<string, z.ZodType>> = {
  ...Object.fromEntries(ENDPOINTS.map((endpoint) => [endpoint.description.bodyName, rowsBody(endpoint)])),
  Entries: z
    .union([edgeEntry, relayEntry, z.looseObject({ batch: z.array(element) }), z.array(element), other])
    .meta({
      description: 'One entry, an array of entries, or an object with an array of entries as `batch`.',
    }),
  Stored: z.strictObject({
    message: z.string(),
    accepted: count.meta({ description: 'Entries that are on disk, and in answers a moment later.' }),
    rejected: z.array(z.strictObject({ index: count, reason: z.enum(DEAD_LETTER_REASONS) })).meta({
      description: 'Entries that cannot be used, by their place in the body. They are kept as dead letters.',
    }),
    missing: z
      .strictObject({ url: count.optional(), status: count.optional(), time: count.optional() })
      .optional()
      .meta({
        description:
          'Accepted entries that answers do not count, or count less of: edge entries without a URL, invocations without a status or an execution time.',
      }),
  }),
  Gaps: z.strictObject({ gaps: z.array(gap) }),
  AcknowledgedGaps: z.strictObject({ acknowledged: z.array(gap) }),
  Holds: z.strictObject({ holds: z.array(heldPartition) }),
  AcknowledgedHolds: z.strictObject({ acknowledged: z.array(heldPartition) }),
  Projects: z.strictObject({
    projects: z.array(z.string()),
    limited: z.boolean().meta({ description: 'Whether the key is limited to just these.' }),
  }),
  Functions: z.strictObject({
    functions: z.array(
      z.strictObject({
        id: z.string(),
        count: count.meta({ description: 'Its entries of the last days, as the interval 7day has them.' }),
      }),
    ),
  }),
  Snapshot: z.strictObject({
    id: z.string().meta({ description: 'What it is released by.' }),
    store: z.string().meta({ description: 'The id of the store.' }),
    format: z.int().meta({ description: 'The format of the store.' }),
    files: z.array(
      z.strictObject({
        path: z.string().meta({ description: 'From the data directory.' }),
        byteCount: count.meta({ description: 'How many of its bytes count.' }),
        name: z.string().meta({ description: 'Its name in the folder `snapshot`.' }),
      }),
    ),
  }),
  Released: z.strictObject({}),
  DeadLetters: z.strictObject({
    letters: z.array(
      z.strictObject({
        time: z.iso.datetime(),
        topic: z.string(),
        partition: count,
        reason: z.enum(DEAD_LETTER_REASONS),
        count: count.meta({ description: 'Entries; those that come together share a letter.' }),
        samples: z
          .array(
            z.strictObject({
              offset: count,
              index: count.meta({ description: 'The place within an array.' }),
              byteCount: count.meta({ description: 'Of all of it.' }),
              text: z.string().meta({ description: 'The beginning of it.' }),
            }),
          )
          .meta({ description: 'The first of them.' }),
      }),
    ),
    next: z.string().nullable().meta({ description: 'What `before` takes to go on; null at the end.' }),
  }),
  Status: serviceStatus,
  Health: z.strictObject({
    ok: z.boolean(),
    reasons: z.array(z.string()).meta({ description: 'Why not, a sentence each; empty when ok.' }),
    notes: z
      .array(z.string())
      .optional()
      .meta({ description: 'What an operator should know although all is well.' }),
  }),
  LogflareHealth: z.strictObject({
    status: z.enum(['ok', 'coming_up']),
    proc_count: count,
    this_node: z.string(),
    nodes: z.array(z.string()),
    nodes_count: count,
    reasons: z.array(z.string()).optional().meta({ description: 'Why not, as /readyz says it.' }),
  }),
  Error: z.strictObject({
    error: z.strictObject({
      code: z.int().meta({ description: 'The HTTP status.' }),
      status: z.string(),
      message: z.string().meta({ description: 'All that is wrong, in one line.' }),
      errors: z
        .array(z.strictObject({ parameter: z.string(), message: z.string() }))
        .meta({ description: 'What is wrong with each parameter.' }),
    }),
  }),
};
