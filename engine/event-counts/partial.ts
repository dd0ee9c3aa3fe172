/**
 * The partial answer of `logs.event-counts`: some shards' counts of a project in each bucket of the series.
 *
 *   event-counts 2   project │ level u8 │ first and last slot f64 │ per bucket, oldest first: three counts f64
 */

import { assert } from '../assert.js';
import type { ByteWriter } from '../bytes.js';
import { PartialError, readPartial } from '../partial-format.js';
import type { Series } from '../slots/levels.js';
import type { EventCountsView } from './event-counts-view.js';
import { ERROR, OK, OUTCOME_COUNT, WARNING } from './outcome.js';
import { EVENT_LEVELS, type EventInterval, eventSeriesOf } from './windows.js';

const FORM = 'event-counts 2';

export interface EventCountsParameters {
  readonly project: string;
  /** How far back the caller's tier may look by the day, µs. */
  readonly retentionUs: number;
  readonly interval: EventInterval;
}

/** What is asked for: the same of all partial answers that are merged. */
export interface EventCountsQuestion extends Series {
  readonly project: string;
}

export interface EventCountsPartial {
  readonly question: EventCountsQuestion;
  /** By bucket and outcome. */
  readonly counts: Float64Array;
}

/** One bucket that has entries. */
export interface EventCountsRow {
  readonly bucketStartUs: number;
  readonly ok: number;
  readonly warning: number;
  readonly error: number;
}

export function eventQuestionOf(parameters: EventCountsParameters, nowUs: number): EventCountsQuestion {
  const { project, interval, retentionUs } = parameters;
  const { level, firstSlot, lastSlot } = eventSeriesOf(interval, retentionUs, nowUs);
  return { project, level, firstSlot, lastSlot };
}

/** Of all views together. O(views × buckets). */
export function collectEventCounts(
  views: readonly EventCountsView[],
  question: EventCountsQuestion,
): EventCountsPartial {
  const partial = emptyPartial(question);
  const { level, firstSlot, lastSlot, project } = question;
  for (const view of views) {
    const code = view.codeOf(project);
    if (code < 0) continue;
    for (let index = firstSlot; index <= lastSlot; index++) {
      const slot = view.slotAt(level, index);
      const row = slot === null ? -1 : slot.find(code);
      if (slot === null || row < 0) continue;
      const base = OUTCOME_COUNT * (index - firstSlot);
      for (let outcome = 0; outcome < OUTCOME_COUNT; outcome++)
        partial.counts[base + outcome] += slot.countOf(row, outcome);
    }
  }
  return partial;
}

/** Oldest first, of partial answers to one question. */
export function mergeEventCounts(partials: readonly EventCountsPartial[]): EventCountsRow[] {
  if (partials.length === 0) return [];
  const [{ question, counts: ofFirst }, ...others] = partials;
  const counts = others.length === 0 ? ofFirst : ofFirst.slice();
  for (const other of others) {
    assert(isSame(other.question, question), 'partial answers to different questions are merged');
    for (let i = 0; i < counts.length; i++) counts[i] += other.counts[i];
  }
  const rows: EventCountsRow[] = [];
  for (let bucket = 0; bucket < counts.length / OUTCOME_COUNT; bucket++) {
    const base = OUTCOME_COUNT * bucket;
    const [ok, warning, error] = [counts[base + OK], counts[base + WARNING], counts[base + ERROR]];
    if (ok + warning + error === 0) continue;
    const bucketStartUs = (question.firstSlot + bucket) * EVENT_LEVELS[question.level].unitUs;
    rows.push({ bucketStartUs, ok, warning, error });
  }
  return rows;
}

export function writeEventCounts(out: ByteWriter, { question, counts }: EventCountsPartial): void {
  out.string(FORM);
  out.string(question.project);
  out.u8(question.level);
  out.f64(question.firstSlot);
  out.f64(question.lastSlot);
  for (const count of counts) out.f64(count);
}

/** Throws a PartialError, also for the answer to another question. */
export function readEventCounts(bytes: Uint8Array, question: EventCountsQuestion): EventCountsPartial {
  return readPartial(FORM, bytes, (content) => {
    const read = {
      project: content.string(),
      level: content.u8(),
      firstSlot: content.f64(),
      lastSlot: content.f64(),
    };
    if (!isSame(read, question)) throw new PartialError('a partial answer is to another question');
    const partial = emptyPartial(question);
    for (let i = 0; i < partial.counts.length; i++) {
      const count = content.f64();
      if (!Number.isSafeInteger(count) || count < 0) throw new PartialError('a count is not a count');
      partial.counts[i] = count;
    }
    return partial;
  });
}

function emptyPartial(question: EventCountsQuestion): EventCountsPartial {
  const bucketCount = question.lastSlot - question.firstSlot + 1;
  return { question, counts: new Float64Array(OUTCOME_COUNT * bucketCount) };
}

function isSame(a: EventCountsQuestion, b: EventCountsQuestion): boolean {
  return (
    a.project === b.project && a.level === b.level && a.firstSlot === b.firstSlot && a.lastSlot === b.lastSlot
  );
}
