/** What the web console asks beside the three endpoints, each with a key that may query: which projects there are. */

import type { Page } from './api.js';
import type { Grant } from './auth.js';
import { JSON_CONTENT_TYPE, NO_STORE } from './errors.js';
import { LISTED_PROJECT_LIMIT } from './limits.js';
import type { HttpAnswer } from './server.js';

export interface ConsolePort {
  /** Projects with logs, the busiest first. */
  projects(nowUs: number, limit: number): readonly string[];
}

export function consoleApi(port: ConsolePort): Map<string, Page> {
  return new Map([
    ['/api/projects', { needsKey: true, answer: (_, nowUs, grant) => projects(port, nowUs, grant!) }],
  ]);
}

/** `{"projects":[…],"limited":…}`: of a key that is limited to projects, just these. */
function projects(port: ConsolePort, nowUs: number, grant: Grant): HttpAnswer {
  const limited = grant.projects !== null;
  const names = grant.projects === null ? port.projects(nowUs, LISTED_PROJECT_LIMIT) : [...grant.projects];
  return jsonAnswer({ projects: names, limited });
}

function jsonAnswer(body: object): HttpAnswer {
  return { status: 200, headers: [JSON_CONTENT_TYPE, NO_STORE], body: JSON.stringify(body), close: false };
}
