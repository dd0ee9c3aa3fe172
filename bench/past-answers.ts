/** What must stay the same, whatever arrives and however often a service is started. */

import { createHash } from 'node:crypto';
import { US_PER_DAY } from '../engine/time.js';
import { wallClockUs } from '../src/system-clock.js';
import { ask } from '../test/child-service.js';
import type { GeneratedProject } from './generator/traffic.js';

/**
 * Answers that what arrives from now on must not change: windows of rows in the past, and the whole days of the bucketed
 * endpoints. Each check must find what the first one found.
 */
export class PastAnswers {
  readonly #questions: readonly {
    readonly path: string;
    readonly keep: (row: Record<string, unknown>) => boolean;
  }[];
  #hash: string | null = null;

  constructor(projects: readonly GeneratedProject[]) {
    const todayUs = Math.floor(wallClockUs() / US_PER_DAY) * US_PER_DAY;
    const oldestUs = todayUs - 5 * US_PER_DAY;
    const iso = (timestampUs: number) => new Date(timestampUs / 1000).toISOString();
    this.#questions = projects.slice(0, 30).flatMap(({ ref }) => [
      ...[1, 2, 3].map((days) => ({
        path: `/api/endpoints/query/logs.all?project=${ref}&project_tier=PRO&iso_timestamp_end=${iso(todayUs - days * US_PER_DAY)}`,
        keep: () => true,
      })),
      {
        path: `/api/endpoints/query/functions.invocation-stats?project=${ref}&interval=7day`,
        keep: ({ timestamp }: Record<string, unknown>) =>
          Number(timestamp) >= oldestUs && Number(timestamp) < todayUs - US_PER_DAY,
      },
      {
        path: `/api/endpoints/query/usage.api-counts?project=${ref}&interval=daily`,
        keep: ({ timestamp }: Record<string, unknown>) => {
          const bucketUs = Date.parse(`${timestamp}Z`) * 1000;
          return bucketUs >= oldestUs && bucketUs < todayUs - US_PER_DAY;
        },
      },
    ]);
  }

  get hash(): string {
    return this.#hash ?? '';
  }

  async check(url: string): Promise<void> {
    const hash = createHash('sha256');
    let rowCount = 0;
    for (const { path, keep } of this.#questions) {
      const kept = (await ask(url, path)).result.filter(keep);
      rowCount += kept.length;
      hash.update(JSON.stringify(kept));
    }
    const found = `${hash.digest('hex').slice(0, 16)} over ${rowCount} rows`;
    if (rowCount === 0) throw new Error('the answers to compare are empty');
    if (this.#hash !== null && found !== this.#hash) {
      throw new Error(`answers about the past changed: ${this.#hash}, then ${found}`);
    }
    this.#hash = found;
  }
}
