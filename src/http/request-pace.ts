/**
 * How often each key may ask. A pace is one number, the time until which the requests so far have used up the
 * allowance:
 *
 *   now ├────────────┤ usedUntil          a second ahead at most: then the next request has to wait
 *
 * (the generic cell rate algorithm of ATM's traffic control). There is one for each configured key, so wrong
 * keys take no memory.
 */

import { entryOf } from '../../engine/entry-of.js';
import { US_PER_SECOND } from '../../engine/time.js';

export class RequestPace {
  readonly #intervalUs: number;
  #usedUntilUs = -Infinity;

  /** As many at once as in a second. */
  constructor(requestsPerSecond: number) {
    this.#intervalUs = US_PER_SECOND / requestsPerSecond;
  }

  /**
   * 0, and the request counts; or after how many microseconds it may come again. nowUs is of a clock that
   * never steps.
   */
  take(nowUs: number): number {
    const usedUntilUs = Math.max(this.#usedUntilUs, nowUs) + this.#intervalUs;
    const waitUs = usedUntilUs - nowUs - US_PER_SECOND;
    // Half a microsecond for what sums of fractions are off by.
    if (waitUs > 0.5) return waitUs;
    this.#usedUntilUs = usedUntilUs;
    return 0;
  }
}

/** The paces of all keys: a key that stands in two lists has one. */
export class RequestPaces {
  readonly #requestsPerSecond: number;
  readonly #byKey = new Map<string, RequestPace>();

  constructor(requestsPerSecond: number) {
    this.#requestsPerSecond = requestsPerSecond;
  }

  /** For configured keys only; `key` is a digest. */
  of(key: string): RequestPace {
    return entryOf(this.#byKey, key, () => new RequestPace(this.#requestsPerSecond));
  }
}
