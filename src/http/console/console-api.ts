/**
 * What the web console asks beside the endpoints, each with a key that may query: which projects there
 * are, which functions one has, and how the service is.
 */

import type { ServiceStatus } from '../../console/service-status.js';
import { CallParameters, projectName } from '../../endpoints/call-parameters.js';
import { quoted } from '../../quoted.js';
import type { Page } from '../api.js';
import { allows, type Grant } from '../auth.js';
import { invalidArgument, jsonAnswer, permissionDenied } from '../errors.js';
import { LISTED_FUNCTION_LIMIT, LISTED_PROJECT_LIMIT } from '../limits.js';
import { decodeQuery } from '../query/query-string.js';
import type { HttpAnswer, HttpRequest } from '../server/server.js';

export const PROJECTS_PATH = '/api/projects';
export const FUNCTIONS_PATH = '/api/functions';
export const STATUS_PATH = '/api/status';

export const functionsCall = new CallParameters({ project: projectName }, (wire) => ({
  project: wire.project,
}));

export interface NamedCount {
  readonly id: string;
  /** Its entries of the last days, whole UTC days as `7day` has them. */
  readonly count: number;
}

/** For the console to offer. Either may throw, or reject with, Unavailable. */
export interface Names {
  /** Projects with logs, the busiest first. */
  projects(nowUs: number, limit: number): Promise<readonly string[]>;
  /** The functions of a project, the busiest first. */
  functions(project: string, nowUs: number, limit: number): Promise<readonly NamedCount[]>;
}

export interface ConsolePort {
  readonly names: Names;
  /** null: then nothing is at its address. */
  readonly status: ((nowUs: number) => ServiceStatus) | null;
}

export function consoleApi(port: ConsolePort): Map<string, Page> {
  const page = (answer: Page['answer']): Page => ({ needsKey: true, answer });
  const { status } = port;
  return new Map([
    [PROJECTS_PATH, page((_, nowUs, grant) => projects(port, nowUs, grant!))],
    ...(status === null
      ? []
      : [[STATUS_PATH, page((_, nowUs, grant) => statusAnswer(status, nowUs, grant!))] as const]),
    [FUNCTIONS_PATH, page((request, nowUs, grant) => functions(port, request, nowUs, grant!))],
  ]);
}

/** `{"projects":[…],"limited":…}`: of a key that is limited to projects, just these. */
async function projects(port: ConsolePort, nowUs: number, grant: Grant): Promise<HttpAnswer> {
  if (grant.projects !== null) return jsonAnswer({ projects: [...grant.projects], limited: true });
  return jsonAnswer({ projects: await port.names.projects(nowUs, LISTED_PROJECT_LIMIT), limited: false });
}

/** `{"functions":[{"id":…,"count":…}]}` of the parameter `project`. */
async function functions(
  port: ConsolePort,
  request: HttpRequest,
  nowUs: number,
  grant: Grant,
): Promise<HttpAnswer> {
  const parsed = functionsCall.parse(decodeQuery(request.rawQuery));
  if (!parsed.ok) return invalidArgument(parsed.problems);
  const { project } = parsed.parameters;
  if (!allows(grant, project))
    return permissionDenied(`this key is limited to other projects than ${quoted(project)}`);
  return jsonAnswer({ functions: await port.names.functions(project, nowUs, LISTED_FUNCTION_LIMIT) });
}

/** A ServiceStatus. */
function statusAnswer(status: (nowUs: number) => ServiceStatus, nowUs: number, grant: Grant): HttpAnswer {
  if (grant.projects !== null)
    return permissionDenied('this key is limited to some projects, and the status concerns all of them');
  return jsonAnswer(status(nowUs));
}
