/**
 * The evaluation of expressions over a real match thread: what is answered when, refused why, and who waits
 * for whom.
 */

import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { getPriority } from 'node:os';
import { afterEach, expect, test } from 'vitest';
import { US_PER_HOUR } from '../../engine/time.js';
import type { ApiCountsRow } from '../../engine/usage/api-counts.js';
import { UsageView } from '../../engine/usage/usage-view.js';
import { ApiCountsEvaluator, type EvaluatorOptions } from '../../src/match-thread/api-counts-evaluator.js';
import { ExpressionError } from '../../src/match-thread/expression-error.js';
import { EXPRESSION_LENGTH_LIMIT, MATCH_THREAD_NICENESS } from '../../src/match-thread/limits.js';
import { eventually } from '../eventually.js';
import { evaluatedRows } from '../queries.js';
import { edgeEntry, NaiveUsage, rowsText, seededRandom } from '../usage/naive-usage.js';

const HOUR_US = 498_611 * US_PER_HOUR;
const NOW_US = HOUR_US + US_PER_HOUR - 1;

/** Tens of milliseconds for each long URL that has no y or z at its end. */
const EVIL = '[a-m].{900}[yz]$';

const evaluators: ApiCountsEvaluator[] = [];

afterEach(async () => {
  for (const evaluator of evaluators.splice(0)) await evaluator.stop();
});

function fixture(options: Partial<EvaluatorOptions> = {}, viewCount = 1) {
  const views = Array.from({ length: viewCount }, () => new UsageView());
  const nothing = () => {
    throw new Error('nothing is sealed here');
  };
  const files = { locate: nothing, damaged: nothing };
  const evaluator = new ApiCountsEvaluator(() => views, { files, ...options });
  evaluators.push(evaluator);
  const twin = new NaiveUsage();
  let arrivals = 0;
  return {
    evaluator,
    apply(url: string, areas = 1, hoursAgo = 0): void {
      arrivals += 1;
      const entry = edgeEntry(HOUR_US - hoursAgo * US_PER_HOUR + 10 * arrivals, url, areas);
      views[arrivals % viewCount].apply(entry);
      twin.apply(entry);
    },
    ask: (expression: string) =>
      evaluatedRows(evaluator, { expression, interval: 'minutely', nowUs: NOW_US }),
    expected: (expression: string) => rowsText(twin.query(expression, 'minutely', NOW_US)),
    askDays: (expression: string) =>
      evaluatedRows(evaluator, { expression, interval: 'daily', nowUs: NOW_US }),
    expectedDays: (expression: string) => rowsText(twin.query(expression, 'daily', NOW_US)),
  };
}

type Fixture = ReturnType<typeof fixture>;

/** URLs of 1.5 KB that an evil expression finds no end in. */
function applyLongUrls({ apply }: Fixture, count: number, length = 1450, hours = 1): void {
  const random = seededRandom(11);
  for (let i = 0; i < count; i++) {
    const letters = Array.from({ length }, () => 'abcdefghijklmnopqrstuvwxyz0123456789'[random(36)]).join('');
    apply(`https://abc.example/rest/v1/${i}/${letters}-`, 1, i % hours);
  }
}

test('over none of the shards nothing is searched, but what is no expression is refused', async () => {
  const all = fixture();
  applyLongUrls(all, 3);
  const ask = { interval: 'daily' as const, nowUs: NOW_US };
  expect(all.evaluator.collect('a-name', ask, [])).toEqual([]);
  const release = all.evaluator.hold();
  expect(await all.evaluator.collect(EVIL, ask, [])).toEqual([]);
  await expect(async () => all.evaluator.collect('(', ask, [])).rejects.toThrow(ExpressionError);
  expect(all.evaluator.runningCount).toBe(0);
  release();
});

/** Why an ask was refused: its kind and message. */
async function refusal(answer: () => ApiCountsRow[] | Promise<ApiCountsRow[]>): Promise<string> {
  try {
    return `answered ${rowsText(await answer())}`;
  } catch (error) {
    if (error instanceof ExpressionError) return `${error.kind}: ${error.message}`;
    throw error;
  }
}

test('a literal is answered at once; another expression by a promise, and at once when asked again', async () => {
  const { apply, ask, expected } = fixture({}, 2);
  for (let i = 0; i < 5000; i++) apply(`https://ref${i % 90}.example/rest/é/${i}`, i % 16);
  expect(rowsText(ask('ref17') as ApiCountsRow[])).toBe(expected('ref17'));
  for (const expression of ['ref2.example', '(?i)REF8\\d?\\.', '/é/\\d{2}$', '.*']) {
    const first = ask(expression);
    expect(first, expression).toBeInstanceOf(Promise);
    expect(rowsText(await first), expression).toBe(expected(expression));
    expect(rowsText(ask(expression) as ApiCountsRow[]), `${expression} again`).toBe(expected(expression));
  }
  // A URL that its shard knows needs no thread; a new one does.
  apply('https://ref2.example/rest/é/2');
  expect(rowsText(ask('ref2.example') as ApiCountsRow[])).toBe(expected('ref2.example'));
  apply('https://ref2.example/brand-new');
  expect(rowsText(await ask('ref2.example'))).toBe(expected('ref2.example'));
});

test('a large literal is evaluated in slices, and other things get their turns in between', async () => {
  const { apply, ask, expected } = fixture({ sliceBytes: 1 });
  for (let i = 0; i < 30_000; i++) apply(`https://ref${i % 7}.example/rest/${'x'.repeat(30)}/${i}`);
  let turns = 0;
  let going = true;
  const countTurn = () => {
    turns += 1;
    // Entries that come meanwhile are in the answer.
    if (turns === 2) apply('https://ref3.example/late');
    if (going) setImmediate(countTurn);
  };
  setImmediate(countTurn);
  const answer = ask('ref3');
  expect(answer).toBeInstanceOf(Promise);
  const text = rowsText(await answer);
  going = false;
  expect(turns).toBeGreaterThan(3);
  expect(text).toBe(expected('ref3'));
});

test('while evaluations are held, those that run end, however often one is asked for; what was asked comes then', async () => {
  const { evaluator, apply, ask, expected } = fixture();
  for (let i = 0; i < 20_000; i++) apply(`https://ref${i % 9}.example/${i}`);
  const running = ask('ref[12]');
  const releases = [evaluator.hold(), evaluator.hold()];
  const waiting = [ask('ref[12]'), ask('ref[34]')];
  let isAnswered = false;
  for (const one of waiting) void (one as Promise<unknown>).then(() => (isAnswered = true));
  expect(rowsText(await running)).toBe(expected('ref[12]'));
  expect(evaluator.runningCount).toBe(0);
  // What needs no evaluation is answered.
  expect(rowsText(ask('ref[12]') as ApiCountsRow[])).toBe(expected('ref[12]'));
  apply('https://ref3.example/new');
  releases[0]();
  await new Promise(setImmediate);
  expect([isAnswered, evaluator.runningCount]).toEqual([false, 0]);
  releases[1]();
  expect(rowsText(await waiting[0])).toBe(expected('ref[12]'));
  expect(rowsText(await waiting[1])).toBe(expected('ref[34]'));
});

test('what was asked of a view that has been replaced meanwhile is refused', async () => {
  const views = [new UsageView()];
  views[0].apply(edgeEntry(HOUR_US, 'https://ref1.example/', 1));
  const nothing = () => {
    throw new Error('nothing is sealed here');
  };
  const evaluator = new ApiCountsEvaluator(() => views, { files: { locate: nothing, damaged: nothing } });
  evaluators.push(evaluator);
  const release = evaluator.hold();
  const chosen = [...views];
  const asked = evaluator.collect('ref[12]', { interval: 'daily', nowUs: NOW_US }, chosen);
  views[0] = new UsageView();
  release();
  await expect(asked).rejects.toThrow('the state of a partition was replaced');
});

test('an answer is for the moment of the ask, and asks for one expression share its evaluation', async () => {
  const { evaluator, apply, ask, expected } = fixture();
  for (let i = 0; i < 20_000; i++) apply(`https://ref${i % 9}.example/${i}`);
  const first = ask('ref[12]');
  const firstExpected = expected('ref[12]');
  apply('https://ref1.example/new');
  const second = ask('ref[12]');
  const third = ask('ref[12]');
  const secondExpected = expected('ref[12]');
  expect(evaluator.runningCount).toBe(1);
  expect(rowsText(await first)).toBe(firstExpected);
  expect(rowsText(await second)).toBe(secondExpected);
  expect(rowsText(await third)).toBe(secondExpected);
  expect(firstExpected).not.toBe(secondExpected);
  expect(evaluator.runningCount).toBe(0);
});

test('answers come while new URLs keep coming', async () => {
  const { apply, ask, expected } = fixture();
  let count = 0;
  let going = true;
  const ingest = () => {
    for (let i = 0; i < 50; i++) apply(`https://ref${count % 5}.example/${count++}`);
    if (going) setImmediate(ingest);
  };
  ingest();
  for (const expression of ['ref2.', 'ref[34]', 'ref2.', 'ref2.', '^https']) {
    const before = expected(expression);
    expect(rowsText(await ask(expression)), expression).toBe(before);
  }
  going = false;
});

test('what cannot be evaluated is refused with its reason, with or without entries, and what nests as deep as it can is evaluated', async () => {
  for (const entryCount of [0, 3]) {
    const { apply, ask, expected } = fixture();
    for (let i = 0; i < entryCount; i++) apply(`abc/${i}`);
    const check = async (expression: string, refused: string) => {
      expect(await refusal(async () => ask(expression)), expression).toBe(refused);
      expect(await refusal(async () => ask(expression)), `${expression} again`).toBe(refused);
    };
    const invalid = "invalid: is not a regular expression in RE2's syntax:";
    await check('a[b', `${invalid} missing closing ]: \`[b\``);
    await check('a**', `${invalid} invalid nested repetition operator: \`**\``);
    await check('(?=a)', `${invalid} invalid or unsupported Perl syntax: \`(?=\``);
    await check('(a){1001}', `${invalid} invalid repeat count: \`{1001}\``);
    await check('\\', `${invalid} trailing backslash at end of expression`);
    await check(
      `${'(a?){1000}'.repeat(3)}`,
      'too-complex: compiles to 12002 instructions, the limit is 10000',
    );
    const long = EXPRESSION_LENGTH_LIMIT + 1;
    await check(
      'a'.repeat(long),
      `too-long: is ${long} characters long, the limit is ${EXPRESSION_LENGTH_LIMIT}`,
    );
    const longest = 'a.'.repeat(EXPRESSION_LENGTH_LIMIT / 2);
    const half = Math.floor((EXPRESSION_LENGTH_LIMIT - 1) / 2);
    const deepest = `${'('.repeat(half)}a${')'.repeat(half)}`;
    for (const one of [longest, deepest]) expect(rowsText(await ask(one)), one).toBe(expected(one));
    expect(rowsText(await ask('c/[12]'))).toBe(expected('c/[12]'));
  }
});

test('an evil expression keeps no other waiting, and stopping ends it', async () => {
  const fixed = fixture();
  applyLongUrls(fixed, 2000);
  const { evaluator, ask, expected } = fixed;
  let evilSettled = false;
  const evil = refusal(() => ask(EVIL)).finally(() => {
    evilSettled = true;
  });
  // Asked while the evil one is at work, again and again.
  for (const expression of ['abc.example', 'v1/[0-4]', 'abc', 'zzz.']) {
    expect(rowsText(await ask(expression)), expression).toBe(expected(expression));
    expect(evilSettled, `the evil one is at work behind ${expression}`).toBe(false);
  }
  const waiting = refusal(() => ask(EVIL));
  await evaluator.stop();
  const stopped = 'stopped: is not evaluated any more: the service is shutting down';
  expect(await evil).toBe(stopped);
  expect(await waiting).toBe(stopped);
  expect(await refusal(async () => ask('abc'))).toBe(stopped);
});

test('an evaluation beyond its deadline is refused, and others lose nothing', async () => {
  const fixed = fixture({ deadlineMs: 2_000 });
  applyLongUrls(fixed, 200);
  const { evaluator, ask, expected } = fixed;
  const evil = refusal(() => ask(EVIL));
  const other = ask('abc.example');
  expect(await evil).toBe('too-expensive: takes more than 2000 ms to evaluate');
  expect(rowsText(await other)).toBe(expected('abc.example'));
  expect(evaluator.runningCount).toBe(0);
});

test('one URL that takes longer than the deadline ends the thread, and a new one goes on', async () => {
  const fixed = fixture({ deadlineMs: 2_000 });
  applyLongUrls(fixed, 1, 1_000_000);
  const { evaluator, ask, expected } = fixed;
  const evil = refusal(() => ask(EVIL));
  const other = ask('abc.example');
  expect(await evil).toBe('too-expensive: takes more than 2000 ms to evaluate');
  expect(rowsText(await other)).toBe(expected('abc.example'));
  expect(rowsText(await ask('v1/[0-4]'))).toBe(expected('v1/[0-4]'));
  expect(evaluator.threadStartCount).toBe(2);
});

test('an expression that fills the memory of the thread is refused, and others go on', async () => {
  const fixed = fixture({ heapMb: 12 });
  applyLongUrls(fixed, 40);
  const { evaluator, ask, expected } = fixed;
  const evil = refusal(() => ask(EVIL));
  const other = ask('abc.example');
  expect(await evil).toContain('too-complex: made the match thread fail: ');
  expect(rowsText(await other)).toBe(expected('abc.example'));
  expect(rowsText(await ask('v1/[0-4]'))).toBe(expected('v1/[0-4]'));
  expect(evaluator.threadStartCount).toBeGreaterThan(1);
});

/** Hours of URLs, which threads share. */
function applyHours({ apply }: Fixture, hours: number): void {
  for (let i = 0; i < 200 * hours; i++) apply(`https://ref${i % 7}.example/rest/v1/${i}`, 1, i % hours);
}

test('threads share the fresh parts of an evaluation, also when URLs have come since', async () => {
  const fixed = fixture({ helperCount: 2, urlsPerHelper: 100 });
  const { evaluator, apply, askDays, expectedDays } = fixed;
  applyHours(fixed, 12);
  for (const expression of ['ref[1-3]', '/1.*5$', 'ref[1-3]']) {
    expect(rowsText(await askDays(expression)), expression).toBe(expectedDays(expression));
    for (let i = 0; i < 300; i++) apply(`https://ref2.example/rest/v1/${expression}/${i}/15`, 3, i % 12);
  }
  expect(evaluator.threadStartCount).toBe(3);
});

test('an evaluation that threads share is refused when one of them has had its time, and others lose nothing', async () => {
  const fixed = fixture({ helperCount: 1, urlsPerHelper: 1, deadlineMs: 6_000 });
  const { askDays, expectedDays } = fixed;
  applyHours(fixed, 4);
  applyLongUrls(fixed, 4, 2_000_000, 4);
  const others = ['ref[1-3]', 'example', '/1.*5$'];
  const expected = others.map(expectedDays);
  const [evil, ...answers] = await Promise.all([
    refusal(() => askDays(EVIL)),
    ...others.map(async (expression) => rowsText(await askDays(expression))),
  ]);
  expect(evil).toBe('too-expensive: takes more than 6000 ms to evaluate');
  expect(answers).toEqual(expected);
});

test('of a helper that dies of an expression the evaluation is refused, and others go on', async () => {
  const fixed = fixture({ helperCount: 1, urlsPerHelper: 1, heapMb: 12, deadlineMs: 120_000 });
  const { askDays, expectedDays } = fixed;
  applyHours(fixed, 4);
  applyLongUrls(fixed, 40, 1450, 4);
  const evil = refusal(() => askDays(EVIL));
  const other = askDays('ref[1-3]');
  expect(await evil).toContain('too-complex: made the match thread fail: ');
  expect(rowsText(await other)).toBe(expectedDays('ref[1-3]'));
});

test('more expressions at once than the limit are turned away', async () => {
  const { apply, ask, expected } = fixture({ evaluationLimit: 2 });
  apply('abc');
  const answers = ['a.c', 'ab.', '.bc'].map((expression) => refusal(() => ask(expression)));
  expect(await answers[2]).toBe("busy: can't be evaluated now: 2 others are, which is the limit; try again");
  expect(await answers[0]).toBe(`answered ${expected('a.c')}`);
  expect(await answers[1]).toBe(`answered ${expected('ab.')}`);
  expect(rowsText(await ask('.bc'))).toBe(expected('.bc'));
});

test('an ask that waits too long is refused, and so is one that came later; what is found meanwhile answers the next', async () => {
  const { apply, ask, expected, evaluator } = fixture({ waitMs: 1 });
  apply('abc');
  const answers = [1, 2].map(() => refusal(() => ask('a.c')));
  for (const answer of answers)
    expect(await answer).toBe(
      'busy: is not evaluated after 0.001 s, while 0 others are evaluated too; it goes on, so try again',
    );
  await eventually(() => evaluator.runningCount === 0);
  expect(rowsText(ask('a.c') as ApiCountsRow[])).toBe(expected('a.c'));
});

test.runIf(process.platform === 'linux')(
  'the match thread, and no other, gives way to the serving thread',
  async () => {
    const { apply, ask } = fixture();
    apply('https://ref1.example/rest/1');
    await ask('ref\\d');
    // The 19th field of a thread's line; the second is its name in parentheses.
    const niceness = (id: string) =>
      Number(readFileSync(`/proc/self/task/${id}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[16]);
    const others = readdirSync('/proc/self/task').filter((id) => niceness(id) !== getPriority());
    expect(others.map(niceness)).toEqual([Math.min(19, getPriority() + MATCH_THREAD_NICENESS)]);
  },
);

test('the match thread does not keep the process alive', () => {
  const url = (path: string) => JSON.stringify(new URL(path, import.meta.url).href);
  const script = `
    const { ApiCountsEvaluator } = await import(${url('../../src/match-thread/api-counts-evaluator.js')});
    const { UsageView } = await import(${url('../../engine/usage/usage-view.js')});
    const evaluator = new ApiCountsEvaluator(() => [new UsageView()], {});
    const alive = setInterval(() => undefined, 1000);
    await evaluator.collect('a.c', { interval: 'daily', nowUs: ${NOW_US} });
    clearInterval(alive);
    console.log('threads', evaluator.threadStartCount);`;
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script], { timeout: 30_000 });
  expect(output.toString().trim()).toBe('threads 1');
});
