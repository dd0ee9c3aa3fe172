/** The catalogue of errors that callers can get, and their one form. Bad requests are values here, never exceptions. */

import { QUOTED_CHARACTER_LIMIT } from './limits.js';
import type { HeaderLine, HttpAnswer } from './server.js';

/** Status code → the name that the answer gives it. */
const CATALOGUE = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  405: 'METHOD_NOT_ALLOWED',
  409: 'CONFLICT',
  413: 'PAYLOAD_TOO_LARGE',
  414: 'URI_TOO_LONG',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  500: 'INTERNAL',
  503: 'UNAVAILABLE',
} as const;
export type ErrorCode = keyof typeof CATALOGUE;

export const JSON_CONTENT_TYPE: HeaderLine = ['Content-Type', 'application/json; charset=utf-8'];
/** On everything that no cache, the caller's included, may keep. */
export const NO_STORE: HeaderLine = ['Cache-Control', 'no-store'];

/** What is wrong with one parameter, as a phrase that reads on from its name: `must be one of hourly, daily`. */
export interface ParameterProblem {
  readonly parameter: string;
  readonly message: string;
}

/** `{"error":{"code":…,"status":"…","message":"…","errors":[…]}}` */
export function errorAnswer(
  code: ErrorCode,
  message: string,
  problems: readonly ParameterProblem[] = [],
  moreHeaders: readonly HeaderLine[] = [],
  status: string = CATALOGUE[code],
): HttpAnswer {
  return {
    status: code,
    headers: [JSON_CONTENT_TYPE, NO_STORE, ...moreHeaders],
    body: JSON.stringify({ error: { code, status, message, errors: problems } }),
    close: false,
  };
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
  return errorAnswer(500, message, [], [], 'DATA_LOSS');
}

/** A caller's value for an error message, cut to a bearable length. */
export function quoted(value: string): string {
  const characters =
    value.length > QUOTED_CHARACTER_LIMIT ? `${value.slice(0, QUOTED_CHARACTER_LIMIT)}…` : value;
  return JSON.stringify(characters);
}
