/**
 * `logring demo`: Logring on the embedded log with a temporary directory, fed over HTTP with made-up traffic
 * of the past week and then of the moment, until Ctrl-C, which leaves nothing behind.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay, setInterval } from 'node:timers/promises';
import { pino } from 'pino';
import { truncateUs, US_PER_DAY, US_PER_HOUR } from '../../engine/time.js';
import { readConfig } from '../config.js';
import type { ServiceStatus } from '../console/service-status.js';
import { watchParent } from '../parent-watch.js';
import { type Service, startService } from '../service/service.js';
import { monotonicUs, wallClockUs } from '../system-clock.js';
import { MadeUpTraffic, PROJECTS } from './made-up-traffic.js';

const HELP = `Usage: logring demo

Starts Logring on a free port, or on LOGRING_PORT, with a week of made-up logs, and feeds it more until Ctrl-C.
What it stores is in a temporary directory, which is removed at the end.
`;

const KEY = 'demo';
const SEED = 1;
const PAST_US = 7 * US_PER_DAY;
/**
 * What one POST holds of each log. Longer: the texts grow old in the heap, and collecting them takes longer
 * (at three hours an eighth more of the serving thread); shorter: more syncs of the disk.
 */
const POST_US = US_PER_HOUR;
/** Each waits for the disk; those that come meanwhile share the next sync. */
const POSTS_UNDER_WAY = 8;
const LIVE_EVERY_MS = 1000;
const APPLIED_CHECK_MS = 50;

/** The exit code, once it was asked to end and nothing is left. */
export async function runDemo(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  version: string,
): Promise<number> {
  if (args.length === 1 && args[0] === '--help') {
    process.stdout.write(HELP);
    return 0;
  }
  if (args.length > 0) {
    process.stderr.write(`logring demo: unknown argument: ${args.join(' ')} (see logring demo --help)\n`);
    return 2;
  }
  const { LOGRING_PORT = '0', LOGRING_HTTP_BACKEND = 'auto' } = environment;
  const ending = new AbortController();
  const end = () => ending.abort();
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, end);
  process.stdout.on('error', end);
  watchParent(environment, end);
  const directory = mkdtempSync(join(tmpdir(), 'logring-demo-'));
  let failure: unknown = null;
  let service: Service | null = null;
  try {
    const config = readConfig({
      LOGRING_PORT,
      LOGRING_HTTP_BACKEND,
      LOGRING_DATA_DIR: directory,
      LOGRING_API_KEYS: KEY,
      LOGRING_CACHE_SECONDS: '0',
    });
    service = await startService(config, {
      logger: pino({ level: 'warn' }, pino.destination(2)),
      clock: { nowUs: wallClockUs, monotonicUs },
      version,
      onFatal: (error) => {
        failure = error;
        end();
      },
      announceKey: () => {},
    });
    await show(service.url, { edge: config.EDGE_TOPIC, relay: config.RELAY_TOPIC }, ending.signal);
  } catch (error) {
    // What is cut off by the end is no failure.
    if (!ending.signal.aborted) failure = error;
  }
  try {
    await service?.stop();
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
  if (failure !== null) throw failure;
  return 0;
}

type Topics = Readonly<Record<'edge' | 'relay', string>>;

async function show(url: string, topics: Topics, signal: AbortSignal): Promise<void> {
  let nowUs = wallClockUs();
  const traffic = new MadeUpTraffic(SEED, nowUs);
  process.stdout.write('Feeding Logring a week of made-up logs…\n');
  let count = await feed(
    url,
    topics,
    traffic,
    { startUs: truncateUs(nowUs - PAST_US, US_PER_DAY), endUs: nowUs },
    signal,
  );
  await allApplied(url, signal);
  const isColoured = process.stdout.isTTY && (process.env.NO_COLOR ?? '') === '';
  process.stdout.write(`${count} entries are in, and more come.\n${guideText(url, isColoured)}`);
  for await (const _ of setInterval(LIVE_EVERY_MS, null, { signal })) {
    const sinceUs = nowUs;
    nowUs = Math.max(sinceUs, wallClockUs());
    count += await feed(url, topics, traffic, { startUs: sinceUs, endUs: nowUs }, signal);
  }
}

/** The past and the moment alike; returns how many entries. */
async function feed(
  url: string,
  topics: Topics,
  traffic: MadeUpTraffic,
  { startUs, endUs }: { readonly startUs: number; readonly endUs: number },
  signal: AbortSignal,
): Promise<number> {
  let count = 0;
  let underWay: Promise<void>[] = [];
  for (let fromUs = startUs; fromUs < endUs; fromUs += POST_US) {
    const entries = traffic.entries(fromUs, Math.min(endUs, fromUs + POST_US));
    count += entries.length;
    for (const log of ['edge', 'relay'] as const) {
      const lines = entries.filter((entry) => entry.log === log).map(({ text }) => text);
      if (lines.length > 0) underWay.push(post(url, topics[log], lines.join('\n'), signal));
    }
    if (underWay.length < POSTS_UNDER_WAY) continue;
    await Promise.all(underWay);
    underWay = [];
  }
  await Promise.all(underWay);
  return count;
}

async function post(url: string, topic: string, body: string, signal: AbortSignal): Promise<void> {
  const response = await fetch(`${url}/api/logs?source_name=${topic}`, {
    method: 'POST',
    headers: { 'X-API-KEY': KEY, 'Content-Type': 'application/x-ndjson' },
    body,
    signal,
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`POST /api/logs returned ${response.status}: ${text}`);
}

/** A POST's entries are on disk before its answer, and in answers soon after. */
async function allApplied(url: string, signal: AbortSignal): Promise<void> {
  for (;;) {
    const response = await fetch(`${url}/api/status`, { headers: { 'X-API-KEY': KEY }, signal });
    const { partitions } = (await response.json()) as ServiceStatus;
    if (partitions.every(({ nextOffset, endOffset }) => nextOffset === endOffset)) return;
    await delay(APPLIED_CHECK_MS, undefined, { signal });
  }
}

/** Where to look, and three questions to ask as they are printed. */
export function guideText(url: string, isColoured: boolean): string {
  const bold = (text: string) => (isColoured ? `\x1b[1m${text}\x1b[22m` : text);
  const cyan = (text: string) => (isColoured ? `\x1b[36m${text}\x1b[39m` : text);
  const [{ ref, tier, functions }] = PROJECTS;
  const console = `${url}/#/overview?${new URLSearchParams({ project: ref })}`;
  const curl = (endpoint: string, parameters: Record<string, string>) =>
    cyan(
      `curl -H 'X-API-KEY: ${KEY}' '${url}/api/endpoints/query/${endpoint}?${new URLSearchParams(parameters)}'`,
    );
  return `
${bold('The console')}, in a browser; the API key is ${bold(KEY)}:
${cyan(console)}

${bold('The newest logs')} of the project ${ref}:
${curl('logs.all', { project: ref, project_tier: tier ?? 'FREE' })}

${bold('A function that failed')} five hours ago, for twenty minutes:
${curl('functions.invocation-stats', { project: ref, function_id: functions[1].id, interval: '1day' })}

${bold('Requests by area of the API')}, each minute of the last hour:
${curl('usage.api-counts', { project: ref, interval: 'minutely' })}

Ctrl-C ends the demo and removes its data.
`;
}
