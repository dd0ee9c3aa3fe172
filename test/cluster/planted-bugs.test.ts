/** That the simulation of clusters can fail: each of these bugs must be found within so many histories. */

import { afterEach, expect, test } from 'vitest';
import { nextMark } from '../../engine/project-list.js';
import { Cluster } from '../../src/cluster/cluster.js';
import { Floors } from '../../src/cluster/floors.js';
import { readQuestion, readReply, writeQuestion } from '../../src/cluster/messages.js';
import { OwnCopies } from '../../src/cluster/own-copies.js';
import { Peer } from '../../src/cluster/peer.js';
import { PeerProjects } from '../../src/cluster/peer-projects.js';
import { PeerRequests } from '../../src/cluster/peer-requests.js';
import { Peers } from '../../src/cluster/peers.js';
import { WholeAnswers } from '../../src/service/whole-answers.js';
import { writeReadReply } from '../written.js';
import { historyReport } from './history.js';
import { NO_COPIES } from './no-copies.js';
import { TOPIC } from './simulated-cluster.js';

const MOST_SEEDS = 500;

const restores: (() => void)[] = [];
afterEach(() => {
  for (const restore of restores.splice(0)) restore();
});

/** Replaces a method of a class until the test ends; `make` gets the sound one. */
function replace<Class extends object, Name extends keyof Class>(
  prototype: Class,
  name: Name,
  make: (sound: Class[Name]) => Class[Name],
): void {
  const sound = Object.getOwnPropertyDescriptor(prototype, name)!;
  Object.defineProperty(prototype, name, { ...sound, value: make(sound.value as Class[Name]) });
  restores.push(() => Object.defineProperty(prototype, name, sound));
}

function isFound(bug: string, plant: () => void): void {
  test(`found: ${bug}`, async () => {
    plant();
    for (let seed = 1; seed <= MOST_SEEDS; seed++) {
      const report = await historyReport(seed, {}, {});
      if (report === null) continue;
      expect(report).toContain(`seed ${seed}`);
      return;
    }
    throw new Error(`not found in ${MOST_SEEDS} histories`);
  });
}

isFound('the partitions that are assigned are taken for all', () =>
  replace(
    OwnCopies.prototype,
    'partitionCount',
    (sound) =>
      function partitionCount(this: OwnCopies, topic: string) {
        let count = 0;
        for (let i = 0; i < sound.call(this, topic); i++)
          if (this.copy({ topic, partition: i })?.isReached === true) count++;
        return count;
      },
  ),
);

isFound('a member counts what the table says it has, though it has it no more', () =>
  replace(
    Cluster.prototype,
    'answer',
    (sound) =>
      async function answer(this: Cluster, bytes: Uint8Array) {
        const { partitions } = readQuestion(bytes);
        const reply = readReply(await sound.call(this, bytes), partitions);
        if (reply.kind !== 'answer') return writeReadReply(reply);
        return writeReadReply({
          ...reply,
          partitions: partitions.map(({ partition, atLeast }) => ({
            partition,
            status: 'counted',
            nextOffset: atLeast,
            ageMs: 0,
            projects: null,
          })),
        });
      },
  ),
);

isFound('a member that was frozen does not know how old its copies are', () =>
  replace(
    WholeAnswers.prototype,
    'partitionAgeUs',
    (sound) =>
      function partitionAgeUs(this: WholeAnswers, key) {
        return sound.call(this, key) === null ? null : 0;
      },
  ),
);

isFound('what a member sent is counted twice', () =>
  replace(
    Cluster.prototype,
    'answer',
    (sound) =>
      async function answer(this: Cluster, bytes: Uint8Array) {
        const reply = readReply(await sound.call(this, bytes), readQuestion(bytes).partitions);
        if (reply.kind !== 'answer') return writeReadReply(reply);
        return writeReadReply({ ...reply, partials: [...reply.partials, ...reply.partials] });
      },
  ),
);

isFound('a copy answers before it was read to its end', () => {
  replace(
    WholeAnswers.prototype,
    'partitionAgeUs',
    (sound) =>
      function partitionAgeUs(this: WholeAnswers, key) {
        return sound.call(this, key) ?? 0;
      },
  );
  replace(WholeAnswers.prototype, 'isReached', () => () => true);
});

isFound('what was copied is taken for as new as if it had been read to the end', () => {
  const loaded = new WeakMap<WholeAnswers, Set<number>>();
  const isLoaded = (whole: WholeAnswers, partition: number) => loaded.get(whole)?.has(partition) === true;
  replace(
    WholeAnswers.prototype,
    'load',
    (sound) =>
      function load(this: WholeAnswers, key, reader) {
        sound.call(this, key, reader);
        loaded.set(this, (loaded.get(this) ?? new Set()).add(key.partition));
      },
  );
  replace(
    WholeAnswers.prototype,
    'partitionAgeUs',
    (sound) =>
      function partitionAgeUs(this: WholeAnswers, key) {
        return isLoaded(this, key.partition) ? 0 : sound.call(this, key);
      },
  );
  replace(
    WholeAnswers.prototype,
    'isReached',
    (sound) =>
      function isReached(this: WholeAnswers, key) {
        return isLoaded(this, key.partition) || sound.call(this, key);
      },
  );
});

isFound('what answers had come from is forgotten', () => replace(Floors.prototype, 'of', () => () => 0));

isFound('what a member had nothing of once it is taken to have nothing of now', () =>
  replace(
    PeerProjects.prototype,
    'without',
    (sound) =>
      function without(this: PeerProjects, id, project, topicId, nowUs) {
        const copy = sound.call(this, id, project, topicId, nowUs);
        return copy && { ...copy, nextOffset: copy.nextOffset + 1_000, ageMs: 0 };
      },
  ),
);

isFound('a list of projects is taken for whole before it is', () =>
  replace(
    PeerProjects.prototype,
    'hear',
    (sound) =>
      function hear(this: PeerProjects, copies, topicIdOf, heardUs) {
        const first = copies.map((copy) => {
          const hashes = copy.hashes.subarray(0, Math.max(0, 1 - copy.from));
          const mark = nextMark(0, hashes[0] ?? 0);
          return copy.from > 0 || hashes.length === 0
            ? copy
            : { ...copy, hashes, projects: { count: 1, mark } };
        });
        sound.call(this, first, topicIdOf, heardUs);
      },
  ),
);

isFound('own copies of partitions are counted that others have counted', () =>
  replace(
    OwnCopies.prototype,
    'shardsOf',
    (sound) =>
      function shardsOf(this: OwnCopies, topic: string) {
        return sound.call(
          this,
          topic,
          this.holdings().map(({ partition }) => partition),
        );
      },
  ),
);

isFound('a member that is behind says that it is not', () =>
  replace(
    Cluster.prototype,
    'answer',
    (sound) =>
      async function answer(this: Cluster, bytes: Uint8Array) {
        const question = readQuestion(bytes);
        const eased = question.partitions.map(({ partition }) => ({ partition, atLeast: 0 }));
        const reply = readReply(
          await sound.call(this, writeQuestion({ ...question, partitions: eased })),
          eased,
        );
        if (reply.kind !== 'answer') return writeReadReply(reply);
        const floorOf = (one: number) =>
          question.partitions.find(({ partition }) => partition === one)!.atLeast;
        return writeReadReply({
          ...reply,
          partitions: reply.partitions.map((one) => ({
            ...one,
            nextOffset: Math.max(one.nextOffset, floorOf(one.partition)),
          })),
        });
      },
  ),
);

isFound('the memory of a reply is used again before the answer is made of it', () =>
  replace(
    PeerRequests.prototype,
    'request',
    (sound) =>
      async function request(this: PeerRequests, ...how) {
        const outcome = await sound.apply(this, how);
        this.release();
        return outcome;
      },
  ),
);

isFound('a partition that nobody has is left out', () =>
  replace(
    Peers.prototype,
    'holders',
    (sound) =>
      function holders(this: Peers, key) {
        const some = sound.call(this, key);
        if (some.length > 0) return some;
        const nobody = new Peer(
          { zone: '', storeId: 'nobody', url: '', wireVersion: 1, assigned: [], beside: [] },
          {
            ...NO_COPIES,
            ask: async (bytes) =>
              writeReadReply({
                kind: 'answer',
                partitionCount: 0,
                partitions: readQuestion(bytes).partitions.map(({ partition, atLeast }) => ({
                  partition,
                  status: 'counted',
                  nextOffset: atLeast,
                  ageMs: 0,
                  projects: null,
                })),
                dropped: [],
                partials: [],
              }),
            holdings: () => Promise.reject(new Error('nobody')),
            close: () => undefined,
          },
        );
        return [nobody];
      },
  ),
);

isFound('a topic that has gained partitions is not looked at again', () => {
  let count = 0;
  replace(
    OwnCopies.prototype,
    'partitionCount',
    (sound) =>
      function partitionCount(this: OwnCopies, topic: string) {
        if (topic === TOPIC && count === 0) count = sound.call(this, topic);
        return Math.min(count, sound.call(this, topic));
      },
  );
});
