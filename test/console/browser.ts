/** The browser for the tests of the console: LOGRING_TEST_CHROMIUM, or a Chromium of this machine. */

import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

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

/** Why there is no browser, or null. */
export const browserUnavailable =
  path === null ? 'no Chromium is on the PATH, and LOGRING_TEST_CHROMIUM names none' : null;

export function launchBrowser(): Promise<Browser> {
  if (path === null) throw new Error(browserUnavailable!);
  return chromium.launch({ executablePath: path, args: ARGUMENTS });
}
