/**
 * The JSON text of made-up entries, in the shape and size of a platform's real ones: 2.2 KB from the edge,
 * 1 KB from the relay of functions.
 */

import type { Client } from './clients.js';
import type { Random } from './random.js';
import type { RequestLine } from './requests.js';

export interface EntryProject {
  readonly ref: string;
  /** The `project_tier` that its entries carry; null: none. */
  readonly tier: string | null;
}

/** A call of a function. */
export interface Invocation {
  readonly invoked: { readonly id: string; readonly name: string };
  readonly isPreflight: boolean;
  readonly status: number;
  readonly executionTimeMs: number;
}

const INTEGER_TIME_SHARE = 0.7;

function tierMember(project: EntryProject): string {
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

export function edgeText(
  random: Random,
  timestampUs: number,
  project: EntryProject,
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

export function relayText(
  random: Random,
  timestampUs: number,
  project: EntryProject,
  { invoked, isPreflight, status, executionTimeMs }: Invocation,
  client: Client,
): string {
  const method = isPreflight ? 'OPTIONS' : 'POST';
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
    `"content_length":"${isPreflight ? 0 : random.below(4_000)}","host":"${project.ref}.functions.supabase.co",` +
    `"user_agent":"${client.userAgent}","x_forwarded_for":"${client.ip}"},"host":"edge-runtime.internal",` +
    `"method":"${method}","pathname":"${pathname}","protocol":"https:",${searchMember}"url":"${url}"},` +
    `"response":{"headers":{"content_length":"${random.below(9_000)}",` +
    `"content_type":"text/plain;charset=UTF-8","date":"${httpDate(timestampUs)}","server":"edge/${client.colo}",` +
    `"vary":"Accept-Encoding"},"status_code":${status}},"version":"${version}"}}`
  );
}
