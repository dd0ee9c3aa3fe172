/**
 * `npm run screenshots`: pictures of every part of the console over the demo's traffic, at desktop and phone
 * width, light and dark, for people to look at. They go to .cache/screenshots, or to the folder that is
 * given.
 */

import { spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Page } from 'playwright-core';
import { MAIN } from '../child-service.js';
import { launchBrowser } from './browser.js';

const SIZES = { desktop: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } };
const folder = process.argv[2] ?? '.cache/screenshots';
mkdirSync(folder, { recursive: true });

const demo = spawn(process.execPath, [MAIN, 'demo'], { stdio: ['ignore', 'pipe', 'inherit'] });
process.on('exit', () => demo.kill('SIGKILL'));

async function demoAddress(): Promise<{ url: string; project: string }> {
  for await (const line of createInterface({ input: demo.stdout })) {
    const [, url, project] = /^(http\S+\/)#\S+[?&]project=([^&]+)/.exec(line) ?? [];
    if (url !== undefined) return { url, project };
  }
  throw new Error('the demo ended before it said where the console is');
}

const key = 'demo';
const { url, project } = await demoAddress();
// For a look at dead letters too.
await fetch(`${url}api/logs?source_name=cloudflare.logs.prod`, {
  method: 'POST',
  headers: { 'X-API-KEY': key },
  body: '[{"event_message":"whose?","metadata":{"request":{"path":"/"}}},17,{"project":"p","timestamp":"yesterday"}]',
});

/** What is shown in each picture, and what to do first. */
const VIEWS: Record<string, { hash: string; prepare?: (page: Page) => Promise<void> }> = {
  'logs-choice': { hash: '#/logs' },
  overview: {
    hash: `#/overview?project=${project}`,
    prepare: (page) => page.locator('#overview-functions .link').first().waitFor(),
  },
  logs: { hash: `#/logs?project=${project}&tier=PRO&range=1h` },
  'logs-open': {
    hash: `#/logs?project=${project}&tier=PRO&range=1h`,
    prepare: (page) => page.locator('.entry-line').nth(2).click(),
  },
  'logs-follow': {
    hash: `#/logs?project=${project}&tier=PRO&range=1h&follow=1`,
    prepare: async (page) => {
      await page.locator('.fresh').first().waitFor();
      await page.mouse.move(200, 600);
      await page.mouse.wheel(0, 700);
      await page.getByText('Following is paused').waitFor();
    },
  },
  'logs-dragged': {
    hash: `#/logs?project=${project}&tier=PRO&range=1d`,
    prepare: (page) => page.locator('#logs-histogram .u-over').click({ position: { x: 150, y: 50 } }),
  },
  keys: { hash: `#/logs?project=${project}`, prepare: (page) => page.keyboard.press('?') },
  'logs-none': { hash: '#/logs?project=nobody&tier=FREE&range=15m' },
  'functions-5min': { hash: `#/functions?project=${project}&interval=5min` },
  functions: {
    hash: `#/functions?project=${project}&interval=1hr`,
    prepare: (page) => page.locator('#functions .u-over').first().hover(),
  },
  'functions-1day': { hash: `#/functions?project=${project}&interval=1day` },
  'functions-7day': { hash: `#/functions?project=${project}&interval=7day` },
  'usage-refused': { hash: '#/usage?project=a(' },
  usage: { hash: `#/usage?project=${project}&interval=minutely` },
  'usage-daily': {
    hash: `#/usage?project=${project}&interval=daily`,
    prepare: (page) => page.locator('#usage').getByText('Numbers').click(),
  },
  ingest: { hash: '#/ingest', prepare: (page) => page.waitForTimeout(2500) },
};

const browser = await launchBrowser();
for (const [size, viewport] of Object.entries(SIZES)) {
  for (const colorScheme of ['light', 'dark'] as const) {
    const page = await browser.newPage({ viewport, colorScheme });
    const picture = (name: string) =>
      page.screenshot({
        path: join(folder, `${name}-${size}-${colorScheme}.png`),
        fullPage: !/^(logs|keys)/.test(name),
      });
    await page.goto(url);
    await page.getByLabel('API key').waitFor();
    await picture('sign-in');
    await page.getByLabel('API key').fill(key);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('navigation').waitFor();
    for (const [name, { hash, prepare }] of Object.entries(VIEWS)) {
      await page.goto(url + hash);
      await page.waitForLoadState('networkidle');
      await prepare?.(page);
      await page.waitForTimeout(250);
      await picture(name);
      await page.keyboard.press('Escape');
    }
    await page.close();
  }
}
await browser.close();
demo.kill('SIGINT');
await new Promise((resolve) => demo.once('exit', resolve));
