/** What the log says of consumers that end. */

import { expect, test } from 'vitest';
import { ConsumerHealth } from '../../ingest/kafka/consumer/consumer-health.js';
import { KAFKA_TIMING } from '../../ingest/kafka/limits.js';

const REFUSED = 'the broker refuses';

function health() {
  const said: string[] = [];
  let nowMs = 0;
  const log = (level: string) => (fields: object, message: string) =>
    said.push(`${level} ${message} ${(fields as { error?: string }).error ?? ''}`.trim());
  const clock = { nowMs: () => nowMs } as ConstructorParameters<typeof ConsumerHealth>[1];
  const logger = { info: log('info'), warn: log('warn'), error: log('error') };
  const refusalOf = (error: unknown) => ((error as Error).message === 'refused' ? REFUSED : null);
  const watched = new ConsumerHealth(KAFKA_TIMING, clock, logger, refusalOf);
  return {
    said,
    end: (afterMs: number, message: string) => {
      watched.opened(0);
      nowMs += afterMs;
      watched.ended(new Error(message));
    },
  };
}

test('a consumer that ends once is a warning, one that ends again and again an error', () => {
  const { said, end } = health();
  const ended = 'kafka: the consumer ended and is restarted';
  end(1, 'no coordinator');
  end(1, 'no coordinator');
  end(KAFKA_TIMING.stallMs + 1, 'cut off');
  expect(said).toEqual([
    `warn ${ended} no coordinator`,
    `error ${ended} no coordinator`,
    `warn ${ended} cut off`,
  ]);
});

test('what only an operator can mend is an error at once, and said once', () => {
  const { said, end } = health();
  end(1, 'refused');
  end(1, 'refused');
  expect(said).toEqual([`error kafka: ${REFUSED} refused`]);
});
