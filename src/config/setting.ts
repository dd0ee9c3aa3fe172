/** What a setting is, and the kinds of values that settings of several areas have. */

import { z } from 'zod';

export interface Setting {
  readonly schema: z.ZodType<unknown, string | undefined>;
  readonly help: string;
  /** How the default reads in the help, where it isn't a plain value. */
  readonly shownDefault?: string;
  readonly secret?: true;
}

/** Of settings that came from files, by their names without the prefix. */
export type SettingFiles = Readonly<Record<string, SettingFile | undefined>>;

export interface SettingFile {
  readonly path: string;
  /** What it held at the start. */
  readonly text: string;
}

/** What settings are read into. */
export type Values<Settings extends Readonly<Record<string, Setting>>> = {
  readonly [Name in keyof Settings]: z.output<Settings[Name]['schema']>;
};

export const text = z.string().min(1, 'must not be empty');

export const flag = z
  .enum(['true', 'false', '1', '0'], 'must be true or false')
  .transform((value) => value === 'true' || value === '1');

export function integer(minimum: number, maximum: number) {
  const rule = `must be a whole number from ${minimum} to ${maximum}`;
  return z
    .string()
    .regex(/^\d{1,9}$/, rule)
    .transform(Number)
    .refine((value) => value >= minimum && value <= maximum, rule);
}

/** The parts between commas. */
export function list(value: string): string[] {
  return value.split(',').map((part) => part.trim());
}

/** The problem of a setting that lacks another one, if it does. */
export function needs(given: unknown, name: string, needed: unknown, rule: string): string[] {
  return given !== undefined && needed === undefined ? [`LOGRING_${name}: ${rule}`] : [];
}

/** The problem of a setting that should hold PEM, if it does not: most likely a path was given. */
export function needsPem(name: string, value: string | undefined, path?: string): string[] {
  if (value?.includes('-----BEGIN') !== false) return [];
  return path === undefined
    ? [`LOGRING_${name}: must be PEM; for a path use LOGRING_${name}_FILE`]
    : [`LOGRING_${name}_FILE: ${path} is not PEM`];
}
