/**
 * The one place where our own bugs end inside HTTP: whatever a handler throws that is no refusal becomes a 500,
 * is reported and counted, and the process goes on. Without it an exception would abort the process in
 * uWebSockets.js.
 */

import { internalError } from '../errors.js';
import { refusalOf } from '../refusals.js';
import {
  type BodyConsumer,
  type BugReporter,
  CLOSE_SOCKET,
  type HttpAnswer,
  type HttpHandler,
  type HttpRequest,
  isBodyConsumer,
  type Opened,
} from './server.js';

/** The same handler, except that neither it nor anything that it returns throws or rejects. */
export function containedHandler(handler: HttpHandler, bugs: BugReporter): HttpHandler {
  const report = (error: unknown, { method, path }: HttpRequest): void =>
    bugs.report(error, `${method} ${path}`);
  const failed = (error: unknown, request: HttpRequest): HttpAnswer => {
    const refusal = refusalOf(error);
    if (refusal !== null) return refusal;
    report(error, request);
    return internalError();
  };

  const contained = (
    answer: HttpAnswer | Promise<HttpAnswer>,
    request: HttpRequest,
  ): HttpAnswer | Promise<HttpAnswer> =>
    answer instanceof Promise ? answer.catch((error: unknown) => failed(error, request)) : answer;

  const containedBody = (body: BodyConsumer, request: HttpRequest): BodyConsumer => {
    let broken: HttpAnswer | null = null;
    const abort = (): void => {
      try {
        body.abort();
      } catch (error) {
        report(error, request);
      }
    };
    return {
      push(piece) {
        if (broken !== null) return false;
        try {
          return body.push(piece);
        } catch (error) {
          broken = failed(error, request);
          abort();
          return false;
        }
      },
      end() {
        if (broken !== null) return broken;
        try {
          return contained(body.end(), request);
        } catch (error) {
          return failed(error, request);
        }
      },
      abort,
    };
  };

  return {
    open(request: HttpRequest): Opened {
      try {
        const opened = handler.open(request);
        if (opened === CLOSE_SOCKET) return opened;
        return isBodyConsumer(opened) ? containedBody(opened, request) : contained(opened, request);
      } catch (error) {
        return failed(error, request);
      }
    },
  };
}
