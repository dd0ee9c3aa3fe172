/** An answer of the service, and the times that say what it may and must count. */

import type { IncomingHttpHeaders } from 'node:http';
import { US_PER_SECOND } from '../../engine/time.js';

export interface Answer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Unpacked. */
  readonly body: Buffer;
  readonly askedUs: number;
  readonly answeredUs: number;
}

export interface AnswerTimes {
  /** Its `now` lies between these. */
  readonly fromUs: number;
  readonly toUs: number;
  /** What the brokers had acknowledged until then must be in it. */
  readonly settledUs: number;
}

/** Up to this age an answer need not say that it is older: LOGRING_FRESH_MS. */
const FRESH_US = 10 * US_PER_SECOND;
/** Between an acknowledgement and a high watermark that says so, on a machine that is busy. */
const MARGIN_US = 2 * US_PER_SECOND;

export function timesOf({ headers, askedUs, answeredUs }: Answer): AnswerTimes {
  const ageUs = Number(headers.age ?? 0) * US_PER_SECOND;
  // Age is whole seconds, rounded down.
  const fromUs = askedUs - ageUs - (headers.age === undefined ? 0 : US_PER_SECOND);
  const staleUs = Number(headers['logring-stale-seconds'] ?? 0) * US_PER_SECOND;
  return { fromUs, toUs: answeredUs - ageUs, settledUs: fromUs - Math.max(FRESH_US, staleUs) - MARGIN_US };
}

/** At rest: everything that was acknowledged must be in it. */
export function timesAtRest(answer: Answer): AnswerTimes {
  return { ...timesOf(answer), settledUs: Number.MAX_VALUE };
}

export function rowsOf({ body }: Answer): Record<string, unknown>[] {
  return (JSON.parse(body.toString()) as { result: Record<string, unknown>[] }).result;
}
