/** What a member says of what it sends to others. */

import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { RelayShard } from '../../engine/shard.js';
import { readReply, writeQuestion } from '../../src/cluster/messages.js';
import { apiCounts } from '../../src/endpoints/api-counts.js';
import type { ServedEndpoint } from '../../src/http/query/query-api.js';
import { FRESH_MS, StubMembers, TOPIC } from './stub-members.js';

const TOOK_MS = 40_000;
const AGE_MS = 1_000;

test('what took long to evaluate is as old as what it was begun with', async () => {
  const members = new StubMembers([]);
  const shard = new RelayShard();
  members.own(shard);
  await members.time.runUntil(members.time.nowUs + 1000 * AGE_MS);
  let finish: (partials: unknown[]) => void = () => undefined;
  const served = {
    id: apiCounts.id,
    endpoint: apiCounts,
    query: {
      collect: () =>
        new Promise((resolve) => {
          finish = resolve;
        }),
      write: () => undefined,
    },
  } as unknown as ServedEndpoint;
  members.cluster.serve({ find: () => served });
  const partitions = [{ partition: 0, atLeast: 0 }];
  const answering = members.cluster.answer(
    writeQuestion({
      endpoint: apiCounts.name,
      query: 'project=p&interval=daily',
      topic: TOPIC,
      topicId: 'id',
      nowUs: 1,
      limitMs: 2 * TOOK_MS,
      detail: { count: 0, byteLimit: 0 },
      oldestMs: FRESH_MS,
      partitions,
    }),
  );
  await turn();
  await members.time.runUntil(members.time.nowUs + 1000 * TOOK_MS);
  members.own(shard);
  finish([{}]);
  expect(readReply(await answering, partitions)).toMatchObject({
    kind: 'answer',
    // The asker adds the time since it asked.
    partitions: [{ status: 'counted', ageMs: AGE_MS }],
  });
});

test('how many partitions a topic has is told of the log that is asked for only', async () => {
  const members = new StubMembers([]);
  members.own(new RelayShard());
  const served = { id: apiCounts.id, endpoint: apiCounts, query: { collect: () => [] } };
  members.cluster.serve({ find: () => served as unknown as ServedEndpoint });
  const partitions = [{ partition: 0, atLeast: 0 }];
  for (const [topicId, partitionCount] of [
    ['id', 1],
    ['', 1],
    ['made again', 0],
  ] as const) {
    const question = writeQuestion({
      endpoint: apiCounts.name,
      query: 'project=p&interval=daily',
      topic: TOPIC,
      topicId,
      nowUs: 1,
      limitMs: 1,
      detail: { count: 0, byteLimit: 0 },
      oldestMs: FRESH_MS,
      partitions,
    });
    expect(readReply(await members.cluster.answer(question), partitions)).toMatchObject({ partitionCount });
  }
});
