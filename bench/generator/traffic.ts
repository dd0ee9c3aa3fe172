/**
 * Realistic edge and relay log entries from a seed, in the shape and size of a platform's real ones (2.2 KB
 * and 1 KB): few busy projects and many quiet ones, random ids and hashes inside as real traffic has them, so
 * that what is measured on it, compression above all, means something. Cost: see `throughput` in the
 * generator's test.
 */

import { type Client, createClient } from './clients.js';
import { Random, Zipf } from './random.js';
import { drawRequest, type RequestLine } from './requests.js';

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
const INTEGER_TIME_SHARE = 0.7;

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
      return relayText(random, timestampUs, project, random.pick(clients));
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

function tierMember(project: GeneratedProject): string {
  return project.tier === null ? '' : `"project_tier":${JSON.stringify(project.tier)},`;
}

/** The date of a response header; whole seconds repeat, so the last one is kept. */
let lastSecond = Number.NaN;
let lastHttpDate = '';
function httpDate(timestampUs: number): string {
  const second = Math.floor(timestampUs / 1_000_000);
  if (second !== lastSecond) {
    lastSecond = second;
    lastHttpDate = new Date(second * 1_000).toUTCString();
  }
  return lastHttpDate;
}

function edgeText(
  random: Random,
  timestampUs: number,
  project: GeneratedProject,
  request: RequestLine,
  client: Client,
): string {
  const host = `${project.ref}.supabase.co`;
  const url = `https://${host}${request.path}${request.search}`;
  const ray = random.hex(16);
  const search = request.search === '' ? '' : `"search":"${request.search}",`;
  return (
    `{"id":"${random.uuid()}","timestamp":${timestampUs},` +
    `"event_message":"${request.method} | ${request.status} | ${client.ip} | ${ray} | ${url} | ${client.userAgent}",` +
    `"project":"${project.ref}",${tierMember(project)}` +
    `"metadata":{"logflare_worker":{"worker_id":"${random.hex8().toUpperCase()}"},"request":{"cf":{` +
    `${client.cfMembers},"tlsExportedAuthenticator":{"clientFinished":"${random.hex(64)}",` +
    `"clientHandshake":"${random.hex(64)}","serverFinished":"${random.hex(64)}",` +
    `"serverHandshake":"${random.hex(64)}"},"tlsVersion":"TLSv1.3"},` +
    `"headers":{"accept":"application/json","cf_connecting_ip":"${client.ip}",` +
    `"cf_ipcountry":"${client.country}","cf_ray":"${ray}","host":"${host}",` +
    `"referer":"https://app.${project.ref}.example/","user_agent":"${client.userAgent}",` +
    `"x_forwarded_proto":"https","x_real_ip":"${client.ip}"},"host":"${host}","method":"${request.method}",` +
    `"path":"${request.path}","protocol":"https:",${search}"url":"${url}"},` +
    `"response":{"headers":{"cf_cache_status":"${random.chance(0.2) ? 'HIT' : 'DYNAMIC'}",` +
    `"cf_ray":"${ray}-${client.colo}","content_length":"${random.below(60_000)}",` +
    `"content_type":"application/json","date":"${httpDate(timestampUs)}","sb_gateway_mode":"direct",` +
    `"sb_gateway_version":"1"},"origin_time":${random.between(2, 900)},"status_code":${request.status}}}}`
  );
}

function relayText(random: Random, timestampUs: number, project: GeneratedProject, client: Client): string {
  const invoked = random.pick(project.functions);
  const preflight = random.chance(0.25);
  const method = preflight ? 'OPTIONS' : 'POST';
  const status = preflight ? 200 : drawFunctionStatus(random);
  const spread = Math.exp(random.normal() * EXECUTION_TIME_SPREAD);
  const executionTimeMs = invoked.medianMs * spread;
  const timeText = random.chance(INTEGER_TIME_SHARE)
    ? String(Math.round(executionTimeMs))
    : executionTimeMs.toFixed(3);
  const search = random.chance(0.3) ? `?time=${Math.floor(timestampUs / 1_000)}` : '';
  const pathname = `/${invoked.name}`;
  const url = `https://${project.ref}.functions.supabase.co${pathname}${search}`;
  const version = 1 + (invoked.id.charCodeAt(0) % 30);
  const searchMember = search === '' ? '' : `"search":"${search}",`;
  return (
    `{"id":"${random.uuid()}","timestamp":${timestampUs},"event_message":"${method} | ${status} | ${url}",` +
    `${tierMember(project)}"metadata":{"deployment_id":"${project.ref}_${invoked.id}_${version}",` +
    `"execution_time_ms":${timeText},"function_id":"${invoked.id}","project_ref":"${project.ref}",` +
    `"request":{"headers":{"accept":"*/*","accept_encoding":"gzip, deflate, br",` +
    `"content_length":"${preflight ? 0 : random.below(4_000)}","host":"${project.ref}.functions.supabase.co",` +
    `"user_agent":"${client.userAgent}","x_forwarded_for":"${client.ip}"},"host":"edge-runtime.internal",` +
    `"method":"${method}","pathname":"${pathname}","protocol":"https:",${searchMember}"url":"${url}"},` +
    `"response":{"headers":{"content_length":"${random.below(9_000)}",` +
    `"content_type":"text/plain;charset=UTF-8","date":"${httpDate(timestampUs)}","server":"edge/${client.colo}",` +
    `"vary":"Accept-Encoding"},"status_code":${status}},"version":"${version}"}}`
  );
}

function drawFunctionStatus(random: Random): number {
  if (random.chance(0.93)) return random.chance(0.9) ? 200 : 204;
  return random.pick([302, 400, 401, 404, 422, 429, 500, 500, 502, 503, 504, 546]);
}
