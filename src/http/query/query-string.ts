/** Decodes query strings in form encoding: `a=b&c=d`, `+` for a space, percent-encoded UTF-8. */

import type { DecodedQuery, ParameterProblem } from '../../endpoints/call-parameters.js';
import { quoted } from '../../quoted.js';
import {
  QUERY_PARAMETER_LIMIT,
  REMEMBERED_PARAMETER_COUNT,
  REMEMBERED_QUERY_COUNT,
  REMEMBERED_QUERY_LENGTH,
} from '../limits.js';

/**
 * Query strings of late, decoded: dashboards send the same again and again. What may hold a key is not kept.
 */
export class DecodedQueries {
  readonly #decoded = new Map<string, DecodedQuery>();

  /** Remembered, or decoded now. */
  decode(rawQuery: string): DecodedQuery {
    return this.#decoded.get(rawQuery) ?? decodeQuery(rawQuery);
  }

  /** To be called for those with a valid key only: others would push out what is in use. */
  remember(rawQuery: string, query: DecodedQuery): void {
    if (this.#decoded.get(rawQuery) === query) return;
    const { values, malformed } = query;
    if (values.has('api_key') || malformed.length > 0) return;
    if (rawQuery.length > REMEMBERED_QUERY_LENGTH || values.size > REMEMBERED_PARAMETER_COUNT) return;
    if (this.#decoded.size === REMEMBERED_QUERY_COUNT) this.#decoded.clear();
    this.#decoded.set(rawQuery, query);
  }
}

export function decodeQuery(rawQuery: string): DecodedQuery {
  const values = new Map<string, string>();
  const repeated = new Set<string>();
  const malformed: ParameterProblem[] = [];
  const isLong = rawQuery.length > REMEMBERED_QUERY_LENGTH;
  for (const [i, pair] of rawQuery.split('&', QUERY_PARAMETER_LIMIT + 1).entries()) {
    if (pair === '') continue;
    const equalsAt = pair.indexOf('=');
    if (i === QUERY_PARAMETER_LIMIT) {
      malformed.push({
        parameter: pair.split('=', 1)[0],
        message: `comes after ${i} others, and that is the limit`,
      });
      break;
    }
    const rawName = equalsAt < 0 ? pair : pair.slice(0, equalsAt);
    const rawValue = equalsAt < 0 ? '' : pair.slice(equalsAt + 1);
    const name = decodeFormText(rawName);
    const value = decodeFormText(isLong ? copied(rawValue) : rawValue);
    if (name === null || value === null) {
      const what = name === null ? `name ${quoted(rawName)}` : `value ${quoted(rawValue)}`;
      malformed.push({ parameter: name ?? rawName, message: `is not percent-encoded UTF-8: the ${what}` });
    } else if (values.has(name)) {
      repeated.add(name);
    } else {
      values.set(name, value);
    }
  }
  return { values, repeated, malformed };
}

/**
 * V8 keeps all of a text alive for a piece of it: one parameter in a cache would hold the whole query string
 * there.
 */
function copied(text: string): string {
  return Buffer.from(text).toString();
}

/** null for text outside ASCII, a `%` without two hexadecimal digits, and bytes that are not UTF-8. */
function decodeFormText(raw: string): string | null {
  if (!isPlainAscii(raw)) return null;
  const spaced = raw.includes('+') ? raw.replaceAll('+', ' ') : raw;
  if (!spaced.includes('%')) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    // decodeURIComponent has no other way to say no.
    return null;
  }
}

function isPlainAscii(text: string): boolean {
  return /^[\x21-\x7e]*$/.test(text);
}
