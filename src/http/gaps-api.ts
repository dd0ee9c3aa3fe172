/**
 * The operator's act on gaps in the log: `GET /api/gaps` lists those that keep the service from being ready, and
 * `POST /api/gaps/acknowledge` says that somebody has seen them. It takes an ingest key and no body.
 */

import type { Grant } from './auth.js';
import { JSON_CONTENT_TYPE, methodNotAllowed, NO_STORE, permissionDenied } from './errors.js';
import type { GapsPort } from './ports.js';
import type { HttpAnswer, HttpRequest } from './server.js';

export const GAPS_PATH = '/api/gaps';
export const ACKNOWLEDGE_PATH = '/api/gaps/acknowledge';

/** The request is for one of the two paths, with a valid ingest key and no body. */
export function answerGaps(
  gaps: GapsPort,
  { path, method }: HttpRequest,
  grant: Grant,
): HttpAnswer | Promise<HttpAnswer> {
  if (grant.projects !== null)
    return permissionDenied('this key is limited to some projects, and gaps concern all of them');
  if (path === ACKNOWLEDGE_PATH) {
    if (method !== 'POST') return methodNotAllowed(method, 'POST');
    return gaps.acknowledge().then((acknowledged) => jsonAnswer({ acknowledged }));
  }
  if (method !== 'GET' && method !== 'HEAD') return methodNotAllowed(method, 'GET, HEAD');
  return jsonAnswer({ gaps: gaps.open() });
}

function jsonAnswer(body: object): HttpAnswer {
  return { status: 200, headers: [JSON_CONTENT_TYPE, NO_STORE], body: JSON.stringify(body), close: false };
}
