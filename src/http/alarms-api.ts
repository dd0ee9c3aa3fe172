/**
 * The operator's act on alarms that keep the service from being ready, gaps in the log and partitions that
 * hold: `GET /api/gaps` lists those that are open, and `POST /api/gaps/acknowledge` acknowledges them. It
 * takes an ingest key and no body.
 */

import type { Grant } from './auth.js';
import { jsonAnswer, methodNotAllowed, permissionDenied } from './errors.js';
import type { AlarmPort } from './ports.js';
import type { HttpAnswer, HttpRequest } from './server/server.js';

export type AlarmName = 'gaps' | 'holds';

export const ALARM_PATHS: Readonly<
  Record<AlarmName, { readonly list: string; readonly acknowledge: string }>
> = {
  gaps: { list: '/api/gaps', acknowledge: '/api/gaps/acknowledge' },
  holds: { list: '/api/holds', acknowledge: '/api/holds/acknowledge' },
};

/** The alarms that a path is about, or null. */
export function alarmOf(path: string): AlarmName | null {
  for (const name of ['gaps', 'holds'] as const)
    if (path === ALARM_PATHS[name].list || path === ALARM_PATHS[name].acknowledge) return name;
  return null;
}

/** The request is for one of the two paths of the alarms, with a valid ingest key and no body. */
export function answerAlarm(
  name: AlarmName,
  alarms: AlarmPort<object>,
  { path, method }: HttpRequest,
  grant: Grant,
): HttpAnswer | Promise<HttpAnswer> {
  if (grant.projects !== null)
    return permissionDenied(`this key is limited to some projects, and ${name} concern all of them`);
  if (path === ALARM_PATHS[name].acknowledge) {
    if (method !== 'POST') return methodNotAllowed(method, 'POST');
    return alarms.acknowledge().then((acknowledged) => jsonAnswer({ acknowledged }));
  }
  if (method !== 'GET' && method !== 'HEAD') return methodNotAllowed(method, 'GET, HEAD');
  return jsonAnswer({ [name]: alarms.open() });
}
