/**
 * Realistic edge and relay log entries from a seed, in the shape and size of a platform's real ones (2.2 KB
 * and 1 KB): few busy projects and many quiet ones, random ids and hashes inside as real traffic has them, so
 * that what is measured on it, compression above all, means something. Cost: see `throughput` in the
 * generator's test.
 */

import { createClient } from '../../src/demo/clients.js';
import { edgeText, type Invocation, relayText } from '../../src/demo/entry-text.js';
import { Random, Zipf } from '../../src/demo/random.js';
import { drawRequest } from '../../src/demo/requests.js';

export interface TrafficOptions {
  readonly seed: number;
  readonly projectCount: number;
  /** How uneven the projects are; 0 is even. Default 1.05. */
  readonly zipfExponent?: number;
  /** The most functions a project has; each has at least one. Default 8. */
  readonly maxFunctionCount?: number;
  /** The share of requests whose URL has a query string, most of them unique. Default 0.45. */
  readonly queryStringShare?: number;
  /** The `project_tier` that a project's entries carry; null or absent: none. */
  readonly tierOf?: (projectIndex: number) => string | null;
}

export interface GeneratedFunction {
  readonly id: string;
  readonly name: string;
  readonly medianMs: number;
}

export interface GeneratedProject {
  readonly ref: string;
  readonly tier: string | null;
  readonly functions: readonly GeneratedFunction[];
}

export interface Traffic {
  /** In falling order of traffic. */
  readonly projects: readonly GeneratedProject[];
  /** The JSON text of an edge entry of some project. */
  edge(timestampUs: number): string;
  /** The JSON text of a relay entry of some function. */
  relay(timestampUs: number): string;
}

const CLIENT_COUNT = 500;
const FUNCTION_NAMES = [
  'heartbeat',
  'checkout',
  'send-mail',
  'resize',
  'webhook',
  'search',
  'sync',
  'report',
];
const EXECUTION_TIME_SPREAD = 0.9;

export function createTraffic(options: TrafficOptions): Traffic {
  const random = new Random(options.seed);
  const projects = Array.from({ length: options.projectCount }, (_, index) =>
    createProject(random, options.maxFunctionCount ?? 8, options.tierOf?.(index) ?? null),
  );
  const clients = Array.from({ length: CLIENT_COUNT }, () => createClient(random));
  const zipf = new Zipf(projects.length, options.zipfExponent ?? 1.05);
  const queryStringShare = options.queryStringShare ?? 0.45;

  return {
    projects,
    edge(timestampUs) {
      const project = projects[zipf.draw(random)];
      // Now and then another project's reference stands in the query string, as redirects have it.
      const other = projects[random.below(projects.length)].ref;
      const request = drawRequest(random, queryStringShare, other);
      return edgeText(random, timestampUs, project, request, random.pick(clients));
    },
    relay(timestampUs) {
      const project = projects[zipf.draw(random)];
      const client = random.pick(clients);
      return relayText(random, timestampUs, project, drawInvocation(random, project), client);
    },
  };
}

function createProject(random: Random, maxFunctionCount: number, tier: string | null): GeneratedProject {
  const functionCount = random.between(1, maxFunctionCount);
  const functions = Array.from({ length: functionCount }, (_, index) => ({
    id: random.uuid(),
    name: FUNCTION_NAMES[index % FUNCTION_NAMES.length],
    medianMs: Math.exp(Math.log(5) + random.float() * Math.log(100)),
  }));
  return { ref: random.letters(20), tier, functions };
}

function drawInvocation(random: Random, { functions }: GeneratedProject): Invocation {
  const invoked = random.pick(functions);
  const isPreflight = random.chance(0.25);
  const status = isPreflight ? 200 : drawFunctionStatus(random);
  const executionTimeMs = invoked.medianMs * Math.exp(random.normal() * EXECUTION_TIME_SPREAD);
  return { invoked, isPreflight, status, executionTimeMs };
}

function drawFunctionStatus(random: Random): number {
  if (random.chance(0.93)) return random.chance(0.9) ? 200 : 204;
  return random.pick([302, 400, 401, 404, 422, 429, 500, 500, 502, 503, 504, 546]);
}
