/**
 * The usage view against its naive twin, over seeded histories. A failure names the seed and prints the
 * history.
 */

import { expect, test } from 'vitest';
import { finished } from '../../engine/steps.js';
import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../../engine/time.js';
import { USAGE_INTERVALS } from '../../engine/usage/api-counts.js';
import { ExpressionEvaluation } from '../../engine/usage/expressions/expression-evaluation.js';
import { UsageView } from '../../engine/usage/usage-view.js';
import { rowsOfCounts } from '../queries.js';
import { SegmentTable } from '../segment-table.js';
import { matchHere, TableSeal } from './match-here.js';
import { edgeEntry, finishEvaluation, NaiveUsage, rowsText, seededRandom } from './naive-usage.js';

const START_US = 1_795_000_000_000_000;

/**
 * Substrings of each other, shorter than a gram, overlapping, non-ASCII, spread over a boundary between URLs.
 */
const EXPRESSIONS = [
  'abc',
  'abcd',
  'bcde',
  'abcdabcd',
  'a',
  'bc',
  'é/',
  '日本',
  '😀x',
  'https://abcd',
  'xhttps',
  'nowhere-at-all',
  'abc.example',
  '^https://abcd',
  '(rest|auth)/',
  '(?i)ABC',
  '日.$',
  'x+y?$',
];
const HOSTS = ['abc', 'abcd', 'abcdabcd', 'xyz', 'é', 'bcde'];
const PATHS = ['/rest/v1/abc', '/auth/v1/x', '/storage/日本', '/realtime/😀x', '/', '/é/xx'];

type Step = () => void;

/** One history: views on two shards, one twin. Returns what was done, when answers differ, else null. */
function differs(seed: number): string | null {
  const random = seededRandom(seed);
  const log: string[] = [];
  const limits = {
    ...(random(3) === 0 ? { expressionCount: 2 + random(4), matchBytes: 20_000 } : {}),
    freshBytes: [2_000, 100_000][random(2)],
    partBytes: [300, 3_000, 100_000][random(3)],
    sealFromBytes: [1, 500][random(2)],
    spillFromBytes: 1,
  };
  const newView = () => new UsageView(limits);
  let views = [newView(), newView()];
  const tables = [new SegmentTable(), new SegmentTable()];
  const blocksOf = (view: UsageView) => tables[views.indexOf(view)];
  let seals: (TableSeal | null)[] = [null, null];
  const twin = new NaiveUsage();
  let nowUs = START_US + random(US_PER_DAY);

  const apply: Step = () => {
    const late = [0, 0, 0, random(US_PER_MINUTE), random(3 * US_PER_HOUR), random(8 * US_PER_DAY)][random(6)];
    let timestampUs = nowUs - late + (random(5) === 0 ? random(US_PER_HOUR) : 0);
    if (random(4) === 0) timestampUs = Math.floor(timestampUs / US_PER_MINUTE) * US_PER_MINUTE - random(2);
    const query = random(3) === 0 ? `?${random(1000)}` : '';
    const url = `https://${HOSTS[random(HOSTS.length)]}.example${PATHS[random(PATHS.length)]}${query}`;
    const entry = edgeEntry(timestampUs, random(20) === 0 ? null : url, random(16));
    log.push(`apply ${timestampUs} ${entry.url === null ? null : url} ${entry.areas}`);
    views[random(2)].apply(entry);
    twin.apply(entry);
  };

  const ask = (): string | null => {
    const expression = EXPRESSIONS[random(EXPRESSIONS.length)];
    const interval = USAGE_INTERVALS[random(3)];
    // At edges of buckets, too.
    const askedUs = random(3) === 0 ? Math.floor(nowUs / US_PER_MINUTE) * US_PER_MINUTE : nowUs;
    log.push(`ask ${expression} ${interval} ${askedUs}`);
    const states = [rowsText(twin.query(expression, interval, askedUs))];
    const asked = { interval, nowUs: askedUs };
    const evaluation = new ExpressionEvaluation(views, expression, [asked]);
    const lanes = Array.from({ length: random(3) }, () => evaluation.addLane());
    const meanwhile = () => {
      for (const lane of lanes) if (random(2) === 0) matchHere(lane, expression, 1 + random(400), blocksOf);
      if (random(4) !== 0) return;
      const what = random(20);
      if (what < 2) expire();
      else if (what < 4) seal();
      else if (what < 6) save();
      else apply();
      states.push(rowsText(twin.query(expression, interval, askedUs)));
    };
    finishEvaluation(evaluation, expression, 1 + random(400), 1 + random(200), meanwhile, blocksOf);
    const answer = rowsText(rowsOfCounts(evaluation.collect(asked), asked));
    evaluation.close();
    // A literal is answered for the state at the end, another expression for the one at the beginning.
    const expected = /[.^(+?$]/.test(expression) ? states[0] : states[states.length - 1];
    return answer === expected ? null : `answered\n${answer}\nexpected\n${expected}`;
  };

  const expire: Step = () => {
    log.push(`expire ${nowUs}`);
    for (const view of views) view.expire(nowUs);
    twin.expire(nowUs);
  };

  const pass: Step = () => {
    nowUs += [1, US_PER_MINUTE, random(US_PER_HOUR), random(3 * US_PER_DAY), -random(US_PER_HOUR)][random(5)];
  };

  const save: Step = () => {
    log.push('save');
    for (let i = 0; i < views.length; i++) views[i].save(tables[i]);
  };

  const seal: Step = () => {
    const i = random(2);
    log.push(`seal ${i}`);
    if (random(4) === 0) views[i].spill();
    seals[i] ??= TableSeal.begin(views[i], tables[i]);
    if (seals[i]?.advance([1, 3, 1000][random(3)])) seals[i] = null;
  };

  const restart: Step = () => {
    save();
    log.push('load');
    seals = [null, null];
    for (const table of tables) table.forgetAside();
    views = tables.map((table) => {
      const view = newView();
      finished(view.load(table));
      return view;
    });
  };

  const stepCount = 60 + random(240);
  for (let i = 0; i < stepCount; i++) {
    const choice = random(100);
    if (choice < 70) apply();
    else if (choice < 88) {
      const problem = ask();
      if (problem !== null) return `seed ${seed}\n${log.join('\n')}\n${problem}`;
    } else if (choice < 93) pass();
    else if (choice < 95) expire();
    else if (choice < 96) save();
    else if (choice < 99) seal();
    else restart();
  }
  return null;
}

test('the view answers as its naive twin, over seeded histories', () => {
  for (let seed = 1; seed <= 250; seed++) expect(differs(seed)).toBeNull();
});
