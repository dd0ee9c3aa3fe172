/**
 * Members on a real broker at full size, while records come and all are asked: `npm run members`.
 *
 *   npm run members -- kill      one is killed each ten seconds, and started at once
 *   npm run members -- one-zone  the same where nobody stands in for it
 *   npm run members -- freeze    one is stopped for twenty seconds, and goes on
 *   npm run members -- restart   each in turn is stopped, and started; clients ask those whose /readyz is 200
 *   npm run members -- join      a fourth comes to three of a zone, and copies its share
 *   npm run members -- grow      the topic gets half as many partitions more
 *   npm run members -- lost-disk one is killed and its directory removed, when the topic no longer has what it had
 *
 *   --count N (how often: KINDS; join and grow are done once) --rate 5000 --questions 200 --seed 1
 *
 * Exit code 1: an answer was wrong, or one was refused that should not have been.
 */

import { rmSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { untilLed } from '../../bench/led-topics.js';
import { Latencies } from '../../bench/percentiles.js';
import { Random } from '../../src/demo/random.js';
import { eventually } from '../eventually.js';
import type { Rig } from '../kafka/rig.js';
import type { MemberPlace, Members } from './members.js';
import { ReadingPauses } from './reading-pauses.js';
import { Watch } from './watch.js';
import { openZones } from './zones.js';

const PARTITIONS = 16;
const FRESH_MS = 10_000;
const KILL_EVERY_MS = 10_000;
const FREEZE_MS = 20_000;
/** For what came while a member was frozen. */
const CAUGHT_UP_MS = 10_000;
const QUIET_MS = 20_000;
const READY_POLL_MS = 50;
/** What a lost disk had waits for so long: for longer than a member takes to start. */
const MOVE_AFTER_SECONDS = 25;
const MOVES_DEADLINE_MS = 600_000;
/** Of questions that may fail where another zone has everything. */
const MOST_REFUSED_SHARE = 0.001;
const SHOWN_CHARACTERS = 400;

/** How many members each zone has at the start, how often it is done, and the share of questions that may fail. */
const KINDS = {
  kill: { zones: ['east', 'west'], membersAZone: 2, count: 30, mayBeRefused: MOST_REFUSED_SHARE },
  'one-zone': { zones: ['one'], membersAZone: 4, count: 30, mayBeRefused: 1 },
  freeze: { zones: ['east', 'west'], membersAZone: 2, count: 50, mayBeRefused: 0 },
  restart: { zones: ['east', 'west'], membersAZone: 2, count: 4, mayBeRefused: 0 },
  join: { zones: ['east', 'west'], membersAZone: 3, count: 1, mayBeRefused: 0 },
  grow: { zones: ['east', 'west'], membersAZone: 2, count: 1, mayBeRefused: 0 },
  'lost-disk': { zones: ['east', 'west'], membersAZone: 2, count: 4, mayBeRefused: MOST_REFUSED_SHARE },
} as const;
type Kind = keyof typeof KINDS;

interface Trial {
  readonly watch: Watch;
  readonly members: Members;
  readonly place: MemberPlace;
  readonly names: readonly string[];
  readonly rig: Rig;
  readonly topic: string;
}

/** What came of one, in milliseconds. */
interface Figures {
  /** From its end until the last answer of another that was refused or old; 0: none was. */
  readonly othersMs: number;
  /** From its start until all are ready. */
  readonly readyMs: number;
}

interface Outcome {
  readonly figures: readonly Figures[];
  /** Latencies before the first. */
  readonly quiet: readonly number[];
}

async function trial(kind: Kind, all: Trial): Promise<Figures> {
  const { watch } = all;
  const [refusedBefore, staleBefore] = [watch.refused.length, watch.stale.length];
  const endMs = Date.now();
  const readyMs = await {
    join,
    grow,
    restart: end,
    freeze: end,
    kill: end,
    'one-zone': end,
    'lost-disk': loseDisk,
  }[kind](all, kind);
  const failed = [...watch.refused.slice(refusedBefore), ...watch.stale.slice(staleBefore)];
  return { othersMs: Math.max(0, ...failed.map(({ atMs }) => atMs - endMs)), readyMs };
}

/** Resolves with how long it took until the new member has its share and no other has it too. */
async function join({ members, place, names }: Trial): Promise<number> {
  const { zone } = place;
  const joining = `${zone}-new`;
  const own = names.filter((name) => name.startsWith(zone));
  const pauses = new ReadingPauses(members, own);
  await delay(QUIET_MS);
  const quietMs = pauses.take();
  const startMs = Date.now();
  await members.start({ name: joining, zone });
  const share = Math.floor(PARTITIONS / (own.length + 1));
  await eventually(
    async () => {
      const counts = await Promise.all(
        [joining, ...own].map(async (name) => (await members.assigned(name)).length),
      );
      return counts[0] === share && counts.reduce((sum, count) => sum + count, 0) === PARTITIONS;
    },
    () => members.of(joining).output().slice(-2_000),
    MOVES_DEADLINE_MS,
  );
  const copied = members
    .of(joining)
    .output()
    .match(/was copied from another member/g)?.length;
  const joinedMs = Date.now() - startMs;
  process.stdout.write(
    `${joining} has copied ${copied} partitions; its share is ${share}; of a partition that was kept nothing was read for ${pauses.take()} ms at most, quiet ${quietMs}\n`,
  );
  pauses.stop();
  return joinedMs;
}

/** Resolves with how long it took until both zones read all the new partitions. */
async function grow({ watch, members, names, rig, topic }: Trial): Promise<number> {
  const count = PARTITIONS * 1.5;
  await rig.admin.createPartitions({ topicPartitions: [{ topic, count }] });
  await untilLed(rig.admin, topic, count);
  const startMs = Date.now();
  watch.partitionCount = count;
  await eventually(async () => {
    const read = await Promise.all(names.map((name) => members.assigned(name)));
    return new Set(read.flat()).size === count && read.flat().length === 2 * count;
  });
  return Date.now() - startMs;
}

/** Resolves with how long it took from the new beginning until all that it had is there again, and all are ready. */
async function loseDisk({ watch, members, place, names, rig, topic }: Trial): Promise<number> {
  const { name } = place;
  const held = await members.positions(name);
  // Until the other zone has committed that, too.
  await delay(CAUGHT_UP_MS);
  for (const [partition, offset] of held)
    await rig.deleteBefore(topic, Number(partition.split('/')[1]), offset);
  watch.leaves(name);
  await members.of(name).kill('SIGKILL');
  watch.forget(name);
  rmSync(members.directoryOf(name), { recursive: true });
  const startMs = Date.now();
  await members.start(place);
  await eventually(
    async () => (await members.assigned(name)).length === held.size,
    () => members.of(name).output().slice(-2_000),
    MOVES_DEADLINE_MS,
  );
  await members.untilReady(...names);
  watch.back(name);
  const output = members.of(name).output();
  const copied = output.match(/was copied from another member/g)?.length;
  if (copied !== held.size || output.includes('"msg":"gap'))
    watch.wrong.push(`${name}: ${copied} of ${held.size} partitions were copied, or there is a gap`);
  return Date.now() - startMs;
}

/** Of one member, and its new beginning; resolves with how long that took until all are ready. */
async function end({ watch, members, place, names }: Trial, kind: Kind): Promise<number> {
  const { name } = place;
  if (kind !== 'restart') watch.leaves(name);
  if (kind === 'freeze') {
    process.kill(members.of(name).processId, 'SIGSTOP');
    await delay(FREEZE_MS);
    // From the turn in which it goes on it is judged.
    watch.back(name);
    process.kill(members.of(name).processId, 'SIGCONT');
  } else {
    await members.of(name).kill(kind === 'restart' ? 'SIGTERM' : 'SIGKILL');
    watch.forget(name);
  }
  const startMs = Date.now();
  if (kind !== 'freeze') await members.start(place);
  await members.untilReady(...names);
  if (kind !== 'freeze') watch.back(name);
  return Date.now() - startMs;
}

/** Whom a client asks that obeys /readyz: looked at again and again. */
function readyNames(members: Members, names: readonly string[]): { ready: Set<string>; stop: () => void } {
  const ready = new Set<string>();
  const timer = setInterval(() => {
    for (const name of names)
      void fetch(`${members.of(name).url}/readyz`, { signal: AbortSignal.timeout(1_000) })
        .then(async (response) => {
          await response.arrayBuffer();
          return response.status === 200;
        })
        .catch(() => false)
        .then((isReady) => (isReady ? ready.add(name) : ready.delete(name)));
  }, READY_POLL_MS);
  return { ready, stop: () => clearInterval(timer) };
}

/** Prints what came of all; whether it is as it should be. */
function report(kind: Kind, watch: Watch, { figures, quiet }: Outcome): boolean {
  const { refused, askedCount: asked } = watch;
  const texts = new Map<string, number>();
  for (const { text } of [...refused, ...watch.stale]) {
    const start = text.slice(0, SHOWN_CHARACTERS);
    texts.set(start, (texts.get(start) ?? 0) + 1);
  }
  for (const [text, count] of texts) process.stdout.write(`${count} × ${text}\n`);
  for (const line of watch.wrong.slice(0, 20)) process.stdout.write(`WRONG ${line}\n`);
  const most = (of: (one: Figures) => number) => Math.max(...figures.map(of));
  const p99 = (latencies: readonly number[]) => new Latencies(latencies).quantileMs(0.99).toFixed(1);
  process.stdout.write(
    `${watch.producedCount} records; ${asked} answers, ${refused.length} refused (${((100 * refused.length) / asked).toFixed(3)} %), ` +
      `${watch.stale.length} old, ${watch.insteadCount} from another, ${watch.wrong.length} wrong; ` +
      `others right again after ${most(({ othersMs }) => othersMs)} ms at most, all ready after ${most(({ readyMs }) => readyMs)}; ` +
      `p99 ${p99(watch.latencies)} ms, quiet ${p99(quiet)}\n`,
  );
  const isExplicit = kind !== 'one-zone' || refused.every(({ text }) => text.startsWith('503 '));
  return watch.wrong.length === 0 && isExplicit && refused.length <= asked * KINDS[kind].mayBeRefused;
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const;
  const { values, positionals } = parseArgs({
    options: { count: text, rate: text, questions: text, seed: text },
    allowPositionals: true,
  });
  const kinds = Object.keys(KINDS) as Kind[];
  const kind = kinds.find((one) => one === positionals[0]);
  if (kind === undefined) throw new Error(`say which: ${kinds.join(', ')}`);
  const count = Number(values.count ?? KINDS[kind].count);
  const random = new Random(Number(values.seed ?? 1));
  const cluster = await openZones({
    ...KINDS[kind],
    partitionCount: PARTITIONS,
    settings: {
      LOGRING_FRESH_MS: String(FRESH_MS),
      ...(kind === 'lost-disk' ? { LOGRING_MOVE_AFTER_SECONDS: String(MOVE_AFTER_SECONDS) } : {}),
    },
  });
  try {
    const { members, places, rig, topic } = cluster;
    const names = places.map(({ name }) => name);
    const watch = new Watch(members, names, rig, {
      topic,
      partitionCount: PARTITIONS,
      recordsPerSecond: Number(values.rate ?? 5_000),
      questionsPerSecond: Number(values.questions ?? 200),
      freshMs: FRESH_MS,
    });
    await Promise.all(places.map((place) => members.start(place)));
    watch.startProducing();
    await members.untilReady(...names);
    const polled = kind === 'restart' ? readyNames(members, names) : null;
    if (polled !== null) {
      const { ready } = polled;
      const instead = (name: string) => [...ready].find((other) => other !== name) ?? null;
      watch.balancer = { choose: (name) => (ready.has(name) ? name : instead(name)), instead };
      await eventually(() => ready.size === names.length);
    }
    watch.startAsking();
    await delay(QUIET_MS);
    const quiet = watch.latencies;
    watch.latencies = [];
    const figures: Figures[] = [];
    for (let done = 0; done < count; done++) {
      const beganMs = Date.now();
      const place = kind === 'restart' ? places[done % places.length] : random.pick(places);
      const one = await trial(kind, { watch, members, place, names, rig, topic });
      figures.push(one);
      process.stdout.write(
        `${done + 1} ${place.name}: others right again after ${one.othersMs} ms, all ready after ${one.readyMs}; ` +
          `${watch.askedCount} asked, ${watch.refused.length} refused, ${watch.stale.length} old, ${watch.wrong.length} wrong\n`,
      );
      if (kind === 'kill' || kind === 'one-zone')
        await delay(Math.max(0, beganMs + KILL_EVERY_MS - Date.now()));
      // Until then no zone may have all, and one more that stops takes the only new copies away.
      if (kind === 'freeze') await delay(CAUGHT_UP_MS);
    }
    polled?.stop();
    watch.balancer = null;
    const problem = await watch.stop().catch((error: unknown) => String(error));
    if (problem !== undefined) watch.wrong.push(problem);
    if (!report(kind, watch, { figures, quiet })) process.exitCode = 1;
  } finally {
    await cluster.close();
  }
}

await main();
