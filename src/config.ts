/**
 * Configuration: environment variables `LOGRING_*`, each declared once below. Every problem is reported at once; a
 * name that isn't declared is refused, as it is most likely a typing error. A value may come from a file: NAME_FILE.
 */

import { readFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { z } from 'zod';

const TIERS = ['FREE', 'PRO', 'PAYG', 'ENTERPRISE'] as const;
export type Tier = (typeof TIERS)[number];

export interface ApiKey {
  readonly key: string;
  /** The projects that the key is limited to; null for all. */
  readonly projects: readonly string[] | null;
}

const text = z.string().min(1, 'must not be empty');

function integer(minimum: number, maximum: number) {
  const rule = `must be a whole number from ${minimum} to ${maximum}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, rule)
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, rule);
}

const flag = z
  .enum(['true', 'false', '1', '0'], 'must be true or false')
  .transform((value) => value === 'true' || value === '1');

function list(value: string): string[] {
  return value.split(',').map((part) => part.trim());
}

const apiKeys = z.string().transform((value, context): ApiKey[] =>
  list(value).flatMap((part) => {
    const equals = part.indexOf('=');
    const key = equals < 0 ? part : part.slice(0, equals);
    const projects = equals < 0 ? null : part.slice(equals + 1).split('|');
    if (/^[\x21-\x7e]+$/.test(key) && (projects === null || projects.every((project) => project !== ''))) {
      return [{ key, projects }];
    }
    context.addIssue(
      'must be a comma-separated list of key or key=projectA|projectB, keys in printable ASCII',
    );
    return [];
  }),
);

const brokers = z.string().transform((value, context): string[] => {
  const addresses = list(value);
  if (!addresses.every((address) => /^[^\s:]+:\d{1,5}$|^\[[0-9a-fA-F:]+\]:\d{1,5}$/.test(address))) {
    context.addIssue('must be a comma-separated list of host:port');
  }
  return addresses;
});

const topic = z
  .string()
  .regex(/^[a-zA-Z0-9._-]{1,249}$/, 'must be a Kafka topic name: 1 to 249 of a-z A-Z 0-9 . _ -')
  .refine((name) => name !== '.' && name !== '..', 'must not be . or ..');

const projectTiers = z.string().transform((value, context): ReadonlyMap<string, Tier> => {
  const tiers = new Map<string, Tier>();
  for (const part of list(value)) {
    const equals = part.lastIndexOf('=');
    const tier = z.enum(TIERS).safeParse(part.slice(equals + 1));
    if (equals > 0 && tier.success) tiers.set(part.slice(0, equals), tier.data);
    else context.addIssue(`must be a comma-separated list of project=TIER, TIER one of ${TIERS.join(', ')}`);
  }
  return tiers;
});

const origins = z.string().transform((value, context): string[] => {
  const parts = list(value);
  if (
    !parts.every((origin) => origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin))
  ) {
    context.addIssue('must be a comma-separated list of origins such as https://example.com, or *');
  }
  return parts;
});

interface Setting {
  readonly schema: z.ZodType<unknown, string | undefined>;
  readonly help: string;
  /** How the default reads in the help, where it isn't a plain value. */
  readonly shownDefault?: string;
  readonly secret?: true;
}

const quarterOfMemoryMb = Math.max(64, Math.floor(totalmem() / 4 / 1024 / 1024));

const SETTINGS = {
  HOST: { schema: text.default('127.0.0.1'), help: 'address that HTTP listens on' },
  PORT: { schema: integer(0, 65535).default(4000), help: 'port that HTTP listens on; 0 is any free one' },
  DATA_DIR: { schema: text.default('./logring-data'), help: 'directory of the store; one process at a time' },
  API_KEYS: {
    schema: apiKeys.optional(),
    help: 'comma-separated keys that may query; key or key=projectA|projectB',
    shownDefault: 'made at start and printed',
    secret: true,
  },
  INGEST_KEYS: {
    schema: apiKeys.optional(),
    help: 'keys that may post logs, where they differ',
    shownDefault: 'LOGRING_API_KEYS',
    secret: true,
  },
  KAFKA_BROKERS: {
    schema: brokers.optional(),
    help: 'comma-separated host:port of the brokers',
    shownDefault: 'none: the embedded log',
  },
  KAFKA_GROUP_ID: { schema: text.default('logring'), help: 'consumer group; one for each Logring' },
  KAFKA_SSL: { schema: flag.default(false), help: 'TLS to the brokers' },
  KAFKA_SSL_CA: { schema: text.optional(), help: 'certificate authority of the brokers, PEM' },
  KAFKA_SSL_CERT: { schema: text.optional(), help: 'client certificate, PEM' },
  KAFKA_SSL_KEY: { schema: text.optional(), help: 'key of the client certificate, PEM', secret: true },
  KAFKA_SASL_MECHANISM: {
    schema: z
      .enum(['plain', 'scram-sha-256', 'scram-sha-512'], 'must be plain, scram-sha-256 or scram-sha-512')
      .optional(),
    help: 'plain, scram-sha-256 or scram-sha-512',
  },
  KAFKA_SASL_USERNAME: { schema: text.optional(), help: 'SASL user' },
  KAFKA_SASL_PASSWORD: { schema: text.optional(), help: 'SASL password', secret: true },
  EDGE_TOPIC: {
    schema: topic.default('cloudflare.logs.prod'),
    help: 'topic, or source_name, of edge request logs',
  },
  RELAY_TOPIC: {
    schema: topic.default('deno-relay-logs'),
    help: 'topic, or source_name, of function relay logs',
  },
  DEAD_LETTER_TOPIC: {
    schema: topic.default('logring.dead-letters'),
    help: 'topic for records that cannot be used',
  },
  CACHE_SECONDS: { schema: integer(0, 86400).default(900), help: 'how long a result is cached; 0 is live' },
  CACHE_WARM_SECONDS: {
    schema: integer(0, 86400).default(300),
    help: 'how often a cached result is computed again; 0 is never',
  },
  DEFAULT_TIER: {
    schema: z.enum(TIERS, `must be one of ${TIERS.join(', ')}`).default('ENTERPRISE'),
    help: 'retention of entries whose project has no known tier',
  },
  PROJECT_TIERS: {
    schema: projectTiers.optional(),
    help: 'comma-separated project=TIER, for entries that name no tier themselves',
  },
  MEMORY_BUDGET_MB: {
    schema: integer(64, 1_048_576).default(quarterOfMemoryMb),
    help: 'memory that ingest may hold before it pauses; a quarter of it at most caches row blocks',
    shownDefault: "a quarter of the machine's",
  },
  MAX_LAG_RECORDS: {
    schema: integer(0, 999_999_999).default(100_000),
    help: 'records behind the log above which /readyz says no',
  },
  CORS_ORIGINS: { schema: origins.optional(), help: 'comma-separated origins whose pages may call, or *' },
  LOGS_ALL_ID: {
    schema: z.guid('must be a UUID').default('1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a01'),
    help: 'UUID of logs.all',
  },
  INVOCATION_STATS_ID: {
    schema: z.guid('must be a UUID').default('1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a02'),
    help: 'UUID of functions.invocation-stats',
  },
  API_COUNTS_ID: {
    schema: z.guid('must be a UUID').default('1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a03'),
    help: 'UUID of usage.api-counts',
  },
  HTTP_BACKEND: {
    schema: z.enum(['auto', 'uws', 'node'], 'must be auto, uws or node').default('auto'),
    help: 'HTTP server: uws (uWebSockets.js), node, or whichever loads',
  },
  LOG_LEVEL: {
    schema: z
      .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], 'must be a level of pino')
      .default('info'),
    help: 'fatal, error, warn, info, debug, trace or silent',
  },
} as const satisfies Record<string, Setting>;

type SettingName = keyof typeof SETTINGS;
const NAMES = Object.keys(SETTINGS) as SettingName[];

/** The settings by their names without the prefix. */
export type Config = { readonly [Name in SettingName]: z.output<(typeof SETTINGS)[Name]['schema']> };

/** Lists every problem of a configuration, one a line. */
export class ConfigError extends Error {
  override name = 'ConfigError';
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(
      `the configuration has ${problems.length === 1 ? 'a problem' : `${problems.length} problems`}:\n${problems.map((problem) => `  ${problem}`).join('\n')}`,
    );
    this.problems = problems;
  }
}

/** Throws a ConfigError. */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = [];
  const known = new Set(NAMES.flatMap((name) => [`LOGRING_${name}`, `LOGRING_${name}_FILE`]));
  for (const name of Object.keys(environment)) {
    if (name.startsWith('LOGRING_') && !known.has(name))
      problems.push(`${name}: is not a setting (see --help)`);
  }
  const values: Record<string, unknown> = {};
  for (const name of NAMES) {
    const { schema, ...setting }: Setting = SETTINGS[name];
    const raw = rawValue(name, environment, problems);
    const result = schema.safeParse(raw);
    if (result.success) {
      values[name] = result.data;
      continue;
    }
    const got = setting.secret || raw === undefined ? '' : `, got ${JSON.stringify(raw)}`;
    problems.push(
      `LOGRING_${name}: ${[...new Set(result.error.issues.map((issue) => issue.message))].join('; ')}${got}`,
    );
  }
  const config = values as Config;
  problems.push(...contradictions(config));
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

function rawValue(
  name: SettingName,
  environment: Readonly<Record<string, string | undefined>>,
  problems: string[],
): string | undefined {
  const value = environment[`LOGRING_${name}`];
  const file = environment[`LOGRING_${name}_FILE`];
  if (file === undefined) return value;
  if (value !== undefined) problems.push(`LOGRING_${name}: is given both as a value and as a file`);
  try {
    return readFileSync(file, 'utf8').trim();
  } catch (error) {
    problems.push(`LOGRING_${name}_FILE: can't be read: ${(error as Error).message}`);
    return undefined;
  }
}

function contradictions(config: Config): string[] {
  const problems: string[] = [];
  const needs = (given: unknown, name: string, needed: unknown, rule: string) => {
    if (given !== undefined && needed === undefined) problems.push(`LOGRING_${name}: ${rule}`);
  };
  needs(
    config.KAFKA_SASL_MECHANISM,
    'KAFKA_SASL_USERNAME',
    config.KAFKA_SASL_USERNAME,
    'is needed with a SASL mechanism',
  );
  needs(
    config.KAFKA_SASL_MECHANISM,
    'KAFKA_SASL_PASSWORD',
    config.KAFKA_SASL_PASSWORD,
    'is needed with a SASL mechanism',
  );
  needs(
    config.KAFKA_SASL_USERNAME,
    'KAFKA_SASL_MECHANISM',
    config.KAFKA_SASL_MECHANISM,
    'is needed with a SASL user',
  );
  needs(config.KAFKA_SSL_CERT, 'KAFKA_SSL_KEY', config.KAFKA_SSL_KEY, 'is needed with a client certificate');
  needs(config.KAFKA_SSL_KEY, 'KAFKA_SSL_CERT', config.KAFKA_SSL_CERT, 'is needed with a client key');
  if (!config.KAFKA_SSL) {
    for (const name of ['KAFKA_SSL_CA', 'KAFKA_SSL_CERT', 'KAFKA_SSL_KEY'] as const) {
      if (config[name] !== undefined)
        problems.push(`LOGRING_${name}: is of no use without LOGRING_KAFKA_SSL=true`);
    }
  }
  for (const name of ['KAFKA_SSL_CA', 'KAFKA_SSL_CERT', 'KAFKA_SSL_KEY'] as const) {
    if (config[name]?.includes('-----BEGIN') === false)
      problems.push(`LOGRING_${name}: must be PEM; for a path use LOGRING_${name}_FILE`);
  }
  const topics = [config.EDGE_TOPIC, config.RELAY_TOPIC, config.DEAD_LETTER_TOPIC].filter(
    (name) => name !== undefined,
  );
  if (new Set(topics).size < topics.length) {
    problems.push(
      'LOGRING_EDGE_TOPIC, LOGRING_RELAY_TOPIC, LOGRING_DEAD_LETTER_TOPIC: must be three different topics',
    );
  }
  const ids = [config.LOGS_ALL_ID, config.INVOCATION_STATS_ID, config.API_COUNTS_ID].map((id) =>
    id?.toLowerCase(),
  );
  if (new Set(ids).size < ids.length) {
    problems.push(
      'LOGRING_LOGS_ALL_ID, LOGRING_INVOCATION_STATS_ID, LOGRING_API_COUNTS_ID: must be three different UUIDs',
    );
  }
  return problems;
}

/** The configuration as `NAME=value` lines, secrets masked. */
export function printConfig(config: Config): string {
  return NAMES.map((name) => {
    const { secret }: Setting = SETTINGS[name];
    const value = config[name];
    if (value === undefined) return `LOGRING_${name}=`;
    return `LOGRING_${name}=${secret ? '********' : shown(value)}`;
  }).join('\n');
}

function shown(value: unknown): string {
  if (value instanceof Map) return [...value].map(([project, tier]) => `${project}=${tier}`).join(',');
  return String(value);
}

/** The table of settings for `--help`. */
export function settingsHelp(): string {
  return NAMES.map((name) => {
    const setting: Setting = SETTINGS[name];
    const fallback = setting.schema.safeParse(undefined);
    const value = setting.shownDefault ?? (fallback.success ? (fallback.data ?? 'none') : 'none');
    return `  ${`LOGRING_${name}`.padEnd(30)} ${setting.help} [${value}]`;
  }).join('\n');
}
