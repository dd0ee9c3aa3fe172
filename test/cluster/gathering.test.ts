/** Who is asked for a partition when those that have the best copy don't answer. */

import { expect, test } from 'vitest';
import { FRESH_SHARE, HEDGE_MOST_MS, SILENT_TIMES } from '../../src/cluster/limits.js';
import { Unavailable } from '../../src/endpoints/refusal.js';
import type { Gathered, ScatterCall } from '../../src/http/query/scatter-port.js';
import { FRESH_MS, replyOf, type StubMember, StubMembers, TIMEOUT_MS, TOPIC } from './stub-members.js';

const OLD_MS = 60_000;

/** Says it has the partition as new as can be, and never answers. */
const hanging = (partitionCount = 1): StubMember => ({
  agesMs: new Array<number>(partitionCount).fill(0),
  answer: () => null,
});

/** Its copies are counted by who wants them however old they are, or they are not so old. */
function holder(agesMs: readonly number[], name: string): StubMember {
  return {
    agesMs,
    answer: (question) =>
      replyOf(
        question,
        (partition) => {
          const ageMs = agesMs[partition];
          return { status: ageMs > question.oldestMs ? 'old' : 'counted', ageMs };
        },
        (out, counted) => out.string(`${name} ${counted}`),
      ),
  };
}

/** A question whose partial answers are texts; those that are `'part'` lack something. */
const CALL: ScatterCall = {
  topic: TOPIC,
  endpoint: { name: 'texts', projectOf: () => null },
  query: {
    collect: () => [],
    write: () => expect.unreachable('nothing is sent from here'),
    read: (bytes) => Buffer.from(bytes).toString().slice(4),
    lacking: (partials) => {
      const details = partials.map((text) => (text === 'part' ? { count: 1, byteLimit: 1 } : null));
      return details.some((detail) => detail !== null) ? { details, byteCount: 0 } : null;
    },
  },
  parameters: {},
  queryString: '',
  nowUs: 1,
};

/** What is gathered, and after how long. */
async function gather(members: StubMembers): Promise<{ gathered: Gathered | Error; afterMs: number }> {
  const startUs = members.time.nowUs;
  let gathered: Gathered | Error | null = null;
  members.cluster.scatter.gather(CALL).then(
    (result) => {
      gathered = result;
    },
    (error: Error) => {
      gathered = error;
    },
  );
  await members.time.runUntil(startUs + 2 * TIMEOUT_MS * 1000, () => gathered !== null);
  return { gathered: gathered!, afterMs: (members.time.nowUs - startUs) / 1000 };
}

test('an old copy answers where the member with the fresh one hangs', async () => {
  const members = new StubMembers([hanging(), holder([OLD_MS], 'old')]);
  await members.hear();
  expect(await gather(members)).toMatchObject({
    gathered: { others: ['old 0'], state: { kind: 'old' } },
    afterMs: FRESH_SHARE * TIMEOUT_MS,
  });
});

test('also of one partition of several, the others coming from who has them fresh', async () => {
  const members = new StubMembers([hanging(3), holder([0, 0, OLD_MS], 'other')]);
  await members.hear();
  const { gathered, afterMs } = await gather(members);
  expect(gathered).toMatchObject({ others: ['other 0,1', 'other 2'], state: { kind: 'old' } });
  expect(afterMs).toBeLessThan(TIMEOUT_MS);
});

test('a member that was silent before is not waited for so long', async () => {
  const members = new StubMembers([hanging(), holder([OLD_MS], 'old')]);
  await members.hear();
  const [silent] = members.cluster.peers.all();
  for (let i = 0; i < SILENT_TIMES; i++) silent.missed(i, i);
  expect(await gather(members)).toMatchObject({ gathered: { others: ['old 0'] }, afterMs: HEDGE_MOST_MS });
});

test('but it is asked, and answers if it does not hang', async () => {
  const members = new StubMembers([holder([0], 'fresh'), holder([OLD_MS], 'old')]);
  await members.hear();
  const [silent] = members.cluster.peers.all();
  for (let i = 0; i < SILENT_TIMES; i++) silent.missed(i, i);
  expect(await gather(members)).toMatchObject({
    gathered: { others: ['fresh 0'], state: { kind: 'fresh' } },
  });
});

test.each([
  ['without an old copy', [hanging()], {}],
  ['with one that is too old', [hanging(), holder([OLD_MS], 'old')], { maxStalenessMs: OLD_MS / 2 }],
])('%s a member that hangs is waited for until the time is up', async (_, all, options) => {
  const members = new StubMembers(all, options);
  await members.hear();
  const { gathered, afterMs } = await gather(members);
  expect(gathered).toBeInstanceOf(Unavailable);
  expect(afterMs).toBe(TIMEOUT_MS);
});

test('a member that is gone when more detail is asked of it has another one asked', async () => {
  let askedCount = 0;
  const gone: StubMember = {
    agesMs: [0],
    answer: (question) => {
      if (askedCount++ > 0) throw new Error('connect ECONNREFUSED');
      return replyOf(
        question,
        () => ({ status: 'counted', ageMs: 0 }),
        (out) => out.string('part'),
      );
    },
  };
  const members = new StubMembers([gone, holder([FRESH_MS / 2], 'whole')]);
  await members.hear();
  expect((await gather(members)).gathered).toMatchObject({ others: ['whole 0'], state: { kind: 'fresh' } });
});
