/**
 * CORS for the query API: browsers of configured origins may ask; by default none. Keys are headers, never
 * cookies.
 */

import { PREFLIGHT_MAX_AGE_SECONDS } from './limits.js';
import { INCOMPLETE_HEADER } from './query/incomplete.js';
import { STALE_HEADER } from './query/stale.js';
import type { HeaderLine, HttpAnswer, HttpRequest } from './server/server.js';

export class Cors {
  readonly #origins: ReadonlySet<string>;

  /** Origins as browsers send them, `https://app.example.com`; `*` stands for all. */
  constructor(origins: readonly string[]) {
    this.#origins = new Set(origins);
  }

  /** The answer, readable for scripts of the request's origin if that is a configured one. */
  apply(request: HttpRequest, answer: HttpAnswer): HttpAnswer {
    if (this.#origins.size === 0) return answer;
    return { ...answer, headers: [...answer.headers, ...this.#headers(request)] };
  }

  /** To OPTIONS, without a key: browsers send none. */
  preflight(request: HttpRequest, allowedMethods: string): HttpAnswer {
    const headers: HeaderLine[] = [['Allow', allowedMethods]];
    if (this.#isAllowed(request.headers.get('origin'))) {
      headers.push(
        ['Access-Control-Allow-Methods', 'GET, HEAD'],
        ['Access-Control-Allow-Headers', 'X-API-KEY, Authorization, Content-Type, Cache-Control'],
        ['Access-Control-Max-Age', String(PREFLIGHT_MAX_AGE_SECONDS)],
      );
    }
    return this.apply(request, { status: 204, headers, body: '', close: false });
  }

  #headers(request: HttpRequest): HeaderLine[] {
    const headers: HeaderLine[] = [['Vary', 'Origin']];
    const origin = request.headers.get('origin');
    if (this.#isAllowed(origin)) {
      headers.push(
        ['Access-Control-Allow-Origin', origin],
        ['Access-Control-Expose-Headers', `Age, Retry-After, ${INCOMPLETE_HEADER}, ${STALE_HEADER}`],
      );
    }
    return headers;
  }

  #isAllowed(origin: string): boolean {
    return origin !== '' && (this.#origins.has(origin) || this.#origins.has('*'));
  }
}
