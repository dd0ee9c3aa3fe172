/** The gaps that were met since the start, for readiness and metrics. */

import { KEPT_GAPS } from './limits.js';
import type { OffsetGap } from './log-source.js';

export class Gaps {
  readonly #latest: OffsetGap[] = [];
  #count = 0;

  /** Oldest first. */
  get latest(): readonly OffsetGap[] {
    return this.#latest;
  }

  get count(): number {
    return this.#count;
  }

  add(gap: OffsetGap): void {
    this.#count++;
    this.#latest.push(gap);
    if (this.#latest.length > KEPT_GAPS) this.#latest.shift();
  }
}
