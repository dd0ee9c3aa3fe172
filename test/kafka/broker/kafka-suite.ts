/**
 * A suite of tests that needs a broker. Where there isn't one it is skipped with a line that says so; where
 * the environment says CI that is a failure.
 */

import { describe, test } from 'vitest';
import { kafkaUnavailable } from './broker.js';

export function describeKafka(name: string, body: () => void): void {
  if (kafkaUnavailable === null) {
    describe(name, body);
  } else if (process.env.CI === undefined || process.env.CI === '') {
    describe(name, () => test.skip(`skipped: ${kafkaUnavailable}`));
  } else {
    describe(name, () =>
      test('a broker is there', () => {
        throw new Error(`${kafkaUnavailable}: CI must have a broker`);
      }),
    );
  }
}
