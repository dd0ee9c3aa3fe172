/** Odd records in two topics, and one process that has read all of them beside the members that are compared with it. */

import { expect } from 'vitest';
import { OddRecords } from '../../bench/generator/odd-records.js';
import { Random } from '../../src/demo/random.js';
import type { Broker } from '../kafka/broker/broker.js';
import type { Rig } from '../kafka/rig.js';
import type { Members } from './members.js';

const PROJECTS = ['proj-a', 'proj-b', 'proj-c', 'ä"'];
const FUNCTIONS = ['f', 'g', 'ü'];
const US_PER_HOUR = 3_600_000_000;

const BY_PROJECT = [...PROJECTS, 'nobody'].flatMap((name) => {
  const project = encodeURIComponent(name);
  return [
    `logs.all?project=${project}&project_tier=ENTERPRISE`,
    `logs.all?project=${project}&project_tier=FREE`,
    `logs.event-counts?project=${project}&project_tier=ENTERPRISE&interval=daily`,
    `functions.invocation-stats?project=${project}&interval=7day`,
    `functions.invocation-stats?project=${project}&interval=1day`,
    `functions.invocation-stats?project=${project}&interval=7day&function_id=g`,
    `usage.api-counts?project=${project}&interval=daily`,
  ];
});
const EXPRESSIONS = ['proj-%5Bab%5D', 'rest%7Cauth', 'x%5E'].map(
  (expression) => `usage.api-counts?project=${expression}&interval=daily`,
);
export const QUESTIONS = [...BY_PROJECT, ...EXPRESSIONS];

export interface OddTopics {
  readonly partitions: number;
  /** Of both topics together. */
  readonly count: number;
  readonly isKeyed: boolean;
  readonly seed: number;
}

/** Produces to a topic and to `<topic>-relay`, which exist. */
export async function produceOdd(
  rig: Rig,
  topic: string,
  { partitions, count, isKeyed, seed }: OddTopics,
): Promise<void> {
  const random = new Random(seed);
  const odd = new OddRecords(random, {
    projects: PROJECTS,
    functionIds: FUNCTIONS,
    timeShape: 'log-normal',
    oddShare: 0.3,
  });
  const nowUs = Date.now() * 1000;
  for (const [of, draw] of [
    [topic, (timestampUs: number) => odd.edge(timestampUs)],
    [`${topic}-relay`, (timestampUs: number) => odd.relay(timestampUs)],
  ] as const) {
    const values: string[][] = Array.from({ length: partitions }, () => []);
    for (let i = 0; i < count / 2; i++) {
      const value = draw(nowUs - Math.floor(random.float() * 70 * US_PER_HOUR));
      const key = PROJECTS.findIndex((project) => value.includes(JSON.stringify(project)));
      values[isKeyed ? Math.max(0, key) : random.below(partitions)].push(value);
    }
    for (const [partition, some] of values.entries())
      for (let i = 0; i < some.length; i += 500) await rig.produce(of, partition, some.slice(i, i + 500));
  }
}

/** Of members that read the topics. */
export function settingsOf(topic: string, { brokers }: Broker): Record<string, string> {
  return {
    LOGRING_KAFKA_BROKERS: brokers.join(),
    LOGRING_KAFKA_GROUP_ID: topic,
    LOGRING_EDGE_TOPIC: topic,
    LOGRING_RELAY_TOPIC: `${topic}-relay`,
    LOGRING_DEAD_LETTER_TOPIC: `${topic}-dead`,
  };
}

/** `one`, in a group of its own. */
export function startAlone(members: Members, topic: string, { brokers }: Broker) {
  return members.start(
    { name: 'one', zone: '' },
    {
      LOGRING_KAFKA_BROKERS: brokers.join(),
      LOGRING_KAFKA_GROUP_ID: `${topic}-one`,
      LOGRING_ZONES: '',
      LOGRING_DEAD_LETTER_TOPIC: `${topic}-dead-one`,
    },
  );
}

/** Unless a bucket ends just now, as the one process shows. */
export async function expectSame(members: Members, name: string, question: string): Promise<void> {
  for (let tries = 0; tries < 3; tries++) {
    const before = await members.ask('one', question);
    const answer = await members.ask(name, question);
    const after = await members.ask('one', question);
    if (before.body !== after.body) continue;
    expect(before.status, before.body).toBe(200);
    expect({ question, name, ...answer }).toEqual({ question, name, ...before });
    return;
  }
  throw new Error(`the answer to ${question} changes all the time`);
}
