/** The settings of several processes that answer together: where each listens for the others, and their key. */

import { z } from 'zod';
import { KEY_BYTES } from '../cluster/limits.js';
import type { ApiKey } from '../http/auth.js';
import type { HTTP_SETTINGS } from './http-settings.js';
import type { KAFKA_SETTINGS } from './kafka-settings.js';
import { integer, list, needs, type Setting, text, type Values } from './setting.js';

const KEY = /^[\x21-\x2b\x2d-\x7e]+$/;
const clusterKeys = z.string().transform((value, context): ApiKey[] => {
  const keys = list(value);
  if (!keys.every((key) => KEY.test(key) && key.length <= KEY_BYTES))
    context.addIssue(
      `must be a comma-separated list of keys of up to ${KEY_BYTES} characters in printable ASCII`,
    );
  return keys.map((key) => ({ key, projects: null }));
});

const url = z.string().refine((value) => {
  const parsed = URL.canParse(value) ? new URL(value) : null;
  return parsed !== null && ['http:', 'https:'].includes(parsed.protocol) && parsed.pathname === '/';
}, 'must be a URL without a path, such as http://logring-0.logring-headless:4100');

export const CLUSTER_SETTINGS = {
  CLUSTER_PORT: {
    schema: integer(0, 65535).optional(),
    help: 'port on which this member answers the other members; if it is set, the members of the Kafka group share the partitions and answer together; needs LOGRING_CLUSTER_KEYS and LOGRING_KAFKA_BROKERS',
    shownDefault: 'none: this process answers alone',
  },
  CLUSTER_HOST: { schema: text.default('127.0.0.1'), help: 'address that the cluster port listens on' },
  CLUSTER_URL: {
    schema: url.optional(),
    help: 'where other members reach the cluster port',
    shownDefault: 'its address and port',
  },
  CLUSTER_KEYS: {
    schema: clusterKeys.optional(),
    help: 'comma-separated keys that members may query each other with; each uses the first; needed with LOGRING_CLUSTER_PORT',
    shownDefault: 'none',
    secret: true,
  },
  HANDOVER_MB_PER_SECOND: {
    schema: integer(0, 100_000).default(50),
    help: 'megabytes a second at which other members copy partitions from this one; 0: no limit',
  },
  MOVE_AFTER_SECONDS: {
    schema: integer(0, 31_536_000).default(600),
    help: 'how long partitions wait for a member that is down before others of its zone take them. It is also how long the previous owner of a partition keeps its copy after another member has taken it over; one that is restarted within this time keeps the copy for good',
  },
  PEER_TIMEOUT_MS: {
    schema: integer(50, 60_000).default(2_000),
    help: 'how long an answer waits for other members; usage.api-counts waits for up to 45 s',
  },
} as const satisfies Record<string, Setting>;

const WILDCARDS = ['0.0.0.0', '::'];

export function clusterContradictions(
  config: Values<typeof CLUSTER_SETTINGS> & Values<typeof KAFKA_SETTINGS> & Values<typeof HTTP_SETTINGS>,
): string[] {
  const { CLUSTER_PORT: port, CLUSTER_HOST: host, CLUSTER_URL: url } = config;
  if (port === undefined)
    return (['CLUSTER_URL', 'CLUSTER_KEYS'] as const)
      .filter((name) => config[name] !== undefined)
      .map((name) => `LOGRING_${name}: has no effect without LOGRING_CLUSTER_PORT`);
  const isNeeded = 'is needed with LOGRING_CLUSTER_PORT';
  return [
    ...needs(port, 'CLUSTER_KEYS', config.CLUSTER_KEYS, isNeeded),
    ...needs(port, 'KAFKA_BROKERS', config.KAFKA_BROKERS, isNeeded),
    ...(WILDCARDS.includes(host)
      ? needs(port, 'CLUSTER_URL', config.CLUSTER_URL, `is needed where LOGRING_CLUSTER_HOST is ${host}`)
      : []),
    ...(config.TLS_CERT !== undefined && url !== undefined && new URL(url).protocol !== 'https:'
      ? [
          'LOGRING_CLUSTER_URL: must begin with https:// where the cluster port has a certificate (LOGRING_TLS_CERT)',
        ]
      : []),
  ];
}
