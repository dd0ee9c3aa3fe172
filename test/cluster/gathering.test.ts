/** Who is asked for a partition when those that have the best copy don't answer. */

import { expect, test } from 'vitest';
import { FRESH_SHARE, SILENT_TIMES } from '../../src/cluster/limits.js';
import type { Question } from '../../src/cluster/messages.js';
import { Unavailable } from '../../src/endpoints/refusal.js';
import type { Gathered, ScatterCall } from '../../src/http/query/scatter-port.js';
import { FRESH_MS, replyOf, type StubMember, StubMembers, TIMEOUT_MS, TOPIC } from './stub-members.js';

const OLD_MS = 60_000;
const HANGING: StubMember = { ageMs: 0, answer: () => null };

/** Its copy is counted by those only who want it however old it is. */
function holder(ageMs: number, counted: (question: Question) => string): StubMember {
  return {
    ageMs,
    answer: (question) =>
      ageMs > question.oldestMs
        ? replyOf('old', ageMs)
        : replyOf('counted', ageMs, (out) => out.string(counted(question))),
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
  const members = new StubMembers(
    HANGING,
    holder(OLD_MS, () => 'old'),
  );
  await members.hear();
  const { gathered, afterMs } = await gather(members);
  expect(gathered).toMatchObject({ others: ['old'], state: { kind: 'old' } });
  expect(afterMs).toBe(FRESH_SHARE * TIMEOUT_MS);
});

test('once it is known to hang nothing is waited for', async () => {
  const members = new StubMembers(
    HANGING,
    holder(OLD_MS, () => 'old'),
  );
  await members.hear();
  const [hanging] = members.cluster.peers.all();
  for (let i = 0; i < SILENT_TIMES; i++) hanging.missed(i, i);
  expect(await gather(members)).toMatchObject({ gathered: { others: ['old'] }, afterMs: 0 });
});

test('without an old copy it is waited for until the time is up', async () => {
  const members = new StubMembers(HANGING);
  await members.hear();
  const { gathered, afterMs } = await gather(members);
  expect(gathered).toBeInstanceOf(Unavailable);
  expect(afterMs).toBe(TIMEOUT_MS);
});

test('a member that is gone when more detail is asked of it has another one asked', async () => {
  let askedCount = 0;
  const gone: StubMember = {
    ageMs: 0,
    answer: () => {
      if (askedCount++ > 0) throw new Error('connect ECONNREFUSED');
      return replyOf('counted', 0, (out) => out.string('part'));
    },
  };
  const members = new StubMembers(
    gone,
    holder(FRESH_MS / 2, () => 'whole'),
  );
  await members.hear();
  expect((await gather(members)).gathered).toMatchObject({ others: ['whole'], state: { kind: 'fresh' } });
});
