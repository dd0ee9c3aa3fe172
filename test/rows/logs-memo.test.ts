/** Answers of `logs.all` that are kept while nothing of them changes, against those that are not. */

import { expect, test } from 'vitest';
import type { EdgeEntry } from '../../engine/entry.js';
import { SPILLED_BUSY_RUN_BYTES } from '../../engine/limits.js';
import { USUAL_SIZES } from '../../engine/rows/compaction.js';
import { collectLogs, type LogsParameters, mergeLogs } from '../../engine/rows/partial.js';
import { RowsView } from '../../engine/rows/rows-view.js';
import { finished } from '../../engine/steps.js';
import { RETENTION_US, TIER_CLASSES } from '../../engine/tier.js';
import { US_PER_DAY, US_PER_HOUR } from '../../engine/time.js';
import { Random } from '../../src/demo/random.js';
import type { LiveAnswer } from '../../src/endpoints/endpoint.js';
import { LOGS_MEMO_IDLE_US } from '../../src/endpoints/limits.js';
import { LogsMemo } from '../../src/endpoints/logs-memo.js';
import { objectsAlive } from '../objects-alive.js';
import { queryLogs } from '../queries.js';
import { SegmentTable, TableCompaction } from '../segment-table.js';

const NOW_US = Date.parse('2026-11-21T07:30:00Z') * 1000;
const PLENTY = 1 << 20;
const WHOLE = { project: 'p', retentionUs: RETENTION_US['90d'], startUs: null, endUs: null };

function entry(overrides: Partial<EdgeEntry>): EdgeEntry {
  return {
    timestampUs: NOW_US,
    project: 'p',
    tierClass: '90d',
    idHash: 0,
    row: Buffer.from('row'),
    url: null,
    areas: 0,
    outcome: 0,
    ...overrides,
  };
}

/** Counts what is computed. */
class Logs {
  views: RowsView[];
  computedCount = 0;
  readonly memo: LogsMemo;

  constructor(views: RowsView[], byteLimit = PLENTY) {
    this.views = views;
    this.memo = new LogsMemo(
      {
        views: () => this.views,
        answer: (parameters, nowUs) => {
          this.computedCount += 1;
          return this.fresh(parameters, nowUs);
        },
      },
      byteLimit,
    );
  }

  fresh(parameters: LogsParameters, nowUs: number): LiveAnswer {
    return {
      body: Buffer.concat(queryLogs(this.views, parameters, nowUs)),
      visibleUntilUs: mergeLogs(this.views.map((view) => collectLogs(view, parameters, nowUs)))
        .visibleUntilUs,
      window: () => ({ view: 'rows', level: null, startUs: nowUs - parameters.retentionUs, endUs: Infinity }),
      holding: null,
      release: () => undefined,
    };
  }

  ask(parameters: LogsParameters = WHOLE, nowUs = NOW_US): LiveAnswer {
    return this.memo.answer(parameters, nowUs) as LiveAnswer;
  }
}

function textOf({ body }: LiveAnswer): string {
  return Buffer.from(body as Uint8Array).toString();
}

test('the third ask is answered from memory, until a row of the project comes or one expires', () => {
  const view = new RowsView(new SegmentTable());
  const logs = new Logs([view]);
  view.apply(entry({ row: Buffer.from('a') }));
  const asked = (count: number, nowUs = NOW_US) => {
    const before = logs.computedCount;
    const texts = Array.from({ length: count }, () => textOf(logs.ask(WHOLE, nowUs)));
    return [new Set(texts), logs.computedCount - before];
  };
  expect(asked(5)).toEqual([new Set(['a']), 2]);
  view.apply(entry({ project: 'another' }));
  expect(asked(5)).toEqual([new Set(['a']), 0]);
  view.apply(entry({ row: Buffer.from('b'), timestampUs: NOW_US + 1 }));
  expect(asked(5)).toEqual([new Set(['ba']), 2]);
  const lastUs = NOW_US + RETENTION_US['90d'];
  expect(asked(5, lastUs)).toEqual([new Set(['ba']), 0]);
  expect(asked(5, lastUs + 1)).toEqual([new Set(['b']), 1]);
  // The clock was set back.
  expect(asked(5, lastUs)).toEqual([new Set(['ba']), 1]);
});

test('its window moves with the time, and a packed body is kept with it', () => {
  const view = new RowsView(new SegmentTable());
  const logs = new Logs([view]);
  view.apply(entry({}));
  for (let i = 0; i < 2; i++) logs.ask();
  const kept = logs.ask(WHOLE, NOW_US + 5);
  expect(kept.window()).toEqual(logs.fresh(WHOLE, NOW_US + 5).window());
  expect(kept.packed?.bytes).toBeNull();
  const heldBytes = logs.memo.heldBytes;
  kept.packed!.keep(Buffer.from('packed'));
  kept.packed!.keep(Buffer.from('later'));
  expect(Buffer.from(logs.ask().packed!.bytes!).toString()).toBe('packed');
  expect(logs.memo.heldBytes).toBe(heldBytes + 'packed'.length);
  view.apply(entry({}));
  logs.ask();
  kept.packed!.keep(Buffer.from('too late'));
  logs.memo.trim(0);
  expect(logs.memo.heldBytes).toBe(0);
});

test('what is kept is bounded: what is in use stays, what is not makes room', () => {
  const view = new RowsView(new SegmentTable());
  const logs = new Logs([view], 10_000);
  const projects = ['p', 'q', 'r', 's'];
  for (const project of projects) view.apply(entry({ project, row: Buffer.alloc(3_000, project) }));
  const computed = (project: string, nowUs: number) => {
    const before = logs.computedCount;
    for (let i = 0; i < 5; i++)
      expect(textOf(logs.ask({ ...WHOLE, project }, nowUs))).toBe(project.repeat(3_000));
    expect(logs.memo.heldBytes).toBeLessThanOrEqual(10_000);
    return logs.computedCount - before;
  };
  expect(projects.map((project) => computed(project, NOW_US))).toEqual([2, 2, 5, 5]);
  const laterUs = NOW_US + LOGS_MEMO_IDLE_US;
  expect(['q', 's', 'q', 'r', 'p'].map((project) => computed(project, laterUs))).toEqual([0, 1, 0, 5, 5]);
});

test('what it keeps keeps nothing else alive: no part of a buffer that others have a part of', () => {
  const view = new RowsView(new SegmentTable());
  const logs = new Logs([view]);
  view.apply(entry({}));
  for (let i = 0; i < 3; i++) logs.ask().packed?.keep(Buffer.from('packed'));
  const { body, packed } = logs.ask();
  for (const bytes of [body as Uint8Array, packed!.bytes!])
    expect(bytes.buffer.byteLength).toBe(bytes.length);
});

test('questions asked once leave the room of answers alone', () => {
  const view = new RowsView(new SegmentTable());
  const logs = new Logs([view], 20_000);
  for (let i = 0; i < 100; i++) logs.ask({ ...WHOLE, startUs: i });
  const before = logs.computedCount;
  for (let i = 0; i < 5; i++) logs.ask();
  expect(logs.computedCount - before).toBe(2);
  logs.memo.trim(0);
  expect(logs.memo.heldBytes).toBe(0);
});

test.each(Array.from({ length: 20 }, (_, seed) => seed))('kept and computed agree: seed %i', (seed) => {
  const random = new Random(seed);
  const tables = [new SegmentTable(), new SegmentTable()];
  const logs = new Logs(
    tables.map((table) => new RowsView(table)),
    random.pick([2_000, PLENTY]),
  );
  const questions = Array.from({ length: 6 }, () => ({
    project: random.pick(['p', 'q', 'absent']),
    retentionUs: RETENTION_US[random.pick([...TIER_CLASSES])],
    startUs: random.pick([null, null, NOW_US - random.between(0, US_PER_DAY)]),
    endUs: random.pick([null, null, NOW_US + random.between(0, US_PER_DAY)]),
  }));
  let nowUs = NOW_US;
  let answerCount = 0;
  for (let step = 0; step < 1_500; step++) {
    if (random.between(0, 3) === 0) {
      const ageUs = random.between(0, random.pick([1, US_PER_HOUR, 8 * US_PER_DAY]));
      logs.views[random.between(0, 1)].apply(
        entry({
          timestampUs: nowUs - ageUs,
          project: random.pick(['p', 'q', 'r', 'r', 'r']),
          tierClass: random.pick([...TIER_CLASSES]),
          idHash: step,
          row: Buffer.from(`${step} `),
        }),
      );
    }
    if (random.between(0, 20) === 0) nowUs += random.pick([1, US_PER_HOUR, 7 * US_PER_HOUR, -US_PER_HOUR]);
    if (random.between(0, 30) === 0) for (const view of logs.views) view.expire(nowUs);
    if (random.between(0, 30) === 0)
      for (const view of logs.views) view.closeLarge(1, SPILLED_BUSY_RUN_BYTES);
    if (random.between(0, 30) === 0) {
      for (const [i, view] of logs.views.entries()) {
        view.save(tables[i]);
        TableCompaction.begin(view, tables[i], nowUs, USUAL_SIZES)?.advance(Infinity);
        view.save(tables[i]);
      }
    }
    if (random.between(0, 200) === 0) {
      logs.views = tables.map((table, i) => {
        logs.views[i].save(table);
        const view = new RowsView(table);
        finished(view.load(table));
        return view;
      });
    }
    const question = random.pick(questions);
    for (let i = random.between(1, 3); i > 0; i--, answerCount++)
      expect(textOf(logs.ask(question, nowUs))).toBe(textOf(logs.fresh(question, nowUs)));
  }
  expect(logs.computedCount).toBeLessThan(answerCount);
});

test('a remembered question keeps no view that answers come from no more', () => {
  class GoneView extends RowsView {}
  const viewCount = 20;
  const logs = new Logs(Array.from({ length: viewCount }, () => new GoneView(new SegmentTable())));
  for (const view of logs.views) view.apply(entry({}));
  logs.ask();
  logs.ask();
  logs.ask({ ...WHOLE, project: 'q' });
  logs.views = [];
  expect(logs.memo.heldBytes).toBeGreaterThan(0);
  expect(objectsAlive(GoneView)).toBeLessThan(viewCount / 5);
  expect(Buffer.from(logs.ask().body as Uint8Array)).toHaveLength(0);
});
