/** What must stay the same, whatever arrives and however often a service is started. */

import { createHash } from 'node:crypto';
import { US_PER_DAY } from '../engine/time.js';
import { wallClockUs } from '../src/system-clock.js';
import { ask } from '../test/child-service.js';
import type { GeneratedProject } from './generator/traffic.js';

type Row = Record<string, unknown>;

const READY_POLL_MS = 50;

interface PastQuestion {
  readonly path: string;
  readonly keep: (row: Row) => boolean;
}

/**
 * Answers that what arrives from now on must not change: windows of rows in the past, and the whole days of
 * the bucketed endpoints. Each check must find what the first one found.
 */
export class PastAnswers {
  readonly #questions: readonly PastQuestion[];
  #hash: string | null = null;

  /** `allUntilUs`: nothing arrives after that, so all up to it must stay. */
  constructor(projects: readonly GeneratedProject[], allUntilUs: number | null = null) {
    this.#questions = projects
      .slice(0, 30)
      .flatMap(({ ref }) => (allUntilUs === null ? pastDays(ref) : everything(ref, allUntilUs)));
  }

  get hash(): string {
    return this.#hash ?? '';
  }

  /** Waits until they are whole. */
  async check(url: string): Promise<void> {
    while ((await fetch(`${url}/readyz`)).status !== 200)
      await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS));
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

function pastDays(ref: string): PastQuestion[] {
  const todayUs = Math.floor(wallClockUs() / US_PER_DAY) * US_PER_DAY;
  const isPast = (bucketUs: number) =>
    bucketUs >= todayUs - 5 * US_PER_DAY && bucketUs < todayUs - US_PER_DAY;
  return [
    ...[1, 2, 3].map((days) => rowsUntil(ref, todayUs - days * US_PER_DAY)),
    {
      path: `/api/endpoints/query/functions.invocation-stats?project=${ref}&interval=7day`,
      keep: ({ timestamp }: Row) => isPast(Number(timestamp)),
    },
    {
      path: `/api/endpoints/query/usage.api-counts?project=${ref}&interval=daily`,
      keep: ({ timestamp }: Row) => isPast(Date.parse(`${timestamp}Z`) * 1000),
    },
  ];
}

function everything(ref: string, untilUs: number): PastQuestion[] {
  const keep = () => true;
  return [
    rowsUntil(ref, untilUs),
    { path: `/api/endpoints/query/functions.invocation-stats?project=${ref}&interval=7day`, keep },
    { path: `/api/endpoints/query/usage.api-counts?project=${ref}&interval=daily`, keep },
  ];
}

function rowsUntil(ref: string, untilUs: number): PastQuestion {
  const until = new Date(untilUs / 1000).toISOString();
  return {
    path: `/api/endpoints/query/logs.all?project=${ref}&project_tier=PRO&iso_timestamp_end=${until}`,
    keep: () => true,
  };
}
