/** All kinds of views; shard.ts says which shards have them. */

import { EventCountsView } from './event-counts/event-counts-view.js';
import { EVENT_COUNTS } from './event-counts/kind.js';
import { ROWS } from './rows/kind.js';
import type { SegmentReader } from './segments.js';
import { STATS } from './stats/kind.js';
import { StatsView } from './stats/stats-view.js';
import { finished } from './steps.js';
import { USAGE } from './usage/kind.js';
import type { ViewKind } from './view.js';

export interface ListedView {
  readonly kind: ViewKind;
  /** Throws a SegmentError unless the segments of a group are whole; null where files are what counts. */
  readonly checkGroup: ((reader: SegmentReader) => void) | null;
}

export const VIEWS: readonly ListedView[] = [
  { kind: ROWS, checkGroup: null },
  { kind: USAGE, checkGroup: null },
  { kind: EVENT_COUNTS, checkGroup: (reader) => finished(new EventCountsView().load(reader)) },
  { kind: STATS, checkGroup: (reader) => finished(new StatsView().load(reader)) },
];
