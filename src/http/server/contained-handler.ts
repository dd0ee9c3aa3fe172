/**
 * The one place where our own bugs end inside HTTP: whatever a handler throws becomes a 500, is reported and
 * counted, and the process goes on. Without it an exception would abort the process in uWebSockets.js.
 */

import { internalError } from '../errors.js';
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
  const bugAnswer = (error: unknown, where: string): HttpAnswer => {
    bugs.report(error, where);
    return internalError();
  };

  const contained = (
    answer: HttpAnswer | Promise<HttpAnswer>,
    where: string,
  ): HttpAnswer | Promise<HttpAnswer> =>
    answer instanceof Promise ? answer.catch((error: unknown) => bugAnswer(error, where)) : answer;

  const containedBody = (body: BodyConsumer, where: string): BodyConsumer => {
    let broken: HttpAnswer | null = null;
    const abort = (): void => {
      try {
        body.abort();
      } catch (error) {
        bugs.report(error, where);
      }
    };
    return {
      push(piece) {
        if (broken !== null) return false;
        try {
          return body.push(piece);
        } catch (error) {
          broken = bugAnswer(error, where);
          abort();
          return false;
        }
      },
      end() {
        if (broken !== null) return broken;
        try {
          return contained(body.end(), where);
        } catch (error) {
          return bugAnswer(error, where);
        }
      },
      abort,
    };
  };

  return {
    open(request: HttpRequest): Opened {
      const where = `${request.method} ${request.path}`;
      try {
        const opened = handler.open(request);
        if (opened === CLOSE_SOCKET) return opened;
        return isBodyConsumer(opened) ? containedBody(opened, where) : contained(opened, where);
      } catch (error) {
        return bugAnswer(error, where);
      }
    },
  };
}
