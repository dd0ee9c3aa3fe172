/** The settings of the connection to Kafka. */

import { z } from 'zod';
import { flag, list, needs, needsPem, type Setting, text, type Values } from './setting.js';

const brokers = z.string().transform((value, context): string[] => {
  const addresses = list(value);
  if (!addresses.every((address) => /^[^\s:]+:\d{1,5}$|^\[[0-9a-fA-F:]+\]:\d{1,5}$/.test(address))) {
    context.addIssue('must be a comma-separated list of host:port');
  }
  return addresses;
});

/** Up to 63 of them, so that a pod's name is one. */
const ZONE = /^[A-Za-z0-9_-]{1,63}$/;
const zone = z
  .string()
  .refine((name) => name === '' || ZONE.test(name), 'must be up to 63 letters, digits, - and _');
const zones = z
  .string()
  .transform((value) => (value === '' ? undefined : list(value)))
  .refine(
    (names = []) => new Set(names).size === names.length && names.every((name) => ZONE.test(name)),
    'must be a comma-separated list of different names, each of up to 63 letters, digits, - and _',
  );

export const KAFKA_SETTINGS = {
  KAFKA_BROKERS: {
    schema: brokers.optional(),
    help: 'comma-separated host:port of the brokers',
    shownDefault: 'none: the embedded log',
  },
  KAFKA_GROUP_ID: {
    schema: text.default('logring'),
    help: 'consumer group: of one Logring, or of its members; if LOGRING_ZONE is set, a dot and the zone are appended',
  },
  ZONE: {
    schema: zone.default(''),
    help: 'which of several complete copies of the data this Logring keeps',
    shownDefault: 'none: the only one',
  },
  ZONES: {
    schema: zones.optional(),
    help: 'comma-separated names of all zones; the first of them writes the dead letters',
    shownDefault: 'LOGRING_ZONE',
  },
  KAFKA_SSL: { schema: flag.default(false), help: 'TLS to the brokers' },
  KAFKA_SSL_CA: {
    schema: text.optional(),
    help: 'certificate authority of the brokers, PEM; with LOGRING_KAFKA_SSL',
  },
  KAFKA_SSL_CERT: { schema: text.optional(), help: 'client certificate, PEM; with LOGRING_KAFKA_SSL' },
  KAFKA_SSL_KEY: { schema: text.optional(), help: 'key of the client certificate, PEM', secret: true },
  KAFKA_SASL_MECHANISM: {
    schema: z
      .enum(['plain', 'scram-sha-256', 'scram-sha-512'], 'must be plain, scram-sha-256 or scram-sha-512')
      .optional(),
    help: 'plain, scram-sha-256 or scram-sha-512',
  },
  KAFKA_SASL_USERNAME: { schema: text.optional(), help: 'SASL user' },
  KAFKA_SASL_PASSWORD: { schema: text.optional(), help: 'SASL password', secret: true },
} as const satisfies Record<string, Setting>;

const PEM_NAMES = ['KAFKA_SSL_CA', 'KAFKA_SSL_CERT', 'KAFKA_SSL_KEY'] as const;

export function kafkaContradictions(config: Values<typeof KAFKA_SETTINGS>): string[] {
  const { KAFKA_SASL_MECHANISM: mechanism, KAFKA_SASL_USERNAME: user } = config;
  const isMissing = 'is needed with a SASL mechanism';
  return [
    ...needs(mechanism, 'KAFKA_SASL_USERNAME', user, isMissing),
    ...needs(mechanism, 'KAFKA_SASL_PASSWORD', config.KAFKA_SASL_PASSWORD, isMissing),
    ...needs(user, 'KAFKA_SASL_MECHANISM', mechanism, 'is needed with a SASL user'),
    ...needs(
      config.KAFKA_SSL_CERT,
      'KAFKA_SSL_KEY',
      config.KAFKA_SSL_KEY,
      'is needed with a client certificate',
    ),
    ...needs(config.KAFKA_SSL_KEY, 'KAFKA_SSL_CERT', config.KAFKA_SSL_CERT, 'is needed with a client key'),
    // One that is not valid is told already.
    ...PEM_NAMES.filter((name) => config.KAFKA_SSL === false && config[name] !== undefined).map(
      (name) => `LOGRING_${name}: has no effect without LOGRING_KAFKA_SSL=true`,
    ),
    ...PEM_NAMES.flatMap((name) => needsPem(name, config[name])),
    ...zoneContradictions(config),
  ];
}

function zoneContradictions({ KAFKA_BROKERS, ZONE, ZONES }: Values<typeof KAFKA_SETTINGS>): string[] {
  // One that is not valid is told already.
  if ((ZONE as string | undefined) === undefined) return [];
  if (ZONES !== undefined && ZONE === '') return ['LOGRING_ZONE: is needed with LOGRING_ZONES'];
  if (ZONES !== undefined && !ZONES.includes(ZONE))
    return [`LOGRING_ZONE: must be one of LOGRING_ZONES, got ${JSON.stringify(ZONE)}`];
  if (ZONE !== '' && KAFKA_BROKERS === undefined)
    return ['LOGRING_ZONE: has no effect without LOGRING_KAFKA_BROKERS'];
  return [];
}

/** The consumer group of this zone: each reads all of the topics. */
export function consumerGroup({ KAFKA_GROUP_ID, ZONE }: Values<typeof KAFKA_SETTINGS>): string {
  return ZONE === '' ? KAFKA_GROUP_ID : `${KAFKA_GROUP_ID}.${ZONE}`;
}

/** Of all zones, this one's included. */
export function zoneGroups(config: Values<typeof KAFKA_SETTINGS>): { zone: string; groupId: string }[] {
  const names = config.ZONES ?? [config.ZONE];
  return names.map((zone) => ({ zone, groupId: consumerGroup({ ...config, ZONE: zone }) }));
}

/** All zones find the same dead letters: one of them writes them. */
export function writesDeadLetters({ ZONE, ZONES }: Values<typeof KAFKA_SETTINGS>): boolean {
  return ZONES === undefined || ZONES[0] === ZONE;
}
