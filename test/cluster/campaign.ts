/**
 * Members on a real broker at full size, while records come and all are asked: `npm run members`.
 *
 *   npm run members -- kill      one is killed each ten seconds, and started at once
 *   npm run members -- one-zone  the same where nobody stands in for it
 *   npm run members -- freeze    one is stopped for twenty seconds, and goes on
 *   npm run members -- restart   each in turn is stopped, and started; clients ask those whose /readyz is 200
 *
 *   --count 30 --rate 5000 --questions 200 --seed 1
 *
 * Exit code 1: an answer was wrong, or one was refused that should not have been.
 */

import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { Latencies } from '../../bench/percentiles.js';
import { Random } from '../../src/demo/random.js';
import type { MemberPlace, Members } from './members.js';
import { type Failure, Watch } from './watch.js';
import { openZones } from './zones.js';

const PARTITIONS = 16;
const FRESH_MS = 10_000;
const KILL_EVERY_MS = 10_000;
const FREEZE_MS = 20_000;
const QUIET_MS = 20_000;
const READY_POLL_MS = 50;
/** Of questions that may fail where another zone has everything. */
const MOST_REFUSED_SHARE = 0.001;

const SHOWN_CHARACTERS = 160;

const KINDS = ['kill', 'one-zone', 'freeze', 'restart'] as const;
type Kind = (typeof KINDS)[number];

interface Trial {
  readonly watch: Watch;
  readonly members: Members;
  readonly place: MemberPlace;
  readonly names: readonly string[];
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
  readonly asked: number;
  readonly refused: readonly Failure[];
}

async function trial(kind: Kind, { watch, members, place, names }: Trial): Promise<Figures> {
  const { name } = place;
  const [refusedBefore, staleBefore] = [watch.refused.length, watch.stale.length];
  if (kind !== 'restart') watch.leaves(name);
  const endMs = Date.now();
  if (kind === 'freeze') {
    process.kill(members.of(name).processId, 'SIGSTOP');
    await delay(FREEZE_MS);
    // From the turn in which it goes on it is judged.
    watch.back(name);
    process.kill(members.of(name).processId, 'SIGCONT');
  } else await members.of(name).kill(kind === 'restart' ? 'SIGTERM' : 'SIGKILL');
  const startMs = Date.now();
  if (kind !== 'freeze') await members.start(place);
  await members.untilReady(...names);
  const readyMs = Date.now() - startMs;
  if (kind !== 'freeze') watch.back(name);
  const failed = [...watch.refused.slice(refusedBefore), ...watch.stale.slice(staleBefore)];
  return { othersMs: Math.max(0, ...failed.map(({ atMs }) => atMs - endMs)), readyMs };
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
function report(kind: Kind, watch: Watch, { figures, quiet, asked, refused }: Outcome): boolean {
  const texts = new Map<string, number>();
  for (const { text } of refused) {
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
  const mayBeRefused = { kill: MOST_REFUSED_SHARE, 'one-zone': 1, freeze: 0, restart: 0 }[kind];
  return watch.wrong.length === 0 && refused.length <= asked * mayBeRefused;
}

async function main(): Promise<void> {
  const text = { type: 'string' } as const;
  const { values, positionals } = parseArgs({
    options: { count: text, rate: text, questions: text, seed: text },
    allowPositionals: true,
  });
  const kind = KINDS.find((one) => one === positionals[0]);
  if (kind === undefined) throw new Error(`say which: ${KINDS.join(', ')}`);
  const count = Number(values.count ?? (kind === 'restart' ? 4 : 30));
  const random = new Random(Number(values.seed ?? 1));
  const cluster = await openZones({
    zones: kind === 'one-zone' ? ['one'] : ['east', 'west'],
    membersAZone: kind === 'one-zone' ? 4 : 2,
    partitionCount: PARTITIONS,
    settings: { LOGRING_FRESH_MS: String(FRESH_MS) },
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
      watch.isAsked = (name) => polled.ready.has(name);
      watch.insteadOf = (name) => [...polled.ready].find((other) => other !== name) ?? null;
    }
    watch.startAsking();
    await delay(QUIET_MS);
    const quiet = watch.latencies;
    watch.latencies = [];
    const [askedBefore, refusedBefore] = [watch.askedCount, watch.refused.length];
    const figures: Figures[] = [];
    for (let done = 0; done < count; done++) {
      const beganMs = Date.now();
      const place = kind === 'restart' ? places[done % places.length] : random.pick(places);
      const one = await trial(kind, { watch, members, place, names });
      figures.push(one);
      process.stdout.write(
        `${done + 1} ${place.name}: others right again after ${one.othersMs} ms, all ready after ${one.readyMs}; ` +
          `${watch.askedCount} asked, ${watch.refused.length} refused, ${watch.stale.length} old, ${watch.wrong.length} wrong\n`,
      );
      if (kind === 'kill' || kind === 'one-zone')
        await delay(Math.max(0, beganMs + KILL_EVERY_MS - Date.now()));
    }
    const asked = watch.askedCount - askedBefore;
    const refused = watch.refused.slice(refusedBefore);
    polled?.stop();
    await watch.stop();
    if (!report(kind, watch, { figures, quiet, asked, refused })) process.exitCode = 1;
  } finally {
    await cluster.close();
  }
}

await main();
