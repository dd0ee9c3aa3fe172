/**
 * A whole service with logs to look at, and pages of one browser that note whatever a console must not do.
 */

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { monotonicUs, wallClockUs } from '../../src/system-clock.js';
import { startClockedService } from '../clocked-service.js';
import { launchBrowser } from './browser.js';

export const KEY = 'key-for-all';
export const LIMITED_KEY = 'key-for-shop';
export const EDGE = 'cloudflare.logs.prod';
export const RELAY = 'deno-relay-logs';

interface LoggedService {
  readonly url: string;
  /** Posts entries and waits until answers have them. */
  post(sourceName: string, entries: readonly object[]): Promise<void>;
  stop(): Promise<void>;
}

async function startLoggedService(): Promise<LoggedService> {
  const directory = await mkdtemp(join(tmpdir(), 'logring-console-'));
  const service = await startClockedService(
    {
      LOGRING_DATA_DIR: directory,
      LOGRING_API_KEYS: `${KEY},${LIMITED_KEY}=shop`,
      LOGRING_CACHE_SECONDS: '900',
      LOGRING_EDGE_TOPIC: EDGE,
      LOGRING_RELAY_TOPIC: RELAY,
    },
    { nowUs: wallClockUs, monotonicUs },
  );
  return {
    url: service.url,
    post: (sourceName, entries) => postTo(service.url, KEY, sourceName, JSON.stringify(entries)),
    async stop() {
      await service.stop();
      await rm(directory, { recursive: true });
    },
  };
}

/** Posts a body, and waits until the service is ready again. */
export async function postTo(url: string, key: string, sourceName: string, body: string): Promise<void> {
  const response = await fetch(`${url}/api/logs?source_name=${sourceName}`, {
    method: 'POST',
    headers: { 'X-API-KEY': key },
    body,
  });
  if (!response.ok) throw new Error(`POST /api/logs answered ${response.status}: ${await response.text()}`);
  // With a lag of 0 allowed, ready means that no record is left to read; each round trip lets the service
  // work on.
  while ((await fetch(`${url}/readyz`)).status !== 200);
}

/** Microseconds since the epoch, so long ago. */
export function ago(seconds: number): number {
  return wallClockUs() - Math.round(seconds * 1_000_000);
}

/** An edge entry as a platform writes it. */
export function edgeEntry(project: string, timestamp: number, path: string, statusCode = 200): object {
  const url = `https://${project}.example.co${path}`;
  return {
    project,
    timestamp,
    event_message: `GET | ${statusCode} | ${url}`,
    metadata: {
      request: { method: 'GET', url, path },
      response: { status_code: statusCode },
    },
  };
}

export class Rig {
  readonly browser: Browser;
  readonly service: LoggedService;
  /** Of all pages: dialogs, requests to other origins, violations of the policy, uncaught errors. */
  readonly misdeeds: string[] = [];

  private constructor(browser: Browser, service: LoggedService) {
    this.browser = browser;
    this.service = service;
  }

  static async start(): Promise<Rig> {
    const [browser, service] = await Promise.all([launchBrowser(), startLoggedService()]);
    return new Rig(browser, service);
  }

  async stop(): Promise<void> {
    await this.browser.close();
    await this.service.stop();
  }

  /** A new tab, as a new visitor has it, at an address such as `#/logs`. */
  async open(
    hash = '',
    options: Parameters<Browser['newContext']>[0] = {},
    url = this.service.url,
    script = '',
  ): Promise<Page> {
    const context = await this.browser.newContext({
      timezoneId: 'Asia/Kolkata',
      locale: 'en-GB',
      ...options,
    });
    this.#watch(context, url);
    await context.addInitScript(script);
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    await page.goto(`${url}/${hash}`);
    return page;
  }

  /** The same, with the key in the tab's session already. */
  openSignedIn(hash = '', options: Parameters<Browser['newContext']>[0] = {}): Promise<Page> {
    const script = `if (origin !== 'null') sessionStorage.setItem('logring-key', '${KEY}')`;
    return this.open(hash, options, this.service.url, script);
  }

  #watch(context: BrowserContext, url: string): void {
    context.on('dialog', (dialog) => {
      this.misdeeds.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    context.on('request', (request) => {
      if (new URL(request.url()).origin !== url) this.misdeeds.push(`request: ${request.url()}`);
    });
    context.on('weberror', (error) => this.misdeeds.push(`error: ${error.error().message}`));
    context.on('console', (message) => {
      if (/Content.Security.Policy|Trusted/i.test(message.text()))
        this.misdeeds.push(`policy: ${message.text()}`);
    });
  }
}

export async function signIn(page: Page, key: string): Promise<void> {
  await page.getByLabel('API key').fill(key);
  await page.getByRole('button', { name: 'Sign in' }).click();
}

/** A function's entry as a platform writes it. */
export function relayEntry(
  project: string,
  timestamp: number,
  functionId: string,
  executionTimeMs: number,
  statusCode = 200,
): object {
  return {
    timestamp,
    event_message: `POST | ${statusCode}`,
    metadata: {
      project_ref: project,
      function_id: functionId,
      execution_time_ms: executionTimeMs,
      response: { status_code: statusCode },
    },
  };
}
