/**
 * A line for each request, without anything secret: of the target only the path, as the key may stand in the
 * query string, and of the key a tag.
 */

import { US_PER_MS } from '../../engine/time.js';
import { LOGGED_METHOD_LENGTH_LIMIT, LOGGED_PATH_LENGTH_LIMIT } from './limits.js';
import { byteCountOf } from './server/body.js';
import {
  type CacheOutcome,
  CLOSE_SOCKET,
  type HttpAnswer,
  type HttpHandler,
  type HttpRequest,
  isBodyConsumer,
  type Opened,
} from './server/server.js';

export interface AccessLine {
  readonly method: string;
  readonly path: string;
  /** null: the connection was closed without an answer, by either side. */
  readonly status: number | null;
  /** Of the body of the answer, packed where it was. */
  readonly bytes: number;
  /** From the complete head to the answer, a body's arrival included; writing is not counted. */
  readonly ms: number;
  readonly cache: CacheOutcome | null;
  /** null: no valid key. */
  readonly key: string | null;
}

export interface AccessLogPorts {
  readonly write: (line: AccessLine) => void;
  readonly keyTagOf: (request: HttpRequest) => string | null;
  readonly monotonicUs: () => number;
}

/** The same handler, which must be a contained one, with its requests logged. */
export function loggedHandler(handler: HttpHandler, ports: AccessLogPorts): HttpHandler {
  const { write, keyTagOf, monotonicUs } = ports;
  return {
    open(request): Opened {
      const startUs = monotonicUs();
      const log = (answer: HttpAnswer | null) =>
        write({
          method: request.method.slice(0, LOGGED_METHOD_LENGTH_LIMIT),
          path: pathText(request.path),
          status: answer?.status ?? null,
          bytes: answer === null || request.method === 'HEAD' ? 0 : byteCountOf(answer.body),
          ms: (monotonicUs() - startUs) / US_PER_MS,
          cache: answer?.cacheOutcome ?? null,
          key: keyTagOf(request),
        });
      const logged = (answer: HttpAnswer): HttpAnswer => {
        log(answer);
        return answer;
      };
      const whenAnswered = (answer: HttpAnswer | Promise<HttpAnswer>) =>
        answer instanceof Promise ? answer.then(logged) : logged(answer);

      const opened = handler.open(request);
      if (opened === CLOSE_SOCKET) {
        log(null);
        return opened;
      }
      if (!isBodyConsumer(opened)) return whenAnswered(opened);
      return {
        push: (piece) => opened.push(piece),
        end: () => whenAnswered(opened.end()),
        abort: () => {
          log(null);
          opened.abort();
        },
      };
    },
  };
}

/**
 * Up to the first letter that no path of ours has: what follows may be a query string that went astray, with
 * the key.
 */
function pathText(path: string): string {
  const [own] = /^[A-Za-z0-9/._-]*/.exec(path) ?? [''];
  const cut = own.slice(0, LOGGED_PATH_LENGTH_LIMIT);
  return cut === path ? path : `${cut}…`;
}
