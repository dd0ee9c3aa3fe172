/** The answers that operations share: headers, and the errors of the catalogue. */

import { CATALOGUE, type ErrorCode } from '../errors.js';
import { INCOMPLETE_HEADER } from '../query/incomplete.js';
import { STALE_HEADER } from '../query/stale.js';
import type {
  OpenApiDocument,
  OpenApiHeader,
  OpenApiMedia,
  OpenApiResponse,
  Reference,
} from './openapi-document.js';

export const JSON_TYPE = 'application/json';

export const HEADERS = {
  Age: { description: 'Seconds since the answer was computed.', schema: { type: 'integer', minimum: 0 } },
  'Cache-Control': {
    description: 'Whether, and how long, the answer may be kept.',
    schema: { type: 'string' },
  },
  'Retry-After': {
    description: 'Seconds to wait before asking again.',
    schema: { type: 'integer', minimum: 1 },
  },
  Allow: { description: 'The methods that are allowed.', schema: { type: 'string' } },
  'WWW-Authenticate': { description: 'How to send the key.', schema: { type: 'string' } },
  [STALE_HEADER]: {
    description:
      'The answer counts all that the log held so many seconds ago, and perhaps not what came since. Absent: it was less than LOGRING_FRESH_MS old when it was computed.',
    schema: { type: 'integer', minimum: 0 },
  },
  [INCOMPLETE_HEADER]: {
    description:
      'The answer lacks what a repair of the store has dropped: the endpoint and an ISO 8601 interval, several behind commas.',
    schema: { type: 'string' },
  },
} as const satisfies Record<string, OpenApiHeader>;
export type HeaderName = keyof typeof HEADERS;

/** Beside Cache-Control, which all have. */
const ERROR_HEADERS: Partial<Record<ErrorCode, HeaderName>> = {
  401: 'WWW-Authenticate',
  405: 'Allow',
  429: 'Retry-After',
  503: 'Retry-After',
};

/** The catalogue, by the names that references to it have. */
export function errorResponses(): Record<string, OpenApiResponse> {
  return Object.fromEntries(
    Object.entries(CATALOGUE).map(([code, entry]) => [
      responseName(Number(code) as ErrorCode),
      errorResponse(Number(code) as ErrorCode, entry),
    ]),
  );
}

export function errorReference(code: ErrorCode): Reference {
  return referenceTo('responses', responseName(code));
}

/** The name of an error of the catalogue is its first. */
function responseName(code: ErrorCode): string {
  return CATALOGUE[code].names[0];
}

function errorResponse(
  code: ErrorCode,
  { names, meaning }: { readonly names: readonly string[]; readonly meaning: string },
): OpenApiResponse {
  const own = { properties: { error: { properties: { code: { const: code }, status: { enum: names } } } } };
  const header = ERROR_HEADERS[code];
  return response(
    meaning,
    { [JSON_TYPE]: { schema: { allOf: [referenceTo('schemas', 'Error'), own] } } },
    header === undefined ? [] : [header],
  );
}

export function jsonResponse(
  description: string,
  body: string,
  headers: readonly HeaderName[] = [],
): OpenApiResponse {
  return response(description, { [JSON_TYPE]: bodyReference(body) }, headers);
}

export function response(
  description: string,
  content: Readonly<Record<string, OpenApiMedia>>,
  headers: readonly HeaderName[] = [],
): OpenApiResponse {
  const names: readonly HeaderName[] = ['Cache-Control', ...headers];
  return {
    description,
    headers: Object.fromEntries(names.map((name) => [name, referenceTo('headers', name)])),
    content,
  };
}

export function bodyReference(name: string): OpenApiMedia {
  return { schema: referenceTo('schemas', name) };
}

function referenceTo(kind: keyof OpenApiDocument['components'], name: string): Reference {
  return { $ref: `#/components/${kind}/${name}` };
}
