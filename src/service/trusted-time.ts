/**
 * What time it is, as far as deletion may trust it: nothing brings back what a wrong clock has deleted.
 * Beside the clock goes an estimated time, the last commit's plus the time run since, by a clock that never
 * steps.
 *
 *   last commit ──── time run ────▶ estimated       clock        deletion goes by the lesser of the two, "too far ahead"
 *   ────┴──────────────────────────────┴──────────────┴────▶    is measured from the later
 *
 * The estimated time becomes the clock's when that has stood for an hour and no record has contradicted it, or
 * at once when records confirm it; and records move it on towards the clock. Pure: it is told the times.
 */

import { US_PER_MINUTE, US_PER_MS } from '../../engine/time.js';
import type { TimeBounds } from '../../ingest/embedded-log/arrival.js';
import type { PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import { CLOCK_CONFIRM_US, CLOCK_RECORD_COUNT, CLOCK_STEP_US, CLOCK_TRUST_US } from '../limits.js';

export class TrustedTime {
  #estimatedUs: number;
  #estimatedAtUs: number;
  /** The clock less the monotonic one, as it has stood since then, within a step. */
  #offsetUs: number;
  #steadySinceUs: number;
  /** Timestamps of the last records, by partition, while clock and estimated time differ. */
  readonly #records = new Map<string, number[]>();

  /**
   * committedUs: the estimated time of the last commit; null before the first, when there is nothing to lose.
   */
  constructor(committedUs: number | null, nowUs: number, monotonicUs: number) {
    this.#estimatedUs = committedUs ?? nowUs;
    this.#estimatedAtUs = monotonicUs;
    this.#offsetUs = nowUs - monotonicUs;
    this.#steadySinceUs = monotonicUs;
  }

  /** What a commit keeps. */
  estimatedUs(monotonicUs: number): number {
    return this.#estimatedUs + monotonicUs - this.#estimatedAtUs;
  }

  /** By how far the clock is ahead of the estimated time; 0 while they agree. Negative: behind. */
  doubtUs(nowUs: number, monotonicUs: number): number {
    const aheadUs = nowUs - this.estimatedUs(monotonicUs);
    return Math.abs(aheadUs) <= CLOCK_STEP_US ? 0 : aheadUs;
  }

  /** What deletion goes by; never later than the clock. */
  trustedUs(nowUs: number, monotonicUs: number): number {
    return nowUs - Math.max(0, this.doubtUs(nowUs, monotonicUs));
  }

  /** From the trusted time to the later of clock and estimated time. */
  boundsMs(nowUs: number, monotonicUs: number): TimeBounds {
    const latestUs = Math.max(nowUs, this.estimatedUs(monotonicUs));
    return {
      earliestMs: Math.floor(this.trustedUs(nowUs, monotonicUs) / US_PER_MS),
      latestMs: Math.floor(latestUs / US_PER_MS),
    };
  }

  /** To be called now and then: trusts a clock that has run on for long without a step. */
  observe(nowUs: number, monotonicUs: number): void {
    const offsetUs = nowUs - monotonicUs;
    const isSteady = Math.abs(offsetUs - this.#offsetUs) <= CLOCK_STEP_US;
    if (isSteady && monotonicUs - this.#steadySinceUs < CLOCK_TRUST_US) return;
    if (isSteady) this.#estimate(nowUs, monotonicUs);
    this.#offsetUs = offsetUs;
    this.#steadySinceUs = monotonicUs;
  }

  /** A record was applied that has its producer's timestamp: when several say the same it confirms a time. */
  noteRecord(key: PartitionKey, recordUs: number, nowUs: number, monotonicUs: number): void {
    const doubtUs = this.doubtUs(nowUs, monotonicUs);
    if (doubtUs === 0) return;
    const partition = partitionId(key);
    const last = this.#records.get(partition) ?? [];
    last.push(recordUs);
    if (last.length > CLOCK_RECORD_COUNT) last.shift();
    this.#records.set(partition, last);
    if (last.length < CLOCK_RECORD_COUNT) return;
    const seenUs = Math.min(...last);
    const estimatedUs = nowUs - doubtUs;
    if (Math.abs(seenUs - nowUs) <= CLOCK_CONFIRM_US) this.#estimate(nowUs, monotonicUs);
    else if (Math.abs(seenUs - estimatedUs) <= CLOCK_CONFIRM_US) this.#steadySinceUs = monotonicUs;
    else if (seenUs > estimatedUs && seenUs < nowUs) this.#estimate(seenUs, monotonicUs);
  }

  #estimate(estimatedUs: number, monotonicUs: number): void {
    this.#estimatedUs = estimatedUs;
    this.#estimatedAtUs = monotonicUs;
    this.#records.clear();
  }
}

/** For the operator; doubtUs is not 0. A service that was off looks like one whose clock was set ahead. */
export function clockNote(doubtUs: number): string {
  const minutes = Math.max(1, Math.round(Math.abs(doubtUs) / US_PER_MINUTE));
  const apart = minutes === 1 ? '1 minute' : `${minutes} minutes`;
  return doubtUs > 0
    ? `by the clock ${apart} passed while the service was not running, in this stop and those before it: what has expired since is in no answer, but is deleted only once the service has run for an hour or records confirm the clock; if that is wrong, set the clock right`
    : `the clock is ${apart} behind the last commit: set it right, or answers about recent buckets lack what is newer than the clock`;
}
