/**
 * The header lines of a request by lower-case name, and the rules that keep one request from being read as
 * two.
 */

import { CONTENT_LENGTH_DIGIT_LIMIT, HEADER_COUNT_LIMIT, IDEMPOTENCY_KEY_LENGTH_LIMIT } from '../limits.js';

export class HeaderList {
  readonly #values = new Map<string, string>();
  #repeated: string[] | null = null;
  #count = 0;

  /** The name in lower case, the value without the whitespace around it. */
  add(name: string, value: string): void {
    this.#count += 1;
    const earlier = this.#values.get(name);
    if (earlier === undefined) {
      this.#values.set(name, value);
      return;
    }
    this.#values.set(name, `${earlier}, ${value}`);
    this.#repeated ??= [];
    this.#repeated.push(name);
  }

  /** The value, those of repeated lines joined with commas; '' when absent. */
  get(name: string): string {
    return this.#values.get(name) ?? '';
  }

  has(name: string): boolean {
    return this.#values.has(name);
  }

  repeats(name: string): boolean {
    return this.#repeated?.includes(name) ?? false;
  }

  get count(): number {
    return this.#count;
  }
}

/** Header lines that two readers of one connection may understand differently when they come twice. */
const MUST_BE_SINGLE = ['host', 'x-api-key', 'content-length', 'transfer-encoding', 'idempotency-key'];

/**
 * Whether the head of a request without a body says so beyond doubt. uWebSockets.js takes conflicting lengths
 * and odd transfer encodings, and a proxy in front may see the end of the request elsewhere; so whatever
 * hints at a body is refused, and the connection with it.
 */
export function isBodiless(headers: HeaderList): boolean {
  if (!isUnambiguous(headers) || headers.has('transfer-encoding')) return false;
  return !headers.has('content-length') || headers.get('content-length') === '0';
}

/**
 * Whether the head says beyond doubt where the body ends: by one plain Content-Length or by chunks, never
 * both.
 */
export function hasOneBody(headers: HeaderList): boolean {
  if (!isUnambiguous(headers)) return false;
  if (headers.has('content-length')) {
    const digits = headers.get('content-length');
    return (
      !headers.has('transfer-encoding') &&
      digits.length <= CONTENT_LENGTH_DIGIT_LIMIT &&
      /^[0-9]+$/.test(digits)
    );
  }
  return isChunked(headers);
}

/**
 * Whether the body comes in chunks. With uWebSockets.js no second request may be read after one: it misreads
 * chunk extensions.
 */
export function isChunked(headers: HeaderList): boolean {
  return headers.get('transfer-encoding').toLowerCase() === 'chunked';
}

function isUnambiguous(headers: HeaderList): boolean {
  return headers.count <= HEADER_COUNT_LIMIT && !MUST_BE_SINGLE.some((name) => headers.repeats(name));
}

/** A string as structured fields have it (RFC 9651), with its quotes. */
const QUOTED_STRING = /^"(?:[ !#-[\]-~]|\\["\\])*"$/;

/** The key of a request; null where its header is of neither form, plain or a quoted string. */
export function idempotencyKeyOf(headers: HeaderList): string | null {
  const value = headers.get('idempotency-key');
  const isQuoted = value.startsWith('"');
  if (isQuoted && !QUOTED_STRING.test(value)) return null;
  const key = isQuoted ? value.slice(1, -1).replace(/\\(.)/g, '$1') : value;
  return /^[ -~]+$/.test(key) && key.length <= IDEMPOTENCY_KEY_LENGTH_LIMIT ? key : null;
}
