/** What the web console asks beside the three endpoints, each with a key that may query: which projects there are, and which functions one has. */

import type { Page } from './api.js';
import { allows, type Grant } from './auth.js';
import { invalidArgument, JSON_CONTENT_TYPE, NO_STORE, permissionDenied, quoted } from './errors.js';
import { LISTED_FUNCTION_LIMIT, LISTED_PROJECT_LIMIT } from './limits.js';
import { functionsCall } from './parameters.js';
import { decodeQuery } from './query-string.js';
import type { HttpAnswer, HttpRequest } from './server.js';

export interface ConsolePort {
  /** Projects with logs, the busiest first. */
  projects(nowUs: number, limit: number): readonly string[];
  /** The functions of a project with their entries of the last days, the busiest first. */
  functions(
    project: string,
    nowUs: number,
  ): Promise<readonly { readonly id: string; readonly count: number }[]>;
}

export function consoleApi(port: ConsolePort): Map<string, Page> {
  const page = (answer: Page['answer']): Page => ({ needsKey: true, answer });
  return new Map([
    ['/api/projects', page((_, nowUs, grant) => projects(port, nowUs, grant!))],
    ['/api/functions', page((request, nowUs, grant) => functions(port, request, nowUs, grant!))],
  ]);
}

/** `{"projects":[…],"limited":…}`: of a key that is limited to projects, just these. */
function projects(port: ConsolePort, nowUs: number, grant: Grant): HttpAnswer {
  const limited = grant.projects !== null;
  const names = grant.projects === null ? port.projects(nowUs, LISTED_PROJECT_LIMIT) : [...grant.projects];
  return jsonAnswer({ projects: names, limited });
}

/** `{"functions":[{"id":…,"count":…}]}` of the parameter `project`. */
function functions(
  port: ConsolePort,
  request: HttpRequest,
  nowUs: number,
  grant: Grant,
): HttpAnswer | Promise<HttpAnswer> {
  const parsed = functionsCall.parse(decodeQuery(request.rawQuery));
  if (!parsed.ok) return invalidArgument(parsed.problems);
  const { project } = parsed.parameters;
  if (!allows(grant, project))
    return permissionDenied(`this key is limited to other projects than ${quoted(project)}`);
  return port
    .functions(project, nowUs)
    .then((known) => jsonAnswer({ functions: known.slice(0, LISTED_FUNCTION_LIMIT) }));
}

function jsonAnswer(body: object): HttpAnswer {
  return { status: 200, headers: [JSON_CONTENT_TYPE, NO_STORE], body: JSON.stringify(body), close: false };
}
