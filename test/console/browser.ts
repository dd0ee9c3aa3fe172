/**
 * The browser for the tests of the console: LOGRING_TEST_CHROMIUM, or a Chromium of this machine. Where none can be had
 * they are skipped with a line that says so; where the environment says CI that is a failure.
 */

import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';
import { describe, test } from 'vitest';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];
const ARGUMENTS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function findBrowser(): string | null {
  const given = process.env.LOGRING_TEST_CHROMIUM;
  if (given !== undefined && given !== '') return given;
  const folders = (process.env.PATH ?? '').split(delimiter);
  const candidates = [
    '/usr/bin/chromium',
    ...folders.flatMap((folder) => NAMES.map((name) => join(folder, name))),
  ];
  return candidates.find(isProgram) ?? null;
}

const path = findBrowser();

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath: path!, args: ARGUMENTS });
}

export function describeBrowser(name: string, body: () => void): void {
  if (path !== null) {
    describe(name, body);
    return;
  }
  const lack = 'no Chromium is on the PATH, and LOGRING_TEST_CHROMIUM names none';
  if (process.env.CI === undefined || process.env.CI === '') {
    describe(name, () => test.skip(`skipped: ${lack}`));
  } else {
    describe(name, () =>
      test('a browser can be had', () => {
        throw new Error(`${lack}: CI must have one`);
      }),
    );
  }
}
