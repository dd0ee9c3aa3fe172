/** The naive twin of the statistics view: every entry in an array, answered by filter and sort. */

import type { RelayEntry } from '../../engine/entry.js';
import type { InvocationStatsParameters } from '../../engine/stats/partial.js';

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Unit and longest reach of the levels. */
const LEVELS = [
  [SECOND, 5 * MINUTE],
  [MINUTE, HOUR],
  [HOUR, DAY],
  [DAY, 7 * DAY],
] as const;

const INTERVALS: Readonly<Record<string, readonly [level: number, backUs: number]>> = {
  '5min': [0, 5 * MINUTE],
  '15min': [1, 15 * MINUTE],
  '1hr': [1, HOUR],
  '1day': [2, DAY],
  '7day': [3, 7 * DAY],
};

export interface NaiveBucket {
  readonly startUs: number;
  readonly entries: readonly RelayEntry[];
  readonly sortedMs: Float64Array;
}

function truncate(timestampUs: number, unitUs: number): number {
  return timestampUs - (((timestampUs % unitUs) + unitUs) % unitUs);
}

export class NaiveStats {
  /** By level. */
  #entries: RelayEntry[][] = [[], [], [], []];

  apply(entry: RelayEntry): void {
    for (const entries of this.#entries) entries.push(entry);
  }

  expire(nowUs: number): void {
    this.#entries = this.#entries.map((entries, level) => {
      const [unitUs, reachUs] = LEVELS[level];
      return entries.filter(
        ({ timestampUs }) => truncate(timestampUs, unitUs) >= truncate(nowUs - reachUs, unitUs),
      );
    });
  }

  query({ project, functionId, interval }: InvocationStatsParameters, nowUs: number): NaiveBucket[] {
    const [level, backUs] = INTERVALS[interval] ?? INTERVALS['1day'];
    const [unitUs] = LEVELS[level];
    const wanted = this.#entries[level].filter(
      (entry) => entry.project === project && (functionId === null || entry.functionId === functionId),
    );
    const byStart = new Map<number, RelayEntry[]>();
    for (const entry of wanted) {
      const startUs = truncate(entry.timestampUs, unitUs);
      const others = byStart.get(startUs);
      if (others === undefined) byStart.set(startUs, [entry]);
      else others.push(entry);
    }
    const buckets: NaiveBucket[] = [];
    for (let startUs = truncate(nowUs - backUs, unitUs); startUs <= nowUs; startUs += unitUs) {
      const entries = byStart.get(startUs);
      if (entries === undefined) continue;
      const times = entries.map((entry) => entry.executionTimeMs).filter((time) => !Number.isNaN(time));
      buckets.push({ startUs, entries, sortedMs: Float64Array.from(times).sort() });
    }
    return buckets;
  }
}
