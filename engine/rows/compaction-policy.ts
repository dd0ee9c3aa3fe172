/**
 * What is compacted next. The hours of a day that is over are merged into one run, so that a sparse project's rows
 * of a day lie together; all other closed hours are sorted. A day that has begun to expire is merged no more: its
 * hours go one by one, and of a run of the day all would stay until the last has expired.
 *
 *   fresh hours ──▶ sorted hour ──▶ day      1d: hours only; a backfill's hours of days long past go to the day at once
 *                └─ late rows ──────▶ day'   merged again once there are enough of them
 */

import { entryOf } from '../entry-of.js';
import { DAY_MERGE_COUNT, DAY_MERGE_SHARE, ROW_PARTITION_OPEN_US } from '../limits.js';
import { RETENTION_US } from '../tier.js';
import { truncateUs, US_PER_DAY } from '../time.js';
import type { RunInfo } from './run.js';

/** What the policy looks at in a run. */
export interface Compactable {
  readonly info: RunInfo;
  readonly rowByteCount: number;
}

/** Runs to be made one, and what the one covers. */
export interface DueCompaction<Run extends Compactable> {
  readonly runs: readonly Run[];
  readonly startUs: number;
  readonly spanUs: number;
}

/**
 * The compaction that is due, the oldest first, or null; `runs` are those whose rows are all in their files.
 * O(runs).
 */
export function nextCompaction<Run extends Compactable>(
  runs: Iterable<Run>,
  nowUs: number,
): DueCompaction<Run> | null {
  const days = new Map<string, Run[]>();
  for (const run of runs) {
    const key = `${run.info.tierClass}/${truncateUs(run.info.startUs, US_PER_DAY)}`;
    entryOf(days, key, () => []).push(run);
  }
  let next: DueCompaction<Run> | null = null;
  for (const sameDay of days.values()) {
    const due = dueOfDay(sameDay, nowUs);
    if (due !== null && (next === null || due.startUs < next.startUs)) next = due;
  }
  return next;
}

function dueOfDay<Run extends Compactable>(
  sameDay: readonly Run[],
  nowUs: number,
): DueCompaction<Run> | null {
  const { tierClass, startUs } = sameDay[0].info;
  const dayUs = truncateUs(startUs, US_PER_DAY);
  const isOver = dayUs + US_PER_DAY + ROW_PARTITION_OPEN_US <= nowUs;
  const isExpiring = dayUs + RETENTION_US[tierClass] <= nowUs;
  if (isOver && !isExpiring && dayIsDue(sameDay)) {
    return { runs: sameDay, startUs: dayUs, spanUs: US_PER_DAY };
  }
  let oldest: RunInfo | null = null;
  for (const { info } of sameDay) {
    if (info.kind === 'fresh' && (oldest === null || info.startUs < oldest.startUs)) oldest = info;
  }
  if (oldest === null) return null;
  const hour = oldest;
  const sameHour = sameDay.filter(({ info }) => info.startUs === hour.startUs && info.spanUs === hour.spanUs);
  const freshBytes = byteCountOf(sameHour.filter(({ info }) => info.kind === 'fresh'));
  const inputs = sameHour.filter(
    ({ info, rowByteCount }) =>
      info.kind === 'fresh' ||
      rowByteCount * DAY_MERGE_SHARE <= freshBytes ||
      sameHour.length >= DAY_MERGE_COUNT,
  );
  return { runs: inputs, startUs: hour.startUs, spanUs: hour.spanUs };
}

function dayIsDue(sameDay: readonly Compactable[]): boolean {
  const days = sameDay.filter(({ info }) => info.spanUs === US_PER_DAY);
  const parts = sameDay.filter(({ info }) => info.spanUs !== US_PER_DAY);
  if (parts.length === 0) return false;
  if (days.length > 0) {
    return parts.length >= DAY_MERGE_COUNT || byteCountOf(parts) >= DAY_MERGE_SHARE * byteCountOf(days);
  }
  return parts.length > 1 || parts[0].info.kind === 'fresh';
}

function byteCountOf(runs: readonly Compactable[]): number {
  return runs.reduce((sum, { rowByteCount }) => sum + rowByteCount, 0);
}
