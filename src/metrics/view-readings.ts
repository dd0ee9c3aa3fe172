/** What the views hold: rows by tier, usage, statistics. Counted once a scrape. */

import type { TierFigures } from '../../engine/rows/rows-view.js';
import { TIER_CLASSES } from '../../engine/tier.js';
import { US_PER_SECOND } from '../../engine/time.js';
import type { UsageStats } from '../../engine/usage/usage-view.js';
import type { Shards } from '../shards.js';
import type { Readings } from './readings.js';

export class ViewReadings {
  readonly #shards: Shards;
  #tiers: readonly TierFigures[] = [];
  #usage: readonly UsageStats[] = [];

  constructor(readings: Readings, shards: Shards) {
    this.#shards = shards;
    this.#readRows(readings);
    this.#readUsage(readings);
  }

  /** To be called before a scrape. O(runs, parts and their blocks). */
  count(): void {
    this.#tiers = this.#shards.edge.flatMap(({ rows }) => rows.figures());
    this.#usage = this.#shards.edge.map(({ usage }) => usage.stats());
  }

  #readRows(readings: Readings): void {
    const perTier = (name: string, help: string, pick: 'rowCount' | 'rowByteCount' | 'heldBytes') =>
      readings.read(name, help, ['tier'], (add) => {
        for (const tier of this.#tiers) add({ tier: tier.tierClass }, tier[pick]);
      });
    perTier('logring_rows', 'Rows of logs.all that are kept, by the retention of their tier', 'rowCount');
    perTier('logring_row_bytes', 'Bytes of these rows as they are answered, not compressed', 'rowByteCount');
    perTier('logring_rows_held_bytes', 'Memory of row indexes and open blocks', 'heldBytes');
    readings.read(
      'logring_oldest_row_timestamp_seconds',
      'Start of the oldest hour of rows',
      ['tier'],
      (add) => {
        for (const tier of TIER_CLASSES) {
          const starts = this.#tiers.flatMap(({ tierClass, oldestUs }) =>
            tierClass === tier && oldestUs !== null ? [oldestUs] : [],
          );
          if (starts.length > 0) add({ tier }, Math.min(...starts) / US_PER_SECOND);
        }
      },
    );
  }

  #readUsage(readings: Readings): void {
    const sum = (name: string, help: string, pick: 'entries' | 'urls' | 'standingExpressions') =>
      readings.one(name, help, () => this.#usage.reduce((total, figures) => total + figures[pick], 0));
    sum('logring_usage_entries', 'Entries of seven days that usage.api-counts counts', 'entries');
    sum('logring_usage_urls', 'Distinct URLs, counted in each part of an hour that has them', 'urls');
    sum(
      'logring_standing_expressions',
      'Expressions of usage.api-counts that are kept answered, in each partition',
      'standingExpressions',
    );
  }
}
