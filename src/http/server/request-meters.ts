/** Measures requests for the metrics, by route and status: a closed set, which no caller can add to. */

import { US_PER_SECOND } from '../../../engine/time.js';
import {
  type CacheOutcome,
  type HttpAnswer,
  type HttpHandler,
  isBodyConsumer,
  type Opened,
} from './server.js';

export interface RequestMeter {
  record(route: string, status: number, cache: CacheOutcome | 'none', durationSeconds: number): void;
  /** A connection was closed without an answer, because the request was ambiguous. */
  recordClosedSocket(): void;
}

/**
 * The same handler, measured: from the complete head to the answer, or for a body from its last piece on;
 * writing is not counted. The handler must be a contained one.
 */
export function meteredHandler(
  handler: HttpHandler,
  meter: RequestMeter,
  routeOf: (path: string) => string,
  monotonicUs: () => number,
): HttpHandler {
  const measured = (opened: HttpAnswer | Promise<HttpAnswer>, path: string, startUs: number) => {
    const record = (answer: HttpAnswer): HttpAnswer => {
      const seconds = (monotonicUs() - startUs) / US_PER_SECOND;
      meter.record(routeOf(path), answer.status, answer.cacheOutcome ?? 'none', seconds);
      return answer;
    };
    return opened instanceof Promise ? opened.then(record) : record(opened);
  };
  return {
    open(request): Opened {
      const startUs = monotonicUs();
      const opened = handler.open(request);
      if (typeof opened === 'string') {
        meter.recordClosedSocket();
        return opened;
      }
      if (!isBodyConsumer(opened)) return measured(opened, request.path, startUs);
      return {
        push: (piece) => opened.push(piece),
        end: () => {
          const endUs = monotonicUs();
          return measured(opened.end(), request.path, endUs);
        },
        abort: () => opened.abort(),
      };
    },
  };
}
