/** The settings of the logs themselves: their topics, and how long whose rows are kept. */

import { z } from 'zod';
import { TIER_NAMES, type TierName } from '../../engine/tier.js';
import { endpointNames } from '../endpoints/list.js';
import { flag, integer, list, type Setting, type Values } from './setting.js';

const topic = z
  .string()
  .regex(/^[a-zA-Z0-9._-]{1,249}$/, 'must be a Kafka topic name: 1 to 249 of a-z A-Z 0-9 . _ -')
  .refine((name) => name !== '.' && name !== '..', 'must not be . or ..');

const projectTiers = z.string().transform((value, context): ReadonlyMap<string, TierName> => {
  const tiers = new Map<string, TierName>();
  for (const part of list(value)) {
    const equals = part.lastIndexOf('=');
    const tier = z.enum(TIER_NAMES).safeParse(part.slice(equals + 1));
    if (equals > 0 && tier.success) tiers.set(part.slice(0, equals), tier.data);
    else
      context.addIssue(
        `must be a comma-separated list of project=TIER, TIER one of ${TIER_NAMES.join(', ')}`,
      );
  }
  return tiers;
});

/** '' for none. */
const topicOrNone = z.literal('').or(topic);

export const LOG_SETTINGS = {
  EDGE_TOPIC: {
    schema: topicOrNone.default('cloudflare.logs.prod'),
    help: `topic, or source_name, of edge request logs; empty: it is not read, which turns off ${endpointNames('edge')}`,
  },
  RELAY_TOPIC: {
    schema: topicOrNone.default('deno-relay-logs'),
    help: `topic, or source_name, of function invocation logs; empty: it is not read, which turns off ${endpointNames('relay')}`,
  },
  DEAD_LETTER_TOPIC: {
    schema: topic.default('logring.dead-letters'),
    help: 'topic for records that cannot be used',
  },
  DEFAULT_TIER: {
    schema: z.enum(TIER_NAMES, `must be one of ${TIER_NAMES.join(', ')}`).default('ENTERPRISE'),
    help: 'tier of entries for which none is given anywhere (an entry that gives an unknown one counts as FREE)',
  },
  QUERY_TIER: {
    schema: z.enum(TIER_NAMES, `must be one of ${TIER_NAMES.join(', ')}`).optional(),
    help: 'project_tier of a query that names none; without it such a query is refused',
  },
  PROJECT_TIERS: {
    schema: projectTiers.optional(),
    help: 'comma-separated project=TIER, for entries that name no tier themselves',
  },
  URL_FROM_PATH: {
    schema: flag.default(false),
    help: 'true: an edge entry without metadata.request.url but with metadata.request.path gets the URL of its project as host and this path, so that usage.api-counts counts it; entries accepted before stay as they are',
  },
  MAX_LAG_RECORDS: {
    schema: integer(0, 999_999_999).default(100_000),
    help: 'records that one partition may be behind the log, above which /readyz is 503; with Kafka it is only a note there',
  },
} as const satisfies Record<string, Setting>;

export function logContradictions(config: Values<typeof LOG_SETTINGS>): string[] {
  const topics = [config.EDGE_TOPIC, config.RELAY_TOPIC, config.DEAD_LETTER_TOPIC].filter(
    (name) => name !== undefined && name !== '',
  );
  if (config.EDGE_TOPIC === '' && config.RELAY_TOPIC === '')
    return ['LOGRING_EDGE_TOPIC, LOGRING_RELAY_TOPIC: must not both be empty'];
  if (new Set(topics).size === topics.length) return [];
  return [
    'LOGRING_EDGE_TOPIC, LOGRING_RELAY_TOPIC, LOGRING_DEAD_LETTER_TOPIC: must be three different topics',
  ];
}
