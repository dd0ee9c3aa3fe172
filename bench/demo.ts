/**
 * `npm run demo`: Logring on the embedded log with a temporary directory, fed over HTTP with realistic
 * traffic of a few projects from the past week and then live, until Ctrl-C, which leaves nothing behind.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND } from '../engine/time.js';
import { readConfig } from '../src/config.js';
import { type Service, startService } from '../src/service/service.js';
import { monotonicUs, wallClockUs } from '../src/system-clock.js';
import { createTraffic, type Traffic } from './generator/traffic.js';

const KEY = 'demo';
const PAST_ENTRY_COUNT = 24_000;
const POST_ENTRY_COUNT = 1_000;
const LIVE_ENTRIES_PER_SECOND = 40;

/**
 * Times of past entries: a quarter of them in each window, so that every interval of every query has data.
 */
const PAST_WINDOWS_US = [7 * US_PER_DAY, US_PER_DAY, US_PER_HOUR, 5 * US_PER_MINUTE];

const directory = mkdtempSync(join(tmpdir(), 'logring-demo-'));
let service: Service | null = null;
let liveTimer: NodeJS.Timeout | null = null;
let leaving = false;

async function leave(exitCode: number): Promise<void> {
  if (leaving) return;
  leaving = true;
  if (liveTimer !== null) clearInterval(liveTimer);
  await service?.stop();
  rmSync(directory, { recursive: true, force: true });
  process.exit(exitCode);
}

function fail(error: unknown): void {
  // A request that is cut off by leaving is no failure.
  if (leaving) return;
  process.stderr.write(`demo: ${error instanceof Error ? error.stack : String(error)}\n`);
  void leave(1);
}

async function post(url: string, sourceName: string, lines: readonly string[]): Promise<void> {
  const response = await fetch(`${url}/api/logs?source_name=${sourceName}`, {
    method: 'POST',
    headers: { 'X-API-KEY': KEY, 'Content-Type': 'application/x-ndjson' },
    body: lines.join('\n'),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`POST /api/logs answered ${response.status}: ${text}`);
}

async function feedPast(url: string, traffic: Traffic, edgeTopic: string, relayTopic: string): Promise<void> {
  const nowUs = wallClockUs();
  for (let sent = 0; sent < PAST_ENTRY_COUNT && !leaving; sent += 2 * POST_ENTRY_COUNT) {
    const times = Array.from({ length: POST_ENTRY_COUNT }, (_, i) => {
      const windowUs = PAST_WINDOWS_US[i % PAST_WINDOWS_US.length];
      return nowUs - Math.floor((windowUs * (i + 1)) / (POST_ENTRY_COUNT + 1)) - sent;
    });
    await post(url, edgeTopic, times.map(traffic.edge));
    await post(url, relayTopic, times.map(traffic.relay));
  }
}

function feedLive(url: string, traffic: Traffic, edgeTopic: string, relayTopic: string): void {
  liveTimer = setInterval(() => {
    const nowUs = wallClockUs();
    const times = Array.from(
      { length: LIVE_ENTRIES_PER_SECOND / 2 },
      (_, i) => nowUs - Math.floor((i * US_PER_SECOND) / LIVE_ENTRIES_PER_SECOND),
    );
    post(url, edgeTopic, times.map(traffic.edge))
      .then(() => post(url, relayTopic, times.map(traffic.relay)))
      .catch(fail);
  }, 1000);
}

function curlLine(url: string, endpoint: string, parameters: Record<string, string>): string {
  const query = new URLSearchParams(parameters).toString();
  return `curl -H 'X-API-KEY: ${KEY}' '${url}/api/endpoints/query/${endpoint}?${query}'`;
}

async function main(): Promise<void> {
  const config = readConfig({
    LOGRING_PORT: process.env.LOGRING_PORT ?? '0',
    LOGRING_HTTP_BACKEND: process.env.LOGRING_HTTP_BACKEND ?? 'auto',
    LOGRING_DATA_DIR: directory,
    LOGRING_API_KEYS: KEY,
    LOGRING_CACHE_SECONDS: '0',
  });
  service = await startService(config, {
    logger: pino({ level: 'warn' }, pino.destination(2)),
    clock: { nowUs: wallClockUs, monotonicUs },
    version: 'demo',
    onFatal: fail,
    announceKey: () => {},
  });
  const { url } = service;
  const traffic = createTraffic({ seed: 1, projectCount: 4 });
  process.stdout.write(`Logring runs at ${url} (${service.httpBackEnd}). Feeding it a week of logs…\n`);
  await feedPast(url, traffic, config.EDGE_TOPIC, config.RELAY_TOPIC);
  if (leaving) return;
  feedLive(url, traffic, config.EDGE_TOPIC, config.RELAY_TOPIC);
  const project = traffic.projects[0].ref;
  process.stdout.write(
    [
      `${PAST_ENTRY_COUNT} entries are in, ${LIVE_ENTRIES_PER_SECOND} more come every second. Try, in another terminal:`,
      '',
      curlLine(url, 'logs.all', { project, project_tier: 'PRO' }),
      '',
      curlLine(url, 'functions.invocation-stats', { project, interval: '1hr' }),
      '',
      curlLine(url, 'usage.api-counts', { project, interval: 'minutely' }),
      '',
      `Or look at it in a browser: ${url}/ (API key: ${KEY})`,
      '',
      'Ctrl-C ends it and removes its data.',
      '',
    ].join('\n'),
  );
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void leave(0));
process.stdout.on('error', () => void leave(0));
main().catch(fail);
