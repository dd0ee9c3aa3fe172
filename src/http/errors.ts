/**
 * The catalogue of errors that callers can get, and their one form. Bad requests are values here, never
 * exceptions.
 */

import { US_PER_SECOND } from '../../engine/time.js';
import type { ParameterProblem } from '../endpoints/call-parameters.js';
import { quoted } from '../quoted.js';
import type { HeaderLine, HttpAnswer } from './server/server.js';

/** Status code → the names that the answer gives it, the usual one first, and when it comes. */
export const CATALOGUE = {
  400: { names: ['INVALID_ARGUMENT'], meaning: 'The request is wrong; all that is wrong with it is listed.' },
  401: { names: ['UNAUTHENTICATED'], meaning: 'The key is missing or wrong.' },
  403: {
    names: ['PERMISSION_DENIED'],
    meaning: 'The key is limited to some projects, and this is beyond them.',
  },
  404: { names: ['NOT_FOUND'], meaning: 'Nothing is there.' },
  405: {
    names: ['METHOD_NOT_ALLOWED'],
    meaning: 'The method is not among those that the header Allow lists.',
  },
  409: {
    names: ['CONFLICT'],
    meaning:
      'The Idempotency-Key was used before with another body, or a chunk of an import does not follow the one before.',
  },
  413: { names: ['PAYLOAD_TOO_LARGE'], meaning: 'The body is too large; send it in parts.' },
  414: { names: ['URI_TOO_LONG'], meaning: 'Path and query together are too long.' },
  415: {
    names: ['UNSUPPORTED_MEDIA_TYPE'],
    meaning: 'Logring does not read the Content-Type or Content-Encoding of the body.',
  },
  429: {
    names: ['RESOURCE_EXHAUSTED'],
    meaning: 'The key asks too often; come again after Retry-After seconds.',
  },
  500: {
    names: ['INTERNAL', 'DATA_LOSS'],
    meaning: 'A bug of the service, a disk that failed, or stored data that the answer needs is damaged.',
  },
  503: { names: ['UNAVAILABLE'], meaning: 'Not now; come again after Retry-After seconds.' },
} as const;
export type ErrorCode = keyof typeof CATALOGUE;

export const JSON_CONTENT_TYPE: HeaderLine = ['Content-Type', 'application/json; charset=utf-8'];
/** On everything that no cache, the caller's included, may keep. */
export const NO_STORE: HeaderLine = ['Cache-Control', 'no-store'];

export function jsonAnswer(body: object, status = 200, moreHeaders: readonly HeaderLine[] = []): HttpAnswer {
  const headers = [JSON_CONTENT_TYPE, NO_STORE, ...moreHeaders];
  return { status, headers, body: JSON.stringify(body), close: false };
}

/** `{"error":{"code":…,"status":"…","message":"…","errors":[…]}}` */
export function errorAnswer(
  code: ErrorCode,
  message: string,
  problems: readonly ParameterProblem[] = [],
  moreHeaders: readonly HeaderLine[] = [],
  status: string = CATALOGUE[code].names[0],
): HttpAnswer {
  return jsonAnswer({ error: { code, status, message, errors: problems } }, code, moreHeaders);
}

/** All problems of a request at once, in `message` as well as one by one. */
export function invalidArgument(problems: readonly ParameterProblem[]): HttpAnswer {
  const message = problems.map((problem) => `${problem.parameter} ${problem.message}`).join('; ');
  return errorAnswer(400, message, problems);
}

/** The same whether the key was missing or wrong. */
export function unauthenticated(): HttpAnswer {
  const message =
    'a valid API key is required: send it as the header X-API-KEY, as Authorization: Bearer, or as the parameter api_key';
  return errorAnswer(401, message, [], [['WWW-Authenticate', 'Bearer realm="logring"']]);
}

export function permissionDenied(message: string): HttpAnswer {
  return errorAnswer(403, message);
}

export function notFound(message: string): HttpAnswer {
  return errorAnswer(404, message);
}

export function methodNotAllowed(method: string, allowed: string): HttpAnswer {
  return errorAnswer(
    405,
    `the method ${quoted(method)} is not allowed here; allowed: ${allowed}`,
    [],
    [['Allow', allowed]],
  );
}

export function payloadTooLarge(message: string): HttpAnswer {
  return errorAnswer(413, message);
}

export function tooManyRequests(waitUs: number): HttpAnswer {
  const seconds = Math.ceil(waitUs / US_PER_SECOND);
  const message = `this key asks more often than LOGRING_KEY_REQUESTS_PER_SECOND allows; it may again in ${seconds} s`;
  return errorAnswer(429, message, [], [['Retry-After', String(seconds)]]);
}

export function unavailable(message: string, retryAfterSeconds: number): HttpAnswer {
  return errorAnswer(503, message, [], [['Retry-After', String(retryAfterSeconds)]]);
}

/** Says nothing about the bug: the log does. */
export function internalError(): HttpAnswer {
  return errorAnswer(500, 'an error inside the service; it has been logged');
}

/** What the answer needs is damaged in the store: what is left of it would be a wrong answer. */
export function dataLoss(): HttpAnswer {
  const message =
    'stored data that this answer needs is damaged; /readyz says which, and what the operator can do';
  return errorAnswer(500, message, [], [], CATALOGUE[500].names[1]);
}
