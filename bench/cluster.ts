/**
 * `npm run bench:cluster`: what a question costs where several members share the partitions, in processor time of all of
 * them, beside one process that reads everything; answers are compared first. `-- --small` takes seconds and runs in the
 * test suite; `--entries N --questions N --warm-ups N --members 1,2,4 --at-once 1,8`.
 */

import { readFileSync } from 'node:fs';
import { Agent } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { monotonicUs } from '../src/system-clock.js';
import { Members } from '../test/cluster/members.js';
import { kafkaUnavailable, startBroker } from '../test/kafka/broker/broker.js';
import { Rig, uniqueName } from '../test/kafka/rig.js';
import { createTraffic } from './generator/traffic.js';
import { getText } from './http-get.js';
import { Latencies } from './percentiles.js';

const PARTITIONS = 12;
const PROJECTS = 50;
/** Records that are sent at a time. */
const BATCH = 200;
const MS_PER_DAY = 86_400_000;
const US_PER_DAY = 1000 * MS_PER_DAY;
/** Before the last entry. Rows of longer ago would be sorted by now, and one query would find them in a few runs. */
const EDGE_SPAN_US = US_PER_DAY / 8;
const RELAY_SPAN_US = 2 * US_PER_DAY;
/** Linux counts processor time in hundredths of a second. */
const US_PER_TICK = 10_000;

export interface ClusterSizes {
  readonly entries: number;
  readonly questions: number;
  /** Asked before, of each kind: on Node 24 V8 compiles what members do with a question until some 60,000 were asked. */
  readonly warmUps: number;
  readonly members: readonly number[];
  /** Questions under way at a time. With one, every process sleeps until it is asked. */
  readonly atOnce: readonly number[];
}

export const LARGE: ClusterSizes = {
  entries: 60_000,
  questions: 5_000,
  warmUps: 60_000,
  members: [1, 2, 4],
  atOnce: [1, 8],
};
export const SMALL: ClusterSizes = {
  entries: 2_000,
  questions: 30,
  warmUps: 3,
  members: [1, 2],
  atOnce: [1, 8],
};

export interface ClusterFigures {
  readonly question: string;
  readonly members: number;
  readonly atOnce: number;
  /** Of all members together, a question. */
  readonly processorUs: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Throws where an answer is not the one of one process. */
export async function runClusterBench(
  { entries, questions, warmUps, members: counts, atOnce: widths }: ClusterSizes,
  tell: (line: string) => void,
): Promise<ClusterFigures[]> {
  const broker = await startBroker({
    version: '4.1',
    properties: { 'group.initial.rebalance.delay.ms': '3000' },
  });
  const rig = new Rig(broker.brokers, { idempotent: true });
  const figures: ClusterFigures[] = [];
  try {
    await rig.connect();
    const topic = uniqueName('edge');
    for (const name of [topic, `${topic}-relay`]) await rig.createTopic(name, PARTITIONS);
    const endUs = Math.floor(Date.now() - MS_PER_DAY / 8) * 1000;
    const asked = questionsOf(await produce(rig, topic, entries, endUs), endUs);
    let right: readonly string[] | null = null;
    for (const count of counts) {
      const members = new Members({
        LOGRING_KAFKA_BROKERS: broker.brokers.join(),
        LOGRING_KAFKA_GROUP_ID: `${topic}-${count}`,
        LOGRING_EDGE_TOPIC: topic,
        LOGRING_RELAY_TOPIC: `${topic}-relay`,
        LOGRING_DEAD_LETTER_TOPIC: `${topic}-dead`,
      });
      try {
        const names = Array.from({ length: count }, (_, i) => `m${i}`);
        await Promise.all(names.map((name) => members.start({ name, zone: '' })));
        await members.untilReady(...names);
        const bodies = await Promise.all(
          asked.map(async (question) => (await members.ask('m0', question(0))).body),
        );
        right ??= bodies;
        for (const [i, body] of bodies.entries())
          if (body !== right[i]) throw new Error(`${count} members answer ${asked[i](0)} otherwise than one`);
        for (const question of asked)
          for (const [i, atOnce] of widths.entries()) {
            const sizes = { questions, warmUps: i === 0 ? warmUps : 0, atOnce };
            const one = await measure(members, names, question, sizes);
            figures.push({ question: question(0).split('?')[0], members: count, atOnce, ...one });
            tell(JSON.stringify(figures.at(-1)));
          }
      } finally {
        await members.stop();
      }
    }
  } finally {
    await rig.close();
    await broker.stop();
  }
  return figures;
}

/**
 * Entries up to `endUs`, so far back that no answer changes with the time, one after the other to each partition in turn,
 * as producers send what has no key; returns the busiest project.
 */
async function produce(rig: Rig, topic: string, entries: number, endUs: number): Promise<string> {
  const traffic = createTraffic({ seed: 1, projectCount: PROJECTS });
  for (const [name, spanUs, draw] of [
    [topic, EDGE_SPAN_US, (atUs: number) => traffic.edge(atUs)],
    [`${topic}-relay`, RELAY_SPAN_US, (atUs: number) => traffic.relay(atUs)],
  ] as const)
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const values: string[] = [];
      for (let i = partition; i < entries / 2; i += PARTITIONS)
        values.push(draw(endUs - Math.floor((2 * spanUs * i) / entries)));
      for (let i = 0; i < values.length; i += BATCH)
        await rig.produce(name, partition, values.slice(i, i + BATCH));
    }
  return traffic.projects[0].ref;
}

/** The question that is asked as the so-manieth. */
type Question = (turn: number) => string;

function questionsOf(project: string, endUs: number): Question[] {
  return [
    // Each with another end, as the rows of one that was asked before are kept.
    (turn) => {
      const end = new Date(endUs / 1000 + turn).toISOString();
      return `logs.all?project=${project}&project_tier=ENTERPRISE&iso_timestamp_end=${end}`;
    },
    () => `functions.invocation-stats?project=${project}&interval=7day`,
    () => `usage.api-counts?project=${project}&interval=daily`,
    () => `logs.event-counts?project=${project}&project_tier=ENTERPRISE&interval=daily`,
  ];
}

/** What the members take without questions is taken off. */
async function measure(
  members: Members,
  names: readonly string[],
  question: Question,
  { questions: count, warmUps, atOnce }: { questions: number; warmUps: number; atOnce: number },
) {
  const agent = new Agent({ keepAlive: true, maxSockets: atOnce });
  const latenciesUs: number[] = [];
  let turn = 0;
  const askUntil = async (end: number) => {
    while (turn < end) {
      const url = `${members.of(names[0]).url}/api/endpoints/query/${question(turn++)}`;
      const askedUs = monotonicUs();
      const { status } = await getText(url, agent);
      if (status !== 200) throw new Error(`${url} answers ${status}`);
      latenciesUs.push(monotonicUs() - askedUs);
    }
  };
  const ask = (questionCount: number) => {
    const end = turn + questionCount;
    return Promise.all(Array.from({ length: atOnce }, () => askUntil(end)));
  };
  try {
    await ask(warmUps);
    latenciesUs.length = 0;
    const processorUs = () => names.reduce((sum, name) => sum + processorUsOf(members.of(name).processId), 0);
    const [beforeUs, startUs] = [processorUs(), monotonicUs()];
    await ask(count);
    const [askedUs, tookUs] = [processorUs() - beforeUs, monotonicUs() - startUs];
    const idleBeforeUs = processorUs();
    await delay(tookUs / 1000);
    const idleUs = processorUs() - idleBeforeUs;
    const latencies = new Latencies(latenciesUs);
    return {
      processorUs: Math.round((askedUs - idleUs) / count),
      p50Ms: latencies.quantileMs(0.5),
      p99Ms: latencies.quantileMs(0.99),
    };
  } finally {
    agent.destroy();
  }
}

/** User and system time of a process with its threads. */
function processorUsOf(processId: number): number {
  const fields = readFileSync(`/proc/${processId}/stat`, 'latin1')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) * US_PER_TICK;
}

async function main(): Promise<void> {
  if (kafkaUnavailable !== null) throw new Error(`the bench needs a Kafka broker: ${kafkaUnavailable}`);
  const text = { type: 'string' } as const;
  const { values } = parseArgs({
    options: {
      small: { type: 'boolean' },
      entries: text,
      questions: text,
      'warm-ups': text,
      members: text,
      'at-once': text,
    },
  });
  const usual = values.small ? SMALL : LARGE;
  const figures = await runClusterBench(
    {
      entries: Number(values.entries ?? usual.entries),
      questions: Number(values.questions ?? usual.questions),
      warmUps: Number(values['warm-ups'] ?? usual.warmUps),
      members: values.members?.split(',').map(Number) ?? usual.members,
      atOnce: values['at-once']?.split(',').map(Number) ?? usual.atOnce,
    },
    (line) => process.stderr.write(`${line}\n`),
  );
  process.stdout.write(
    '| | members | at once | processor time, µs | p50 ms | p99 ms |\n|---|---|---|---|---|---|\n',
  );
  for (const { question, members, atOnce, processorUs, p50Ms, p99Ms } of figures)
    process.stdout.write(
      `| ${question} | ${members} | ${atOnce} | ${processorUs} | ${p50Ms.toFixed(2)} | ${p99Ms.toFixed(2)} |\n`,
    );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main();
