/**
 * The naive twin of the usage view: all entries in an array, answered by filter. And what tests of both need.
 */

import { RE2JS } from 're2js';
import { assert } from '../../engine/assert.js';
import type { EdgeEntry } from '../../engine/entry.js';
import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../../engine/time.js';
import type { ApiCountsAsk, ApiCountsRow, UsageInterval } from '../../engine/usage/api-counts.js';
import { ExpressionEvaluation } from '../../engine/usage/expressions/expression-evaluation.js';
import { knownCounts } from '../../engine/usage/partial.js';
import type { UsageView } from '../../engine/usage/usage-view.js';
import { rowsOfCounts } from '../queries.js';
import { type BlocksOf, matchHere, NO_FILES } from './match-here.js';

export function edgeEntry(timestampUs: number, urlText: string | null, areas: number): EdgeEntry {
  const url = urlText === null ? null : Buffer.from(urlText);
  return {
    timestampUs,
    project: 'p',
    tierClass: '7d',
    idHash: 0,
    row: new Uint8Array(0),
    url,
    areas,
    outcome: 0,
  };
}

export class NaiveUsage {
  entries: EdgeEntry[] = [];

  apply(entry: EdgeEntry): void {
    this.entries.push(entry);
  }

  expire(nowUs: number): void {
    this.entries = this.entries.filter(
      ({ timestampUs }) => (Math.floor(timestampUs / US_PER_HOUR) + 1) * US_PER_HOUR > nowUs - 7 * US_PER_DAY,
    );
  }

  query(expression: string, interval: UsageInterval, nowUs: number): ApiCountsRow[] {
    const pattern = RE2JS.compile(expression);
    const [windowUs, bucketUs] = {
      hourly: [US_PER_HOUR, US_PER_HOUR],
      daily: [7 * US_PER_DAY, US_PER_DAY],
      minutely: [60 * US_PER_MINUTE, US_PER_MINUTE],
    }[interval];
    const rows = new Map<number, ApiCountsRow>();
    for (const { timestampUs, url, areas } of this.entries) {
      if (url === null || timestampUs < nowUs - windowUs || timestampUs > nowUs) continue;
      if (!pattern.test(Buffer.from(url).toString())) continue;
      const bucketStartUs = Math.floor(timestampUs / bucketUs) * bucketUs;
      const row = rows.get(bucketStartUs) ?? { bucketStartUs, rest: 0, storage: 0, auth: 0, realtime: 0 };
      rows.set(bucketStartUs, {
        bucketStartUs,
        rest: row.rest + (areas & 1),
        storage: row.storage + ((areas & 2) >> 1),
        auth: row.auth + ((areas & 4) >> 2),
        realtime: row.realtime + ((areas & 8) >> 3),
      });
    }
    return [...rows.values()].sort((a, b) => a.bucketStartUs - b.bucketStartUs);
  }
}

/** One line a bucket: `start rest/storage/auth/realtime`. */
export function rowsText(rows: readonly ApiCountsRow[]): string {
  return rows
    .map(({ bucketStartUs, rest, storage, auth, realtime }) => {
      return `${bucketStartUs} ${rest}/${storage}/${auth}/${realtime}`;
    })
    .join('\n');
}

/**
 * Takes an evaluation to its end, in slices and batches of the given sizes; between them `meanwhile` may do
 * as it likes.
 */
export function finishEvaluation(
  evaluation: ExpressionEvaluation,
  expression: string,
  sliceBytes: number,
  batchBytes: number,
  meanwhile: () => void = () => undefined,
  blocksOf: BlocksOf = NO_FILES,
): void {
  for (;;) {
    const state = evaluation.advance(sliceBytes);
    if (state === 'ready') return;
    if (state === 'waiting') matchHere(evaluation, expression, batchBytes, blocksOf);
    meanwhile();
  }
}

export function queryNow(
  views: readonly UsageView[],
  expression: string,
  ask: ApiCountsAsk,
  blocksOf?: BlocksOf,
): ApiCountsRow[] {
  const before = knownCounts(views, expression, ask);
  const evaluation = new ExpressionEvaluation(views, expression, [ask]);
  finishEvaluation(evaluation, expression, 1 << 20, 1 << 20, () => undefined, blocksOf);
  const rows = rowsOfCounts(evaluation.collect(ask), ask);
  evaluation.close();
  for (const known of [before, knownCounts(views, expression, ask)])
    assert(
      known === null || rowsText(rowsOfCounts(known, ask)) === rowsText(rows),
      'what is known at once is what an evaluation finds',
    );
  return rows;
}

/** A seeded source of whole numbers below a bound (mulberry32). */
export function seededRandom(seed: number): (bound: number) => number {
  let state = seed >>> 0;
  return (bound) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * bound);
  };
}
