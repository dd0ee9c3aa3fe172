/**
 * Who may ask: API keys. One is compared by its SHA-256 digest with those of all keys in constant time, and a
 * missing key takes the same work as a wrong one; a right one is known from then on.
 */

import { hash, scryptSync, timingSafeEqual } from 'node:crypto';
import { KEY_TAG_ROUND_COUNT } from './limits.js';
import type { RequestPace, RequestPaces } from './request-pace.js';
import type { HttpRequest } from './server/server.js';

export interface ApiKey {
  /** Printable ASCII without spaces: what a header can carry. */
  readonly key: string;
  /** The projects that the key is limited to; null for all. */
  readonly projects: readonly string[] | null;
}

/** What a valid key allows. */
export interface Grant {
  /** null for all projects. */
  readonly projects: ReadonlySet<string> | null;
  /** null: it may ask as often as it likes. */
  readonly pace: RequestPace | null;
}

const TAG_SALT = 'logring access log';
const TAG_BYTES = 4;

/** In hexadecimal, which is quicker to get than bytes. */
const DIGEST_LENGTH = 64;

export class KeyRing {
  readonly #paces: RequestPaces | null;
  readonly #presented = Buffer.alloc(DIGEST_LENGTH);
  #digests: readonly Buffer[] = [];
  #grants: readonly Grant[] = [];
  #tags: string[] = [];
  /**
   * Keys that were right, and which they are. They are found by their hash, which has another seed in each
   * process: a wrong key is compared with one only where the hashes are the same, so its time says nothing.
   */
  readonly #known = new Map<string, number>();

  constructor(keys: readonly ApiKey[], paces: RequestPaces | null = null) {
    this.#paces = paces;
    this.renew(keys);
  }

  /** From now on these are the keys; requests that were let in go on. */
  renew(keys: readonly ApiKey[]): void {
    this.#digests = keys.map(({ key }) => Buffer.from(digestOf(key), 'latin1'));
    this.#grants = keys.map(({ key, projects }) => ({
      projects: projects === null ? null : new Set(projects),
      pace: this.#paces?.of(digestOf(key)) ?? null,
    }));
    this.#tags = [];
    this.#known.clear();
  }

  /** null for a missing ('') or wrong key. Of a key that is configured twice the first counts. */
  grantOf(key: string): Grant | null {
    const found = this.#find(key);
    return found < 0 ? null : this.#grants[found];
  }

  /**
   * Eight letters that stand for the key where it must not be seen, the same after every start; null where
   * grantOf says so. They tell which of the configured keys it was to somebody who has those, and are slow to
   * guess from.
   */
  tagOf(key: string): string | null {
    const found = this.#find(key);
    if (found < 0) return null;
    this.#tags[found] ??= scryptSync(Buffer.from(digestOf(key), 'hex'), TAG_SALT, TAG_BYTES, {
      N: KEY_TAG_ROUND_COUNT,
    }).toString('hex');
    return this.#tags[found];
  }

  /** -1 where there isn't one. */
  #find(key: string): number {
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    this.#presented.write(digestOf(key), 'latin1');
    let found = -1;
    for (let i = 0; i < this.#digests.length; i++) {
      if (timingSafeEqual(this.#presented, this.#digests[i]) && found < 0) found = i;
    }
    if (key === '' || found < 0) return -1;
    this.#known.set(key, found);
    return found;
  }
}

export function allows(grant: Grant, project: string): boolean {
  return grant.projects === null || grant.projects.has(project);
}

const BEARER = /^bearer +/i;

/**
 * The key of a request, '' without one. The first of these that is there counts, and the others are not
 * looked at: the header X-API-KEY, `Authorization: Bearer …`, the query parameter api_key (of several, the
 * first).
 */
export function presentedKey(request: HttpRequest, apiKeyParameter: string): string {
  const header = request.headers.get('x-api-key');
  if (header !== '') return header;
  const authorization = request.headers.get('authorization');
  if (BEARER.test(authorization)) return authorization.replace(BEARER, '');
  return apiKeyParameter;
}

function digestOf(key: string): string {
  return hash('sha256', key, 'hex');
}
