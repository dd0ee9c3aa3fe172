/**
 * The soak, small: three brokers, a service that is killed, a broker that is restarted; and that it goes on
 * where it was stopped.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { describeKafka } from '../kafka/broker/kafka-suite.js';
import { USUAL } from './options.js';
import { runSoak } from './soak.js';

const SMALL = {
  ...USUAL,
  entriesPerSecond: 400,
  queriesPerSecond: 40,
  sampleSeconds: 2,
  projects: 20,
  edgePartitions: 2,
  relayPartitions: 2,
  pastSeconds: 10,
};

describeKafka('a soak', () => {
  test('that is stopped and goes on, through a kill and a broker that restarts, has no wrong answer on the way or in the end', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'logring-soak-'));
    const stop = new AbortController();
    const run = (seconds: number, signal: AbortSignal) =>
      runSoak(
        { ...SMALL, directory, seconds, killSeconds: 8, restartSeconds: 5 },
        (line) => {
          if (line.startsWith('killed')) stop.abort();
        },
        signal,
      );
    try {
      const stopped = await run(3_600, stop.signal);
      expect(stopped.isOver).toBe(false);
      const { isOver, figures, problems, findings } = await run(
        stopped.elapsedSeconds + 10,
        new AbortController().signal,
      );
      expect(isOver).toBe(true);
      expect(problems).toEqual([]);
      const wrongFile = join(directory, 'wrong.ndjson');
      expect(existsSync(wrongFile) ? readFileSync(wrongFile, 'utf8').slice(0, 10_000) : '').toBe('');
      expect(stopped.figures.wrong + figures.wrong).toBe(0);
      expect(stopped.figures.probed + figures.probed).toBeGreaterThan(0);
      expect(findings.map(({ text }) => text.split(':')[0])).toEqual([
        'answered',
        'heap after collection, MiB, beside entries kept',
        'resident, MiB, beside entries kept',
        'heap after collection, MiB, beside what is counted',
        'resident, MiB, beside what is counted',
        'descriptors, beside entries kept',
        'descriptors of other than files of the store',
        'files of the store held open',
        'rows',
        'disk',
      ]);
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  }, 600_000);
});
