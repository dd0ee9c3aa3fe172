/**
 * The event counts of one shard against every entry in an array: late and future entries, saves, crashes,
 * expiry.
 */

import { expect, test } from 'vitest';
import type { EdgeEntry } from '../../engine/entry.js';
import { CountSlot } from '../../engine/event-counts/count-slot.js';
import { EventCountsView } from '../../engine/event-counts/event-counts-view.js';
import { OUTCOME_COUNT } from '../../engine/event-counts/outcome.js';
import type { EventCountsRow } from '../../engine/event-counts/partial.js';
import { EVENT_INTERVALS, EVENT_LEVELS, type EventInterval } from '../../engine/event-counts/windows.js';
import { SegmentError } from '../../engine/segments.js';
import { finished } from '../../engine/steps.js';
import { RETENTION_US } from '../../engine/tier.js';
import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND } from '../../engine/time.js';
import { Random } from '../../src/demo/random.js';
import { queryEventCounts } from '../queries.js';
import { SegmentTable } from '../segment-table.js';

const NOW_US = Date.parse('2026-11-21T07:30:00Z') * 1000;
const PROJECTS = ['a', 'b', 'ä', 'projects-with-long-names'];

function entry(overrides: Partial<EdgeEntry> = {}): EdgeEntry {
  return {
    timestampUs: NOW_US,
    project: 'a',
    tierClass: '1d',
    idHash: 0,
    row: new Uint8Array(0),
    url: null,
    areas: 0,
    outcome: 0,
    ...overrides,
  };
}

function ask(
  view: EventCountsView,
  interval: EventInterval,
  nowUs = NOW_US,
  project = 'a',
  retentionUs = RETENTION_US['90d'],
): EventCountsRow[] {
  return queryEventCounts([view], { project, retentionUs, interval }, nowUs);
}

function loaded(table: SegmentTable): EventCountsView {
  const view = new EventCountsView();
  finished(view.load(table));
  return view;
}

function text(rows: readonly EventCountsRow[]): string {
  return rows
    .map((row) => `${(row.bucketStartUs - NOW_US) / US_PER_MINUTE}: ${row.ok}/${row.warning}/${row.error}`)
    .join(' ');
}

test('buckets are whole: the first begins at the truncated time, and that of now counts what is ahead in it', () => {
  const view = new EventCountsView();
  const nowUs = NOW_US + 30 * US_PER_SECOND;
  const check = (interval: EventInterval, retentionUs: number, expected: string) =>
    expect(text(ask(view, interval, nowUs, 'a', retentionUs)), interval).toBe(expected);
  // At the first bucket's beginning, just before it, and at the end of that of now and just behind it.
  for (const timestampUs of [
    NOW_US - US_PER_HOUR,
    NOW_US - US_PER_HOUR - 1,
    NOW_US + US_PER_MINUTE - 1,
    NOW_US + US_PER_MINUTE,
  ])
    view.apply(entry({ timestampUs }));
  check('minutely', RETENTION_US['1d'], '-60: 1/0/0 0: 1/0/0');
  check('hourly', RETENTION_US['1d'], '-90: 2/0/0 -30: 2/0/0');
  check('daily', RETENTION_US['1d'], '-450: 4/0/0');
  view.apply(entry({ timestampUs: NOW_US - US_PER_DAY, outcome: 2 }));
  view.apply(entry({ timestampUs: NOW_US - 7 * US_PER_DAY, outcome: 1 }));
  check('daily', RETENTION_US['1d'], '-1890: 0/0/1 -450: 4/0/0');
  check('daily', RETENTION_US['7d'], '-10530: 0/1/0 -1890: 0/0/1 -450: 4/0/0');
  check('hourly', RETENTION_US['7d'], '-1470: 0/0/1 -90: 2/0/0 -30: 2/0/0');
});

test('an entry counts by the day also after its own tier has let go of its row', () => {
  const view = new EventCountsView();
  view.apply(entry({ tierClass: '1d', timestampUs: NOW_US - 60 * US_PER_DAY }));
  view.expire(NOW_US, NOW_US);
  expect(ask(view, 'daily').length).toBe(1);
});

/** Entries in an array, as far as the slots that hold them have not expired. */
class Twin {
  entries: { readonly entry: EdgeEntry; readonly heldBy: readonly boolean[] }[] = [];

  apply(one: EdgeEntry): void {
    this.entries.push({ entry: one, heldBy: [true, true, true] });
  }

  expire(nowUs: number): void {
    this.entries = this.entries.map(({ entry, heldBy }) => ({
      entry,
      heldBy: heldBy.map((held, i) => {
        const { unitUs, windowUs } = EVENT_LEVELS[i];
        return held && Math.floor(entry.timestampUs / unitUs) >= Math.floor((nowUs - windowUs) / unitUs);
      }),
    }));
  }

  query(interval: EventInterval, nowUs: number, project: string, retentionUs: number): string {
    const level = EVENT_INTERVALS.indexOf(interval);
    const unitUs = [US_PER_MINUTE, US_PER_HOUR, US_PER_DAY][level];
    const backUs = [US_PER_HOUR, US_PER_DAY, retentionUs][level];
    const rows = new Map<number, number[]>();
    for (const { entry, heldBy } of this.entries) {
      const bucket = Math.floor(entry.timestampUs / unitUs);
      const isWithin =
        bucket >= Math.floor((nowUs - backUs) / unitUs) && bucket <= Math.floor(nowUs / unitUs);
      if (!heldBy[level] || entry.project !== project || !isWithin) continue;
      const counts = rows.get(bucket) ?? [0, 0, 0];
      counts[entry.outcome] += 1;
      rows.set(bucket, counts);
    }
    return text(
      [...rows]
        .sort(([a], [b]) => a - b)
        .map(([bucket, [ok, warning, error]]) => ({ bucketStartUs: bucket * unitUs, ok, warning, error })),
    );
  }
}

test('random histories answer as the twin does, over saves, crashes and expiry', () => {
  for (let seed = 1; seed <= 60; seed++) {
    const random = new Random(seed);
    let nowUs = NOW_US;
    let table = new SegmentTable();
    let view = new EventCountsView();
    const twin = new Twin();
    let saved: Twin['entries'] = [];
    const fail = (what: string) => `seed ${seed}: ${what}`;
    for (let step = 0; step < 400; step++) {
      const kind = random.float();
      if (kind < 0.6) {
        const ageUs =
          random.pick([0, US_PER_MINUTE, US_PER_HOUR, US_PER_DAY, 90 * US_PER_DAY]) * random.float();
        const aheadUs = random.chance(0.1) ? random.below(US_PER_HOUR) : 0;
        const one = entry({
          timestampUs: Math.floor(nowUs - ageUs + aheadUs),
          project: random.pick(PROJECTS),
          outcome: random.below(3),
        });
        view.apply(one);
        twin.apply(one);
      } else if (kind < 0.8) {
        const interval = random.pick([...EVENT_INTERVALS]);
        const retentionUs = random.pick(Object.values(RETENTION_US));
        const project = random.pick([...PROJECTS, 'nobody']);
        const answer = text(ask(view, interval, nowUs, project, retentionUs));
        expect(answer, fail(`${interval} ${project}`)).toBe(
          twin.query(interval, nowUs, project, retentionUs),
        );
      } else if (kind < 0.9) {
        view.save(table);
        expect(view.hasUnsaved, fail('saved')).toBe(false);
        saved = twin.entries.slice();
      } else if (kind < 0.93) {
        // A crash: what was not saved is lost. A start reads on from a table that another life may have
        // begun.
        table = new SegmentTable(table.names.map((name) => [name, table.get(name)!]));
        view = loaded(table);
        twin.entries = saved.slice();
      } else if (kind < 0.97) {
        view.expire(nowUs, nowUs);
        twin.expire(nowUs);
        view.save(table);
        saved = twin.entries.slice();
      } else {
        nowUs += Math.floor(random.pick([US_PER_MINUTE, US_PER_HOUR, 2 * US_PER_DAY]) * random.float());
      }
    }
  }
});

test('what expires leaves the memory and the store, names included', () => {
  const view = new EventCountsView();
  const table = new SegmentTable();
  const empty = view.heldBytes;
  for (let i = 0; i < 500; i++)
    view.apply(entry({ project: `project-${i}`, timestampUs: NOW_US - i * US_PER_MINUTE }));
  view.save(table);
  expect(view.heldBytes).toBeGreaterThan(empty + 500 * 40);
  view.expire(NOW_US + 91 * US_PER_DAY, NOW_US + 91 * US_PER_DAY);
  expect(view.heldBytes).toBe(empty);
  expect(view.hasUnsaved).toBe(true);
  view.save(table);
  expect(table.names).toEqual([]);
  // Their numbers serve other projects.
  view.apply(entry({ project: 'later', timestampUs: NOW_US + 91 * US_PER_DAY }));
  expect(ask(view, 'daily', NOW_US + 91 * US_PER_DAY, 'project-0')).toEqual([]);
  expect(ask(view, 'daily', NOW_US + 91 * US_PER_DAY, 'later').length).toBe(1);
});

test('entries of what has expired make no slots, yet count when the clock goes back, and after a crash', () => {
  const view = new EventCountsView();
  const empty = view.heldBytes;
  const slots = (): number => view.figures().reduce((sum, { values }) => sum + (values[0] as number), 0);
  const laterUs = NOW_US + 91 * US_PER_DAY;
  const add = (): void => {
    view.expire(laterUs, laterUs);
    for (let i = 0; i < 100; i++)
      view.apply(entry({ project: `project-${i}`, timestampUs: NOW_US + i * US_PER_SECOND }));
    expect(slots()).toBe(0);
    expect(view.hasUnsaved).toBe(true);
    // Each counts while it waits, of known projects too.
    const held = view.heldBytes;
    view.apply(entry({ project: 'project-7' }));
    expect(view.heldBytes).toBeGreaterThan(held);
  };
  add();
  view.expire(laterUs, laterUs);
  expect([view.heldBytes, view.hasUnsaved, ask(view, 'daily', NOW_US, 'project-7')]).toEqual([
    empty,
    false,
    [],
  ]);
  add();
  expect(text(ask(view, 'minutely', NOW_US + US_PER_MINUTE, 'project-8'))).toBe('0: 1/0/0');
  add();
  view.expire(NOW_US + US_PER_HOUR, NOW_US);
  expect(text(ask(view, 'hourly', NOW_US + US_PER_HOUR, 'project-8'))).toBe('-30: 1/0/0');
  add();
  const table = new SegmentTable();
  view.save(table);
  expect(text(ask(loaded(table), 'daily', NOW_US, 'project-8'))).toBe('-450: 1/0/0');
});

test('what only the clock takes for past is kept, but when memory is short what came meanwhile goes', () => {
  const table = new SegmentTable();
  const aheadUs = NOW_US + 3 * US_PER_HOUR;
  const view = new EventCountsView();
  // Before the trusted time, and while the clock is three hours ahead of it: two hours ago by the clock, and
  // a minute ago.
  for (const timestampUs of [NOW_US, aheadUs - 2 * US_PER_HOUR, aheadUs - US_PER_MINUTE])
    view.apply(entry({ timestampUs }));
  view.save(table);
  view.expire(aheadUs, NOW_US);
  const minutes = (): unknown => view.figures().find(({ label }) => label === 'minute')?.values[0];
  expect(minutes()).toBe(3);
  const before = EVENT_INTERVALS.map((interval) => text(ask(view, interval)));
  // What a fast clock takes for past stays as long as ingest need not pause.
  view.spill({ isNearPause: false });
  expect(minutes()).toBe(3);
  expect(view.spill({ isNearPause: true })).toBe(false);
  view.save(table);
  expect(minutes()).toBe(2);
  for (const one of [view, loaded(table)])
    expect(EVENT_INTERVALS.map((interval) => text(ask(one, interval)))).toEqual(before);
});

test('a slot takes what its largest count needs: a count of ten thousand projects few bytes', () => {
  const slot = new CountSlot();
  const projectCount = 10_000;
  for (let code = 0; code < projectCount; code++) slot.add(slot.append(code), code % OUTCOME_COUNT);
  const heldBytes = () => slot.heldBytes / projectCount;
  expect(heldBytes()).toBeLessThan(20);
  const counts = [2 ** 8 - 1, 2 ** 16 - 1, 2 ** 32 - 1, Number.MAX_SAFE_INTEGER - 1];
  for (const [i, count] of counts.entries()) slot.set(i, 2, count);
  for (const [i, count] of counts.entries()) {
    slot.add(i, 2);
    expect(slot.countOf(i, 2)).toBe(count + 1);
  }
  expect([slot.countOf(9999, 0), slot.countOf(9998, 2), slot.countOf(9998, 1)]).toEqual([1, 1, 0]);
  // The widths are taken one after the other too.
  const busy = new CountSlot();
  const row = busy.append(0);
  for (let count = 0; count < 70_000; count++) busy.add(row, 1);
  expect([busy.countOf(row, 0), busy.countOf(row, 1)]).toEqual([0, 70_000]);
  expect(busy.heldBytes).toBeLessThan(2000);
});

test('a busy slot is written whole once its changes outweigh it, so that a start reads at most about three of it', () => {
  const view = new EventCountsView();
  const table = new SegmentTable();
  const projectCount = 200;
  let written = 0;
  for (let save = 0; save < 100; save++) {
    for (let i = 0; i < projectCount / 4; i++)
      view.apply(entry({ project: `project-${(save * 7 + i * 3) % projectCount}` }));
    view.save(table);
    written = Math.max(written, table.names.filter((name) => name.startsWith('event-counts/minute/')).length);
  }
  expect(written).toBeLessThan(12);
  const rows = (one: EventCountsView) => text(ask(one, 'minutely', NOW_US, 'project-0'));
  expect(rows(loaded(table))).toBe(rows(view));
});

test('damaged, lost and foreign segments are refused', () => {
  const view = new EventCountsView();
  const table = new SegmentTable();
  for (let save = 0; save < 4; save++) {
    for (let i = 0; i < (save === 0 ? 100 : 5); i++)
      view.apply(entry({ project: `project-${i * 25 + save}` }));
    view.save(table);
  }
  const names = table.names.filter((name) => name.startsWith('event-counts/hour/'));
  const segments = table.names.map((name): [string, Uint8Array] => [name, table.get(name)!]);
  const check = (changed: readonly [string, Uint8Array][]) =>
    expect(() => loaded(new SegmentTable([...changed]))).toThrow(SegmentError);
  expect(() => loaded(new SegmentTable(segments))).not.toThrow();
  const last = names[names.length - 1];
  const bytes = table.get(last)!;
  const others = segments.filter(([name]) => name !== last);
  for (let length = 0; length < bytes.length; length++) check([...others, [last, bytes.subarray(0, length)]]);
  check([...others, [last, Uint8Array.from([...bytes, 0])]]);
  check([...others, [last.replace(/.$/, '9'), bytes]]);
  check([...segments, ['event-counts/week/000000000000/0000000000', bytes]]);
  check([...segments, ['event-counts/hour/000000000001/0000000000', bytes]]);
  expect(names.length).toBe(4);
  for (const lost of names.slice(0, -1)) check(segments.filter(([name]) => name !== lost));
});
