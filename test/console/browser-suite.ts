/**
 * A suite of tests that needs a browser. Where there isn't one it is skipped with a line that says so; where
 * the environment says CI that is a failure.
 */

import { describe, test } from 'vitest';
import { browserUnavailable } from './browser.js';

export function describeBrowser(name: string, body: () => void): void {
  if (browserUnavailable === null) {
    describe(name, body);
  } else if (process.env.CI === undefined || process.env.CI === '') {
    describe(name, () => test.skip(`skipped: ${browserUnavailable}`));
  } else {
    describe(name, () =>
      test('a browser is there', () => {
        throw new Error(`${browserUnavailable}: CI must have one`);
      }),
    );
  }
}
