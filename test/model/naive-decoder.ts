/**
 * A second decoder, written from the contract with JSON.parse and nothing of ingest: what the model is fed
 * with.
 */

import type { ModelEdgeEntry, ModelRelayEntry } from './model.js';
import { daysOfTier } from './model.js';

const HOUR_US = 3_600_000_000;
const DAY_US = 24 * HOUR_US;

export interface NaiveRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly timestampMs: number;
  readonly value: Uint8Array | null;
  readonly projectTier: string | null;
  readonly unreadable?: string | null;
}

/** What became of one element of a record: an entry, or the reason why there isn't one. */
export type NaiveElement<Entry> = { readonly entry: Entry } | { readonly reason: string };

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type JsonObject = { [name: string]: Json };

/** What a reader of one kind makes of an element: an entry, or why there isn't one. */
type Reading<Entry> = Entry | 'missing-project' | 'name-too-long';

interface Common {
  readonly timestampUs: number;
  readonly object: JsonObject;
  readonly raw: ReadonlyMap<string, string>;
  readonly metadata: JsonObject | null;
  readonly index: number;
}

/** `urlFromPath`: an entry without a URL has one of its project and path. */
export function decodeEdgeNaively(
  record: NaiveRecord,
  nowUs: number,
  urlFromPath = false,
): NaiveElement<ModelEdgeEntry>[] {
  return decode(record, nowUs, ({ timestampUs, object, raw, index }) => {
    const project = textOrNull(object.project);
    if (isTooLong(project)) return 'name-too-long';
    if (project === null || project === '') return 'missing-project';
    const numberId = typeof object.id === 'number' ? raw.get('id')! : null;
    const id =
      textOrNull(object.id) ?? numberId ?? `${record.topic}/${record.partition}/${record.offset}/${index}`;
    const messages = [object.event_message, object.message, object.log, object.msg];
    const message = messages.find((value) => typeof value === 'string') ?? null;
    const metadata = firstObject(object.metadata);
    const request = firstObject(metadata?.request);
    const statusCode = firstObject(metadata?.response)?.status_code;
    const path = textOrNull(request?.path);
    const madeUrl =
      urlFromPath && path !== null ? `https://${project}${path.startsWith('/') ? path : `/${path}`}` : null;
    const url = textOrNull(request?.url) ?? madeUrl;
    const tier = textOrNull(object.project_tier) || record.projectTier || 'ENTERPRISE';
    const row =
      `{"id":${JSON.stringify(id)},"timestamp":${timestampUs},` +
      `"event_message":${JSON.stringify(message)},"metadata":${raw.get('metadata') ?? 'null'}}`;
    return {
      timestampUs,
      project: wellFormed(project),
      keptDays: daysOfTier(tier),
      idHash: fnv1a(id),
      row: Buffer.from(row),
      url: url === null ? null : wellFormed(url),
      path: path ?? (url === null ? '' : pathOf(url)),
      statusCode: isStatus(statusCode) ? Number(statusCode) : 0,
    };
  });
}

export function decodeRelayNaively(record: NaiveRecord, nowUs: number): NaiveElement<ModelRelayEntry>[] {
  return decode(record, nowUs, ({ timestampUs, metadata }) => {
    const project = textOrNull(metadata?.project_ref);
    if (isTooLong(project) || isTooLong(textOrNull(metadata?.function_id))) return 'name-too-long';
    if (project === null || project === '') return 'missing-project';
    const statusCode = firstObject(metadata?.response)?.status_code;
    const executionTimeMs = metadata?.execution_time_ms;
    return {
      timestampUs,
      project: wellFormed(project),
      functionId: textOrNull(metadata?.function_id) || null,
      statusCode: isStatus(statusCode) ? Number(statusCode) : 0,
      executionTimeMs:
        typeof executionTimeMs === 'number' && Number.isFinite(executionTimeMs) ? executionTimeMs : null,
    };
  });
}

function decode<Entry extends object>(
  record: NaiveRecord,
  nowUs: number,
  read: (common: Common) => Reading<Entry>,
): NaiveElement<Entry>[] {
  if (record.unreadable) return [{ reason: record.unreadable }];
  if (record.value === null) return [{ reason: 'empty' }];
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true })
      .decode(record.value)
      .replace(/^[ \t\r\n]+|[ \t\r\n]+$/g, '');
  } catch {
    return [{ reason: 'not-json' }];
  }
  if (text === '') return [{ reason: 'empty' }];
  if (text.startsWith('[') && !isCuttable(text)) return [{ reason: 'not-json' }];
  const elements = text.startsWith('[') ? elementTexts(text) : [text];
  return elements.map((text, index) => {
    const object = parse(text);
    if (object === undefined) return { reason: 'not-json' };
    if (!isObject(object)) return { reason: 'not-an-object' };
    const raw = memberTexts(text);
    const metadata = firstObject(object.metadata);
    const times = ['timestamp', 'date', '@timestamp', 'time'];
    const name = times.find((one) => Object.hasOwn(object, one) && object[one] !== null) ?? '';
    const timestampUs = readTimestamp(object[name], raw.get(name), record.timestampMs);
    const entry = read({ timestampUs: timestampUs ?? 0, object, raw, metadata, index });
    if (typeof entry === 'string') return { reason: entry };
    if (depthOf(raw.get('metadata') ?? '') > 100) return { reason: 'nested-too-deep' };
    if (timestampUs === null) return { reason: 'invalid-timestamp' };
    if (timestampUs < nowUs - 90 * DAY_US) return { reason: 'too-old' };
    if (timestampUs > nowUs + HOUR_US) return { reason: 'too-far-ahead' };
    return { entry };
  });
}

/** undefined for what is no JSON. */
function parse(text: string): Json | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A name of more than 1,024 bytes. */
function isTooLong(name: string | null): boolean {
  return name !== null && Buffer.byteLength(name) > 1_024;
}

/** A safe integer, or its decimal digits in a string. */
function isStatus(value: Json | undefined): boolean {
  if (typeof value === 'string' && !/^(0|-?[1-9]\d*)$/.test(value)) return false;
  return (typeof value === 'string' || typeof value === 'number') && Number.isSafeInteger(Number(value));
}

/** Brackets within brackets of JSON text. */
function depthOf(text: string): number {
  let depth = 0;
  let deepest = 0;
  for (const { 0: token } of text.matchAll(TOKEN)) {
    if (token === '{' || token === '[') depth += 1;
    if (token === '}' || token === ']') depth -= 1;
    deepest = Math.max(deepest, depth);
  }
  return deepest;
}

function wellFormed(text: string): string {
  return Buffer.from(text).toString();
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Of an array, its first element, as BigQuery's export nests objects at every level. */
function firstObject(value: Json | undefined): JsonObject | null {
  const first = Array.isArray(value) ? value[0] : value;
  return isObject(first) ? first : null;
}

function textOrNull(value: Json | undefined): string | null {
  return typeof value === 'string' ? value : null;
}

/** Microseconds; null when the value is none of the forms. */
function readTimestamp(value: Json | undefined, raw: string | undefined, recordMs: number): number | null {
  if (value === undefined || value === null) return recordMs * 1_000;
  const number = /^-?(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(typeof value === 'string' ? value : raw!);
  if (number !== null)
    return numberToUs(number[0].startsWith('-'), number[1], number[2] ?? '', Number(number[3] ?? 0));
  if (typeof value !== 'string') return null;
  const iso = /^(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:?\d\d)?$/.exec(value);
  if (iso === null) return null;
  const wholeMs = Date.parse(`${iso[1].replace(' ', 'T')}${iso[3] ?? 'Z'}`);
  if (Number.isNaN(wholeMs)) return null;
  return wholeMs * 1_000 + Number((iso[2] ?? '').padEnd(6, '0').slice(0, 6));
}

/** A decimal number in seconds to nanoseconds, told apart by its size, as a whole number of microseconds. */
function numberToUs(negative: boolean, whole: string, fraction: string, exponent: number): number {
  const scaled = BigInt(whole + fraction) * 10n ** BigInt(Math.max(0, exponent - fraction.length));
  const size = scaled / 10n ** BigInt(Math.max(0, fraction.length - exponent));
  const perUnit = size < 10n ** 11n ? 1_000_000n : size < 10n ** 14n ? 1_000n : 1n;
  const perThousand = size < 10n ** 17n ? 1n : 1_000n;
  const us = (scaled * perUnit) / perThousand / 10n ** BigInt(Math.max(0, fraction.length - exponent));
  return negative ? -Number(us) : Number(us);
}

function pathOf(url: string): string {
  const afterScheme = url.replace(/^(?:[a-z][a-z0-9+.-]*:)?\/\/[^/?#]*/i, '');
  return afterScheme.replace(/[?#].*$/s, '');
}

function fnv1a(text: string): number {
  let hash = 2_166_136_261;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 16_777_619) >>> 0;
  return hash;
}

const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s"[\]{},:]+/gs;

/**
 * Whether an array that may hold broken elements can still be cut at its commas: its brackets and strings
 * match.
 */
function isCuttable(text: string): boolean {
  let brackets = text.replace(/"(?:[^"\\]|\\.)*"/gs, '').replace(/[^[\]{}"\\]/g, '');
  for (let before = ''; before !== brackets; ) {
    before = brackets;
    brackets = brackets.replace(/\[\]|\{\}/g, brackets.length > 2 ? '' : '$&');
  }
  return brackets === '[]' && text.endsWith(']');
}

/** The texts of the elements of an array. */
function elementTexts(text: string): string[] {
  return partTexts(text).map((part) => part.value);
}

/** The texts of an object's member values as they were written; of members with one name, the last. */
function memberTexts(text: string): Map<string, string> {
  return new Map(partTexts(text).map(({ name, value }) => [JSON.parse(name), value]));
}

/**
 * Cuts valid JSON, an object or an array, at its own commas and colons; also an array with broken elements.
 */
function partTexts(text: string): { name: string; value: string }[] {
  const parts: { name: string; value: string }[] = [];
  let depth = 0;
  let name = '';
  let start = -1;
  let end = -1;
  for (const { 0: token, index } of text.matchAll(TOKEN)) {
    if (token === '}' || token === ']') depth -= 1;
    if (depth === 1 && token === ':') {
      name = text.slice(start, end);
      start = -1;
    } else if ((depth === 1 && token === ',') || depth === 0) {
      const isEmptyElement = text.startsWith('[') && start < 0 && (token === ',' || parts.length > 0);
      if (start >= 0) parts.push({ name, value: text.slice(start, end) });
      else if (isEmptyElement) parts.push({ name, value: '' });
      start = -1;
    } else {
      if (start < 0) start = index;
      end = index + token.length;
    }
    if (token === '{' || token === '[') depth += 1;
  }
  return parts;
}
