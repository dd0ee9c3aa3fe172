/**
 * A line for each query that took long, with where its time went:
 *
 *   │ computing ▸ waiting ▸ packing │ writing │
 *   ╰──────────── ms ───────────────╯ the client's pace, so it does not count
 */

import { US_PER_MS } from '../../../engine/time.js';
import type { Endpoint } from '../../endpoints/endpoint.js';
import { presentedKey } from '../auth.js';
import { SLOW_QUERY_VALUE_LENGTH_LIMIT } from '../limits.js';
import type { CacheOutcome, HttpAnswer } from '../server/server.js';
import type { QueryCall } from './query-api.js';

export interface SlowQueryLine {
  readonly endpoint: string;
  /** As they came, long ones cut, the key left out. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly status: number;
  /** From the call to its answer; writing it is not counted. */
  readonly ms: number;
  /** In the turn of the event loop that the query came in. */
  readonly computeMs: number;
  /** Until what is computed elsewhere or later was there: by match threads, in later turns, for another query. */
  readonly waitMs: number;
  readonly packMs: number;
  /** Until the client had taken it, or went away. */
  readonly writeMs: number;
  /** null where the result cache is not asked. */
  readonly cache: CacheOutcome | null;
}

export interface SlowQueryPorts {
  readonly thresholdUs: number;
  readonly monotonicUs: () => number;
  readonly write: (line: SlowQueryLine) => void;
}

/** When a query came to be where. */
export class QueryTimes {
  readonly #monotonicUs: () => number;
  readonly startUs: number;
  returnedUs = 0;
  /** null: it was refused before. */
  computedUs: number | null = null;

  constructor(monotonicUs: () => number) {
    this.#monotonicUs = monotonicUs;
    this.startUs = monotonicUs();
  }

  /** The body is there, not packed yet. */
  computed(): void {
    this.computedUs = this.#monotonicUs();
  }
}

type Answer = HttpAnswer | Promise<HttpAnswer>;

export class SlowQueries {
  readonly #ports: SlowQueryPorts;

  constructor(ports: SlowQueryPorts) {
    this.#ports = ports;
  }

  watch(endpoint: Endpoint, call: QueryCall, answerWith: (times: QueryTimes) => Answer): Answer {
    const { monotonicUs } = this.#ports;
    const times = new QueryTimes(monotonicUs);
    const answer = answerWith(times);
    times.returnedUs = monotonicUs();
    const noted = (ready: HttpAnswer) => this.#noted(endpoint, call, times, ready);
    return answer instanceof Promise ? answer.then(noted) : noted(answer);
  }

  #noted(endpoint: Endpoint, call: QueryCall, times: QueryTimes, answer: HttpAnswer): HttpAnswer {
    const { thresholdUs, monotonicUs, write } = this.#ports;
    const readyUs = monotonicUs();
    const { startUs, returnedUs } = times;
    const computedUs = times.computedUs ?? readyUs;
    if (readyUs - startUs < thresholdUs) return answer;
    const line = {
      endpoint: endpoint.name,
      parameters: shownParameters(endpoint, call),
      status: answer.status,
      ms: (readyUs - startUs) / US_PER_MS,
      computeMs: (Math.min(computedUs, returnedUs) - startUs) / US_PER_MS,
      waitMs: Math.max(0, computedUs - returnedUs) / US_PER_MS,
      packMs: (readyUs - computedUs) / US_PER_MS,
      cache: answer.cacheOutcome ?? null,
    };
    return {
      ...answer,
      release: () => {
        answer.release?.();
        write({ ...line, writeMs: (monotonicUs() - readyUs) / US_PER_MS });
      },
    };
  }
}

/** Those of the endpoint: what else came may be anything. A key that went astray into one is left out. */
function shownParameters({ parameters }: Endpoint, { request, query }: QueryCall): Record<string, string> {
  const key = presentedKey(request, query.values.get('api_key') ?? '');
  const shown: Record<string, string> = {};
  for (const name of Object.keys(parameters.schema.shape)) {
    const value = query.values.get(name)?.replaceAll(key, '…');
    if (value === undefined) continue;
    const isLong = value.length > SLOW_QUERY_VALUE_LENGTH_LIMIT;
    shown[name] = isLong ? `${value.slice(0, SLOW_QUERY_VALUE_LENGTH_LIMIT)}…` : value;
  }
  return shown;
}
