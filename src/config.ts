/**
 * Configuration: environment variables `LOGRING_*`, declared by area in config/. Every problem is reported at
 * once; a name that isn't declared is refused, as it is most likely a typing error. A value may come from a
 * file: NAME_FILE.
 */

import { readFileSync } from 'node:fs';
import { CLUSTER_SETTINGS, clusterContradictions } from './config/cluster-settings.js';
import { ConfigError } from './config/config-error.js';
import { HTTP_SETTINGS, httpContradictions } from './config/http-settings.js';
import { KAFKA_SETTINGS, kafkaContradictions } from './config/kafka-settings.js';
import { LOG_SETTINGS, logContradictions } from './config/log-settings.js';
import { PROCESS_SETTINGS } from './config/process-settings.js';
import type { Setting, SettingFile, Values } from './config/setting.js';

const AREAS = {
  HTTP: HTTP_SETTINGS,
  Kafka: KAFKA_SETTINGS,
  Cluster: CLUSTER_SETTINGS,
  'Logs and retention': LOG_SETTINGS,
  Process: PROCESS_SETTINGS,
} as const;
const SETTINGS = {
  ...HTTP_SETTINGS,
  ...KAFKA_SETTINGS,
  ...CLUSTER_SETTINGS,
  ...LOG_SETTINGS,
  ...PROCESS_SETTINGS,
} as const;

/** No setting that has a rule takes it. */
const NO_VALUE = '\0';

type SettingName = keyof typeof SETTINGS;
const NAMES = Object.keys(SETTINGS) as SettingName[];

/** The settings by their names without the prefix. */
export type Config = Values<typeof SETTINGS> & {
  /** Of those that came from files. */
  readonly files: Readonly<Partial<Record<SettingName, SettingFile>>>;
};

/** Throws a ConfigError. */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const problems: string[] = [];
  const known = new Set(NAMES.flatMap((name) => [`LOGRING_${name}`, `LOGRING_${name}_FILE`]));
  for (const name of Object.keys(environment)) {
    if (name.startsWith('LOGRING_') && !known.has(name))
      problems.push(`${name}: is not a setting (see --help)`);
  }
  const files: Partial<Record<SettingName, SettingFile>> = {};
  const values: Record<string, unknown> = { files };
  for (const name of NAMES) {
    const { schema, ...setting }: Setting = SETTINGS[name];
    const raw = rawValue(name, environment, files, problems);
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
  problems.push(
    ...kafkaContradictions(config),
    ...clusterContradictions(config),
    ...logContradictions(config),
    ...httpContradictions(config, files),
  );
  if (problems.length > 0) throw new ConfigError(problems);
  return config;
}

function rawValue(
  name: SettingName,
  environment: Readonly<Record<string, string | undefined>>,
  files: Partial<Record<SettingName, SettingFile>>,
  problems: string[],
): string | undefined {
  const value = environment[`LOGRING_${name}`];
  const path = environment[`LOGRING_${name}_FILE`];
  if (path === undefined) return value;
  if (value !== undefined) problems.push(`LOGRING_${name}: is given both as a value and as a file`);
  try {
    const text = readFileSync(path, 'utf8').trim();
    files[name] = { path, text };
    return text;
  } catch (error) {
    problems.push(`LOGRING_${name}_FILE: can't be read: ${(error as Error).message}`);
    return undefined;
  }
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

/** What there is to say of a setting. */
export interface SettingText {
  /** With the prefix. */
  readonly name: string;
  readonly area: string;
  readonly help: string;
  readonly shownDefault: string;
  /** What a value must be; null where any text will do. */
  readonly rule: string | null;
  readonly isSecret: boolean;
}

/** Of all settings, in order. */
export function settingTexts(): SettingText[] {
  return Object.entries(AREAS).flatMap(([area, settings]) =>
    Object.entries(settings).map(([name, setting]: [string, Setting]) => {
      const fallback = setting.schema.safeParse(undefined);
      const refused = setting.schema.safeParse(NO_VALUE);
      return {
        name: `LOGRING_${name}`,
        area,
        help: setting.help,
        shownDefault: String(setting.shownDefault ?? (fallback.success ? (fallback.data ?? 'none') : 'none')),
        rule: refused.success ? null : refused.error.issues[0].message,
        isSecret: setting.secret === true,
      };
    }),
  );
}

/** The table of settings for `--help`. */
export function settingsHelp(): string {
  return settingTexts()
    .map(({ name, help, shownDefault }) => `  ${name.padEnd(30)} ${help} [${shownDefault}]`)
    .join('\n');
}
