/** Configuration: defaults, every problem at once, secrets from files and masked, unknown names refused. */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ConfigError } from '../../src/config/config-error.js';
import { consumerGroup, writesDeadLetters } from '../../src/config/kafka-settings.js';
import { printConfig, readConfig, settingsHelp } from '../../src/config.js';
import { configurationDocument, DOCUMENT } from './configuration-document.js';

function problemsOf(environment: Record<string, string>): readonly string[] {
  try {
    readConfig(environment);
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
  return [];
}

test('an empty environment is a working configuration with the documented defaults', () => {
  expect(readConfig({ PATH: '/bin' })).toMatchObject({
    HOST: '127.0.0.1',
    PORT: 4000,
    DATA_DIR: './logring-data',
    KAFKA_GROUP_ID: 'logring',
    EDGE_TOPIC: 'cloudflare.logs.prod',
    RELAY_TOPIC: 'deno-relay-logs',
    DEAD_LETTER_TOPIC: 'logring.dead-letters',
    CACHE_SECONDS: 900,
    CACHE_WARM_SECONDS: 300,
    DEFAULT_TIER: 'ENTERPRISE',
    LOG_LEVEL: 'info',
  });
});

test('values are read into what they mean', () => {
  const config = readConfig({
    LOGRING_API_KEYS: 'one,two=a|b,dGhyZWU=,Zm91cg==,Zm91cg===a|b',
    LOGRING_KAFKA_BROKERS: 'kafka-1:9092, [::1]:9093',
    LOGRING_PROJECT_TIERS: 'a=FREE,b=PRO',
    LOGRING_KAFKA_SSL: 'true',
  });
  expect(config.API_KEYS).toEqual([
    { key: 'one', projects: null },
    { key: 'two', projects: ['a', 'b'] },
    { key: 'dGhyZWU=', projects: null },
    { key: 'Zm91cg==', projects: null },
    { key: 'Zm91cg==', projects: ['a', 'b'] },
  ]);
  expect(config.KAFKA_BROKERS).toEqual(['kafka-1:9092', '[::1]:9093']);
  expect([...(config.PROJECT_TIERS ?? [])]).toEqual([
    ['a', 'FREE'],
    ['b', 'PRO'],
  ]);
  expect(config.KAFKA_SSL).toBe(true);
});

test('zones: a group each, and the first writes the dead letters', () => {
  const of = (environment: Record<string, string>) => {
    const config = readConfig({ LOGRING_KAFKA_BROKERS: 'kafka:9092', ...environment });
    return [consumerGroup(config), writesDeadLetters(config)];
  };
  expect(of({})).toEqual(['logring', true]);
  expect(of({ LOGRING_ZONE: '', LOGRING_ZONES: '' })).toEqual(['logring', true]);
  expect(of({ LOGRING_ZONE: 'east' })).toEqual(['logring.east', true]);
  const LOGRING_ZONES = 'east, west';
  expect(of({ LOGRING_ZONE: 'east', LOGRING_ZONES })).toEqual(['logring.east', true]);
  expect(of({ LOGRING_ZONE: 'west', LOGRING_ZONES })).toEqual(['logring.west', false]);

  const check = (environment: Record<string, string>, ...problems: string[]) =>
    expect(problemsOf({ LOGRING_KAFKA_BROKERS: 'kafka:9092', ...environment })).toEqual(problems);
  check({ LOGRING_ZONE: 'a.b' }, 'LOGRING_ZONE: must be up to 63 letters, digits, - and _, got "a.b"');
  const rule =
    'LOGRING_ZONES: must be a comma-separated list of different names, each of up to 63 letters, digits, - and _';
  check({ LOGRING_ZONE: 'a', LOGRING_ZONES: 'a,a' }, `${rule}, got "a,a"`);
  check({ LOGRING_ZONE: 'a', LOGRING_ZONES: 'a,' }, `${rule}, got "a,"`);
  check({ LOGRING_ZONE: 'c', LOGRING_ZONES: 'a,b' }, 'LOGRING_ZONE: must be one of LOGRING_ZONES, got "c"');
  check({ LOGRING_ZONES: 'a,b' }, 'LOGRING_ZONE: is needed with LOGRING_ZONES');
  check(
    { LOGRING_ZONE: 'a.b', LOGRING_ZONES: 'a,b' },
    'LOGRING_ZONE: must be up to 63 letters, digits, - and _, got "a.b"',
  );
  expect(problemsOf({ LOGRING_ZONE: 'a' })).toEqual([
    'LOGRING_ZONE: has no effect without LOGRING_KAFKA_BROKERS',
  ]);
});

test('what is not valid is told once, and nothing that only follows from it', () => {
  const problems = problemsOf({
    LOGRING_LOGS_ALL_ID: 'one',
    LOGRING_API_COUNTS_ID: 'two',
    LOGRING_KAFKA_SSL: 'maybe',
    LOGRING_KAFKA_SSL_CA: '-----BEGIN CERTIFICATE-----',
  });
  expect(problems.filter((problem) => /different UUIDs|has no effect/.test(problem))).toEqual([]);
  expect(problems.map((problem) => problem.split(':')[0])).toEqual(
    expect.arrayContaining(['LOGRING_LOGS_ALL_ID', 'LOGRING_API_COUNTS_ID', 'LOGRING_KAFKA_SSL']),
  );
});

test('members: a port, keys, brokers, and an address that the others can ask', () => {
  const member = {
    LOGRING_KAFKA_BROKERS: 'kafka:9092',
    LOGRING_CLUSTER_PORT: '4100',
    LOGRING_CLUSTER_KEYS: 'new,old',
  };
  const check = (environment: Record<string, string>, ...problems: string[]) =>
    expect(problemsOf(environment)).toEqual(problems);
  check(member);
  check({ ...member, LOGRING_CLUSTER_HOST: '0.0.0.0', LOGRING_CLUSTER_URL: 'http://logring-0:4100' });
  check(
    { LOGRING_CLUSTER_PORT: '4100' },
    'LOGRING_CLUSTER_KEYS: is needed with LOGRING_CLUSTER_PORT',
    'LOGRING_KAFKA_BROKERS: is needed with LOGRING_CLUSTER_PORT',
  );
  check({ LOGRING_CLUSTER_KEYS: 'a' }, 'LOGRING_CLUSTER_KEYS: has no effect without LOGRING_CLUSTER_PORT');
  check(
    { ...member, LOGRING_CLUSTER_HOST: '::' },
    'LOGRING_CLUSTER_URL: is needed where LOGRING_CLUSTER_HOST is ::',
  );
});

test('all problems come at once, each with its rule and what was given, but no secret', () => {
  expect(
    problemsOf({
      LOGRING_PORT: '70000',
      LOGRING_HOSTT: 'x',
      LOGRING_DEFAULT_TIER: 'free',
      LOGRING_API_KEYS: 'sécret',
      LOGRING_KAFKA_BROKERS: 'kafka',
      LOGRING_EDGE_TOPIC: 'deno-relay-logs',
      LOGRING_KAFKA_SASL_MECHANISM: 'plain',
    }),
  ).toEqual([
    'LOGRING_HOSTT: is not a setting (see --help)',
    'LOGRING_PORT: must be a whole number from 0 to 65535, got "70000"',
    'LOGRING_API_KEYS: must be a comma-separated list of key or key=projectA|projectB, keys in printable ASCII, with = at their end only',
    'LOGRING_KAFKA_BROKERS: must be a comma-separated list of host:port, got "kafka"',
    'LOGRING_DEFAULT_TIER: must be one of FREE, PRO, PAYG, ENTERPRISE, got "free"',
    'LOGRING_KAFKA_SASL_USERNAME: is needed with a SASL mechanism',
    'LOGRING_KAFKA_SASL_PASSWORD: is needed with a SASL mechanism',
    'LOGRING_EDGE_TOPIC, LOGRING_RELAY_TOPIC, LOGRING_DEAD_LETTER_TOPIC: must be three different topics',
  ]);
});

test('an empty key, an empty project, an empty list and a = amid a key are refused', () => {
  for (const keys of ['', 'a,', '=', 'a=b|', '=b', 'a=b=', 'a=b=c', 'a=b|c=d']) {
    expect(problemsOf({ LOGRING_API_KEYS: keys })).toHaveLength(1);
  }
  expect(problemsOf({ LOGRING_API_KEYS: 'good,b ad,c' })).toEqual([
    expect.stringMatching(/; number 2 is not$/),
  ]);
  expect(problemsOf({ LOGRING_INGEST_KEYS: 'a,b=p' })).toEqual([
    'LOGRING_INGEST_KEYS: a key that is limited to projects may not post logs',
  ]);
});

test('a value may come from a file, without its last line end, but not from two places', () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-config-'));
  const file = join(directory, 'key');
  writeFileSync(file, 'from-file\n');
  expect(readConfig({ LOGRING_API_KEYS_FILE: file }).API_KEYS).toEqual([
    { key: 'from-file', projects: null },
  ]);
  expect(problemsOf({ LOGRING_API_KEYS_FILE: file, LOGRING_API_KEYS: 'a' })).toEqual([
    'LOGRING_API_KEYS: is given both as a value and as a file',
  ]);
  expect(problemsOf({ LOGRING_API_KEYS_FILE: join(directory, 'none') })[0]).toMatch(
    /^LOGRING_API_KEYS_FILE: can't be read: ENOENT/,
  );
  rmSync(directory, { recursive: true });
});

test('the printed configuration masks secrets and is complete', () => {
  const printed = printConfig(
    readConfig({
      LOGRING_API_KEYS: 'secret-1',
      LOGRING_KAFKA_SASL_PASSWORD: 'secret-2',
      LOGRING_KAFKA_SASL_USERNAME: 'u',
      LOGRING_KAFKA_SASL_MECHANISM: 'plain',
    }),
  );
  expect(printed).not.toMatch(/secret/);
  expect(printed).toContain('LOGRING_API_KEYS=********');
  expect(printed).toContain('LOGRING_PORT=4000');
  for (const line of printed.split('\n')) expect(settingsHelp()).toContain(line.split('=')[0]);
});

test('the document of the configuration is what its settings say: npm run docs:configuration', () => {
  expect(readFileSync(DOCUMENT, 'utf8')).toBe(configurationDocument());
});
