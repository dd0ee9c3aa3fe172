/** Who is asked for a partition when those that have the best copy don't answer. */

import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { RelayShard } from '../../engine/shard.js';
import {
  BEHIND_KNOWN_MS,
  BEHIND_WAIT_MS,
  CATCH_UP_PAUSE_MOST_MS,
  FRESH_SHARE,
  HEDGE_MOST_MS,
  SILENT_TIMES,
} from '../../src/cluster/limits.js';
import type { Question } from '../../src/cluster/messages.js';
import type { EndpointResources, LiveAnswer } from '../../src/endpoints/endpoint.js';
import { invocationStats } from '../../src/endpoints/invocation-stats.js';
import { logsAll } from '../../src/endpoints/logs-all.js';
import { PartitionsChanged, Unavailable } from '../../src/endpoints/refusal.js';
import type { AnswerState } from '../../src/http/ports.js';
import type { ScatterCall } from '../../src/http/query/scatter-port.js';
import { SharedAnswers } from '../../src/http/query/shared-answers.js';
import {
  FRESH_MS,
  NEXT_OFFSET,
  replyOf,
  type StubMember,
  StubMembers,
  TIMEOUT_MS,
  TOPIC,
} from './stub-members.js';

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

interface Outcome {
  readonly others: readonly unknown[];
  readonly state: AnswerState['kind'];
}

/** What is gathered, and after how long. */
async function gather(members: StubMembers): Promise<{ gathered: Outcome | Error; afterMs: number }> {
  const startUs = members.time.nowUs;
  let gathered: Outcome | Error | null = null;
  members.cluster.scatter.gather(CALL).then(
    ({ others, state }) => {
      gathered = { others, state: state().kind };
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
    gathered: { others: ['old 0'], state: 'old' },
    afterMs: FRESH_SHARE * TIMEOUT_MS,
  });
});

test('also of one partition of several, the others coming from who has them fresh', async () => {
  const members = new StubMembers([hanging(3), holder([0, 0, OLD_MS], 'other')]);
  await members.hear();
  const { gathered, afterMs } = await gather(members);
  expect(gathered).toMatchObject({ others: ['other 0,1', 'other 2'], state: 'old' });
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
    gathered: { others: ['fresh 0'], state: 'fresh' },
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

/** A member that can be told to be less far than it was, or to fail, and how often it was asked. */
function changing(): {
  readonly member: StubMember;
  askedCount: number;
  state: 'whole' | 'behind' | 'failing';
} {
  const changed = {
    askedCount: 0,
    state: 'whole' as 'whole' | 'behind' | 'failing',
    member: {
      agesMs: [0],
      takesMs: BEHIND_WAIT_MS,
      answer: (question: Question) => {
        changed.askedCount++;
        if (changed.state === 'failing') throw new Error('the connection was refused');
        return replyOf(
          question,
          () =>
            changed.state === 'behind'
              ? { status: 'behind', ageMs: 0, nextOffset: NEXT_OFFSET - 1 }
              : { status: 'counted', ageMs: 0 },
          (out) => out.string('all'),
        );
      },
    },
  };
  return changed;
}

/** So that it has to be as far as an answer from it was; then it is not. */
async function withOneBehind() {
  const only = changing();
  const members = new StubMembers([only.member]);
  await members.hear();
  await gather(members);
  only.state = 'behind';
  only.askedCount = 0;
  return { only, members };
}

const QUESTIONS = 20;
const gatherMany = (members: StubMembers) =>
  Promise.all(Array.from({ length: QUESTIONS }, () => gather(members)));

test('a member that is behind is not asked by each question that waits for it', async () => {
  const { only, members } = await withOneBehind();
  for (const { gathered, afterMs } of await gatherMany(members)) {
    expect(gathered).toBeInstanceOf(Unavailable);
    expect((gathered as Unavailable).message).toContain('has not come as far yet');
    expect(afterMs).toBeGreaterThan(0.8 * TIMEOUT_MS);
  }
  // All of them began before it had said anything.
  const laterCount = only.askedCount - QUESTIONS;
  expect(laterCount).toBeLessThanOrEqual(TIMEOUT_MS / (BEHIND_WAIT_MS + BEHIND_KNOWN_MS));
  expect(laterCount).toBeGreaterThan(0);
});

test('but all are answered soon after it has caught up', async () => {
  const { only, members } = await withOneBehind();
  const caughtUpMs = TIMEOUT_MS / 4;
  members.time.after(caughtUpMs * 1000, () => {
    only.state = 'whole';
  });
  // Who is asking it then is told that it is behind.
  const soonMs = 3 * BEHIND_WAIT_MS + BEHIND_KNOWN_MS + CATCH_UP_PAUSE_MOST_MS;
  for (const { gathered, afterMs } of await gatherMany(members)) {
    expect(gathered).toMatchObject({ others: ['all'], state: 'fresh' });
    expect(afterMs - caughtUpMs).toBeLessThanOrEqual(soonMs);
  }
});

test('and refused at once when it is gone', async () => {
  const { only, members } = await withOneBehind();
  await gather(members);
  only.state = 'failing';
  // What it said last holds for a moment.
  await members.time.runUntil(members.time.nowUs + 1000 * BEHIND_KNOWN_MS, () => false);
  for (const { gathered, afterMs } of await gatherMany(members)) {
    expect(gathered).toBeInstanceOf(Unavailable);
    expect(afterMs).toBeLessThan(TIMEOUT_MS / 2);
  }
});

test('a partition that is known only to the member that answers is not left out', async () => {
  const knowing = {
    agesMs: [0],
    answer: (question: Question) =>
      replyOf(
        question,
        () => ({ status: 'counted', ageMs: 0 }),
        (out) => out.string('all'),
        2,
      ),
  } satisfies StubMember;
  const members = new StubMembers([knowing]);
  await members.hear();
  const { gathered } = await gather(members);
  expect(gathered).toBeInstanceOf(Unavailable);
  expect(String(gathered)).toContain('edge/1');

  // Nobody polls: when a reply says that there is more, the member is asked what it holds.
  const later = new StubMembers([knowing]);
  await later.hear();
  knowing.agesMs = [0, 0];
  expect(await gather(later)).toMatchObject({ gathered: { others: ['all'], state: 'fresh' } });
});

test('a member that knows another log of the topic does not tell how many partitions this one has', async () => {
  const members = new StubMembers([holder([0], 'other')]);
  await members.hear();
  const [peer] = members.cluster.peers.all();
  expect(peer.noteTopic({ topic: TOPIC, topicId: 'made again', partitionCount: 0 })).toBe(false);
  expect(peer.topics).toHaveLength(1);
  expect(peer.noteTopic({ topic: TOPIC, topicId: 'made again', partitionCount: 2 })).toBe(true);
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
  expect((await gather(members)).gathered).toMatchObject({ others: ['whole 0'], state: 'fresh' });
});

const ANSWER: LiveAnswer = {
  body: [],
  window: () => ({ view: 'rows', level: null, startUs: 0, endUs: 1 }),
  holding: null,
  release: () => undefined,
};

test.each([
  ['is gone', null, (end: Ending) => end.resolve(ANSWER)],
  ['is another', new RelayShard(), (end: Ending) => end.resolve(ANSWER)],
  ['can not be read, as it is gone', null, (end: Ending) => end.reject(new Error('the file is not there'))],
])('an answer of several turns is refused where a shard %s by its end', async (_, next, finish) => {
  const members = new StubMembers([]);
  members.own(new RelayShard());
  const shared = new SharedAnswers({ port: members.cluster.scatter, topicOf: () => TOPIC });
  const endings: Ending[] = [];
  const ask = () =>
    shared.live(
      { ...logsAll, projectOf: () => null },
      {
        ...CALL.query,
        answer: () => expect.unreachable('it is shared'),
        answerWith: () => new Promise((resolve, reject) => endings.push({ resolve, reject })),
      },
      { parameters: {}, queryString: '', nowUs: 1 },
    );
  const kept = ask();
  await turn();
  endings.pop()!.resolve(ANSWER);
  await expect(kept).resolves.toMatchObject({ state: { kind: 'fresh' } });
  const gone = ask();
  await turn();
  members.own(next);
  finish(endings.pop()!);
  await expect(gone).rejects.toThrow(PartitionsChanged);
});

interface Ending {
  readonly resolve: (answer: LiveAnswer) => void;
  readonly reject: (error: Error) => void;
}

test('what has changed before it is merged is gathered once more', async () => {
  const members = new StubMembers([]);
  members.own(new RelayShard());
  const shared = new SharedAnswers({ port: members.cluster.scatter, topicOf: () => TOPIC });
  const ask = (changeCount: number) => {
    let left = changeCount;
    const merge = () => {
      if (left-- > 0) throw new PartitionsChanged();
      return Buffer.from('merged');
    };
    return shared.body(
      { endpoint: { ...invocationStats, projectOf: () => null }, query: { ...CALL.query, merge } },
      { parameters: {}, queryString: '', nowUs: 1 },
    );
  };
  expect(`${await ask(1)}`).toBe('merged');
  await expect(ask(2)).rejects.toThrow(PartitionsChanged);
});

test('an answer that takes long to evaluate is as old as what it was begun with', async () => {
  const members = new StubMembers([]);
  const shard = new RelayShard();
  members.own(shard);
  const { write, read } = CALL.query;
  const passMs = async (ms: number) => members.time.runUntil(members.time.nowUs + 1000 * ms);
  const evaluations: ((partials: unknown[]) => void)[] = [];
  const gathering = members.cluster.scatter.gather({
    ...CALL,
    endpoint: { ...CALL.endpoint, slowestMs: 10 * OLD_MS },
    query: { write, read, collect: () => new Promise<unknown[]>((resolve) => evaluations.push(resolve)) },
  });
  for (const text of ['first', 'second']) {
    await passMs(OLD_MS);
    members.own(shard);
    evaluations.pop()!([text]);
    await turn();
  }
  // The first is evaluated again, as it has become old; so has the second, but that was taken up sooner.
  expect(evaluations).toEqual([]);
  const gathered = await gathering;
  expect(gathered.partials()).toEqual(['second']);
  expect(gathered.state()).toEqual({ kind: 'old', ageUs: 1000 * OLD_MS });
});

test('what comes late is as old as when it was asked for', async () => {
  const members = new StubMembers([{ ...holder([0], 'late'), takesMs: OLD_MS }]);
  await members.hear();
  const gathering = members.cluster.scatter.gather({
    ...CALL,
    endpoint: { ...CALL.endpoint, slowestMs: 10 * OLD_MS },
  });
  await members.time.runUntil(members.time.nowUs + 1000 * OLD_MS);
  expect((await gathering).state()).toEqual({ kind: 'old', ageUs: 1000 * OLD_MS });
});

test('statistics come from others where this process has none of the partitions', async () => {
  const nowUs = Date.parse('2026-11-21T07:30:00Z') * 1000;
  const { stats } = new RelayShard();
  for (let i = 0; i < 400; i++)
    stats.apply({ timestampUs: nowUs, project: 'p', functionId: null, statusCode: 200, executionTimeMs: i });
  const open = () =>
    invocationStats.open({
      shards: { edge: [], relay: [] },
      memoBytes: 2 ** 20,
    } as unknown as EndpointResources);
  const theirs = open();
  const parameters = { project: 'p', functionId: null, interval: '1day' };
  const collected = theirs.collect(parameters, nowUs, { edge: [], relay: [{ stats } as RelayShard] });
  const answer = (question: Question) =>
    replyOf(
      question,
      () => ({ status: 'counted', ageMs: 0 }),
      (out) => theirs.write(out, collected[0], parameters, nowUs, question.detail),
    );
  const members = new StubMembers([{ agesMs: [0], answer }]);
  await members.hear();
  const query = open();
  const asked = { endpoint: invocationStats, query, parameters, queryString: '', nowUs };
  const gathered = await members.cluster.scatter.gather({ ...CALL, ...asked } as unknown as ScatterCall);
  const merged = query.merge(gathered.partials() as typeof collected);
  expect(`${Buffer.from(merged)}`).toBe(`${Buffer.from(theirs.merge(collected))}`);
  expect(`${Buffer.from(merged)}`).toContain('"p95_execution_time":379');
});
