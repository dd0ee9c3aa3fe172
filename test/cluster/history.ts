/**
 * A history of a simulated cluster, drawn from a seed: records come, members join, leave, are killed, frozen and started
 * again, messages are slow, lost and cut off, and questions are asked all along. Each answer is held against the logs.
 */

import type { PeerLink } from '../../src/cluster/peer.js';
import { Random } from '../../src/demo/random.js';
import { SMALL_BODY_BYTES } from '../../src/endpoints/limits.js';
import { NO_COPIES } from './no-copies.js';
import {
  Coordinator,
  FRESH_MS,
  Life,
  Logs,
  type Planted,
  projectOf,
  SimulatedMember,
} from './simulated-cluster.js';
import { VirtualTime } from './virtual-time.js';

const MS = 1_000;
/** Between two turns of a member: it reads on and hears. */
const TURN_US = 200 * MS;
const SESSION_US = 2_000 * MS;
/** Wall clocks of members, in turn. */
const CLOCKS_AHEAD_US = [0, 3_600_000 * MS, -3_600_000 * MS];
/** Ages are told from when an end was heard, which is some turns ago. */
const AGE_SLACK_US = 2 * TURN_US;

export type Totals = Record<string, number>;

/** Plays the history of a seed; null when all its answers were right, else what was wrong. */
export async function historyReport(seed: number, planted: Planted, totals: Totals): Promise<string | null> {
  return await new History(seed, planted, totals).play();
}

class History {
  readonly #random: Random;
  readonly #seed: number;
  readonly #planted: Planted;
  readonly #totals: Totals;
  readonly #time = new VirtualTime();
  readonly #logs = new Logs();
  readonly #members: SimulatedMember[] = [];
  readonly #coordinators: Coordinator[] = [];
  readonly #cut = new Set<string>();
  readonly #lossShare: number;
  readonly #slowShare: number;
  #problem: string | null = null;

  constructor(seed: number, planted: Planted, totals: Totals) {
    this.#seed = seed;
    this.#random = new Random(seed);
    this.#planted = planted;
    this.#totals = totals;
    this.#lossShare = this.#random.pick([0, 0, 0.02, 0.2]);
    this.#slowShare = this.#random.pick([0, 0.05, 0.3]);
  }

  async play(): Promise<string | null> {
    const random = this.#random;
    const partitionCount = 1 + random.below(4);
    for (let i = 0; i < partitionCount; i++) this.#logs.grow();
    for (const zone of random.chance(0.75) ? ['east', 'west'] : ['east']) {
      const coordinator = new Coordinator(zone);
      this.#coordinators.push(coordinator);
      const count = 2 + random.below(2);
      for (let i = 0; i < count; i++) {
        const aheadUs = CLOCKS_AHEAD_US[this.#members.length % CLOCKS_AHEAD_US.length];
        const member = new SimulatedMember(`${zone}-${i}`, zone, this.#time, this.#logs, aheadUs);
        this.#members.push(member);
        this.#start(member);
      }
    }
    await this.#time.runUntil(1_500 * MS);
    const steps = 10 + random.below(25);
    for (let step = 0; step < steps && this.#problem === null; step++) {
      this.#step();
      await this.#time.runUntil(this.#time.nowUs + random.below(1_500) * MS);
    }
    for (const { life } of this.#members) this.#count('spared', life?.cluster.sparedCount ?? 0);
    return this.#problem;
  }

  #count(what: string, count = 1): void {
    this.#totals[what] = (this.#totals[what] ?? 0) + count;
  }

  #step(): void {
    const random = this.#random;
    for (let left = random.below(5); left > 0; left--) this.#append();
    for (let left = 1 + random.below(4); left > 0; left--) this.#ask();
    const member = random.pick(this.#members);
    switch (random.below(9)) {
      case 0:
        if (member.life === null) return;
        this.#count('killed');
        this.#end(member);
        if (random.chance(0.8)) this.#time.after(random.below(4_000) * MS, () => this.#start(member));
        return;
      case 1:
        if (member.life !== null) this.#leave(member);
        return;
      case 2:
        this.#start(member);
        return;
      case 3:
        this.#freeze(member);
        return;
      case 4: {
        const other = random.pick(this.#members);
        const pair = `${member.name} ${other.name}`;
        this.#count('cuts');
        this.#cut.add(pair);
        this.#time.after(random.below(5_000) * MS, () => this.#cut.delete(pair));
        return;
      }
      case 5:
        if (this.#logs.appendedUs.length < 6 && random.chance(0.3)) {
          this.#count('partitions added');
          this.#logs.grow();
          for (const coordinator of this.#coordinators) coordinator.rebalance(this.#logs.appendedUs.length);
        }
        return;
      case 6:
        if (member.life === null || member.isFrozen || member.isWithoutBrokers) return;
        this.#count('without brokers');
        member.life.loseBrokers();
        this.#time.after(random.below(15_000) * MS, () => {
          member.isWithoutBrokers = false;
        });
        return;
      default:
        return;
    }
  }

  #append(): void {
    const total = this.#logs.appendedUs.reduce((sum, { length }) => sum + length, 0);
    // An answer has at most a hundred rows, by which it shows what it was made of.
    if (total < 95) this.#logs.append(this.#random.below(this.#logs.appendedUs.length), this.#time.nowUs);
  }

  #coordinatorOf(member: SimulatedMember): Coordinator {
    return this.#coordinators.find(({ zone }) => zone === member.zone)!;
  }

  #start(member: SimulatedMember): void {
    if (member.life !== null) return;
    this.#count('started');
    const life = new Life(member, (of, url) => this.#link(of, url), this.#planted);
    member.life = life;
    const coordinator = this.#coordinatorOf(member);
    this.#planted.member?.(member);
    member.after(life, this.#random.below(300) * MS, () => {
      coordinator.members.set(member, []);
      coordinator.rebalance(this.#logs.appendedUs.length);
      this.#turn(life);
    });
    const poll = () => {
      life.cluster.poll();
      member.after(life, 1_000 * MS, poll);
    };
    poll();
  }

  /** Now and then: what the coordinator says, what the logs have. */
  #turn(life: Life): void {
    const { member } = life;
    const coordinator = this.#coordinatorOf(member);
    const random = this.#random;
    if (!member.isWithoutBrokers) {
      const assigned = coordinator.members.get(member) ?? life.assigned;
      const isOther = assigned.join() !== life.assigned.join();
      life.isRebalancing = isOther && !life.isRebalancing && random.chance(0.5);
      if (life.isRebalancing) {
        life.note(this.#planted, member.monotonicUs());
        life.readOn(random, []);
        this.#ask(member);
        member.after(life, TURN_US, () => this.#turn(life));
        return;
      }
      life.assigned = assigned;
      // What was answered meanwhile stands.
      if (isOther) member.after(life, random.below(50) * MS, () => this.#ask(member));
    }
    this.#count('copies', life.readOn(random, this.#members));
    this.#count('let go', life.letGo(random));
    if (random.chance(0.7) && !member.isWithoutBrokers) {
      life.commit();
      const beside = coordinator.beside.get(member) ?? [];
      for (const partition of life.assigned)
        if (life.nextOffset(partition) > 0 && !beside.includes(partition))
          coordinator.committedBy.set(`edge/${partition}`, member.name);
    }
    // The table of members is some seconds old.
    if (random.chance(0.3) && !member.isWithoutBrokers)
      life.members = this.#coordinators.flatMap((one) => one.describe());
    life.note(this.#planted, member.monotonicUs());
    member.after(life, TURN_US, () => this.#turn(life));
  }

  #end(member: SimulatedMember): void {
    this.#count('spared', member.life?.cluster.sparedCount);
    member.life?.cluster.close();
    member.life = null;
    member.isFrozen = false;
    member.frozen.length = 0;
    const coordinator = this.#coordinatorOf(member);
    this.#time.after(SESSION_US, () => {
      if (member.life === null) this.#depart(coordinator, member);
    });
  }

  #leave(member: SimulatedMember): void {
    this.#count('left');
    member.life!.commit();
    this.#end(member);
    this.#depart(this.#coordinatorOf(member), member);
  }

  #depart(coordinator: Coordinator, member: SimulatedMember): void {
    if (!coordinator.members.delete(member)) return;
    coordinator.rebalance(this.#logs.appendedUs.length);
  }

  /** Stops it for a while; sometimes its clock stands still too. The group notices, and gives its partitions away. */
  #freeze(member: SimulatedMember): void {
    const { life } = member;
    if (life === null || member.isFrozen) return;
    this.#count('frozen');
    member.isFrozen = true;
    const frozenUs = this.#random.below(8_000) * MS;
    const isClockFrozen = this.#random.chance(0.3);
    const coordinator = this.#coordinatorOf(member);
    if (frozenUs > SESSION_US)
      this.#time.after(SESSION_US, () => {
        if (member.isFrozen && member.life === life) this.#depart(coordinator, member);
      });
    this.#time.after(frozenUs, () => {
      if (member.life !== life) return;
      member.isFrozen = false;
      if (isClockFrozen) member.clockBehindUs += frozenUs;
      for (const task of member.frozen.splice(0)) task();
      // It learns only now that it was thrown out.
      member.after(life, this.#random.below(600) * MS, () => {
        coordinator.members.set(member, coordinator.members.get(member) ?? []);
        coordinator.rebalance(this.#logs.appendedUs.length);
      });
    });
  }

  #link(from: Life, url: string): PeerLink {
    const post = (how: (to: Life) => Promise<Uint8Array>, limitMs: number): Promise<Uint8Array> =>
      new Promise((resolve, reject) => {
        const { member } = from;
        const target = this.#members.find((one) => one.url === url)!;
        const cancel = member.after(from, limitMs * MS, () => reject(new Error('did not answer in time')));
        const fail = (why: string) =>
          member.after(from, this.#random.below(5) * MS, () => {
            cancel();
            reject(new Error(why));
          });
        const toUs = this.#delayUs(member.name, target.name);
        if (target.life === null) return void fail('connection refused');
        if (toUs === null) return;
        const { life } = target;
        this.#time.after(toUs, () => {
          if (target.life !== life) return void fail('connection reset');
          target.run(life, () => {
            how(life).then(
              (bytes) => {
                const backUs = this.#delayUs(target.name, member.name);
                if (backUs === null) return;
                // The copy that was sent does not change any more.
                const sent = bytes.slice();
                this.#time.after(backUs, () =>
                  member.run(from, () => {
                    cancel();
                    resolve(sent);
                  }),
                );
              },
              (error: unknown) => fail(String(error)),
            );
          });
        });
      });
    return {
      ...NO_COPIES,
      ask: async (question, limitMs, _isLong, room) => {
        const sent = await post(async (to) => to.cluster.answer(question), limitMs);
        // In memory that is used again, as larger ones over a network.
        const bytes = room.take(Math.max(sent.length, SMALL_BODY_BYTES)).subarray(0, sent.length);
        bytes.set(sent);
        return bytes;
      },
      holdings: (known, limitMs) => post((to) => Promise.resolve(to.cluster.holdings(known)), limitMs),
      close: () => undefined,
    };
  }

  #delayUs(from: string, to: string): number | null {
    const random = this.#random;
    if (this.#cut.has(`${from} ${to}`) || random.chance(this.#lossShare)) return null;
    return random.chance(this.#slowShare) ? random.below(700) * MS : 200 + random.below(2_000);
  }

  #ask(member = this.#random.pick(this.#members)): void {
    const random = this.#random;
    const { life } = member;
    if (life === null || member.isFrozen) return;
    this.#count('asked');
    const askedUs = this.#time.nowUs;
    // Questions of one asker overlap: what one has answered from counts for those that begin later.
    const floors = new Map(life.answeredFrom);
    const isOfCounts = random.chance(0.25);
    const project = random.pick(['a', 'b'] as const);
    const of = `project=${project}&project_tier=ENTERPRISE`;
    const question = isOfCounts ? `logs.event-counts?${of}&interval=daily` : `logs.all?${of}`;
    life.ask(question).then(
      ({ status, headers, body }) => {
        const text = Buffer.from(body as Uint8Array).toString();
        const stale = headers.find(([name]) => name === 'Logring-Stale-Seconds')?.[1];
        this.#count(status === 200 ? (stale === undefined ? 'fresh' : 'old') : 'refused');
        if (member.life !== life) return;
        const problem =
          status === 200
            ? this.#problemOf(text, {
                life,
                floors,
                askedUs,
                project,
                isOfCounts,
                staleSeconds: Number(stale ?? 0),
              })
            : status === 503
              ? null
              : `status ${status}: ${text}`;
        if (problem !== null) this.#fail(`${member.name}, asked at ${askedUs}: ${problem}`);
      },
      (error: unknown) => this.#fail(String((error as Error).stack)),
    );
  }

  #fail(problem: string): void {
    this.#problem ??= `seed ${this.#seed}, at ${this.#time.nowUs} µs: ${problem}`;
  }

  /** Each partition is counted up to one offset: not before what was answered from, nor from longer ago than is said. */
  #problemOf(
    text: string,
    asked: {
      readonly life: Life;
      readonly floors: ReadonlyMap<number, number>;
      readonly askedUs: number;
      readonly project: 'a' | 'b';
      readonly isOfCounts: boolean;
      readonly staleSeconds: number;
    },
  ): string | null {
    const { life, floors, askedUs, project, staleSeconds } = asked;
    const result = rowsOf(text);
    if (result === null) return `this is no answer: ${text}`;
    // A clock that stood still tells no age: then only what was answered from before bounds it.
    const behindUs = Math.max(...this.#members.map((member) => member.clockBehindUs));
    const ageUs = (staleSeconds === 0 ? FRESH_MS * MS : staleSeconds * 1_000 * MS) + behindUs;
    const leastOf = (partition: number) =>
      this.#logs.endAt(partition, Math.max(0, askedUs - ageUs - AGE_SLACK_US));
    const partitions = this.#logs.appendedUs.map((_, partition) => partition);
    if (asked.isOfCounts) {
      const count = result.reduce((sum, row) => sum + Number(row.ok_count), 0);
      const countOf = (endOf: (partition: number) => number) =>
        partitions.reduce((sum, p) => sum + offsetsOf(project, p, endOf(p)).length, 0);
      const least = countOf((p) => Math.max(leastOf(p), floors.get(p) ?? 0));
      const most = countOf((p) => this.#logs.end(p));
      return count < least || count > most ? `${count} were counted, there are ${least} to ${most}` : null;
    }
    const offsets = partitions.map(() => new Set<number>());
    for (const { id } of result) {
      const [partition, offset] = String(id).split('-').map(Number);
      if (offsets[partition] === undefined) return `nobody sent ${id}`;
      if (offsets[partition].has(offset)) return `record ${id} is there twice`;
      offsets[partition].add(offset);
    }
    for (const [partition, some] of offsets.entries()) {
      const found = [...some].sort((one, other) => one - other);
      const all = offsetsOf(project, partition, this.#logs.end(partition));
      const count = found.length;
      if (found.join() !== all.slice(0, count).join())
        return `partition ${partition} has ${found}, which is not how ${all} begins`;
      const lacks = (end: number) => offsetsOf(project, partition, end).length > count;
      const floor = floors.get(partition) ?? 0;
      if (lacks(floor)) return `partition ${partition} goes back to ${found}, answers had come from ${floor}`;
      if (lacks(leastOf(partition)))
        return `partition ${partition} has ${found}, ${leastOf(partition)} records were there ${ageUs} µs ago`;
      const reached = count === 0 ? 0 : found[count - 1] + 1;
      life.answeredFrom.set(partition, Math.max(reached, life.answeredFrom.get(partition) ?? 0));
    }
    return null;
  }
}

/** The offsets of a partition's records of a project, before an end. */
function offsetsOf(project: 'a' | 'b', partition: number, end: number): number[] {
  return Array.from({ length: end }, (_, offset) => offset).filter(
    (offset) => projectOf(partition, offset) === project,
  );
}

/** null where it is no body of an answer. */
function rowsOf(text: string): Record<string, unknown>[] | null {
  try {
    return (JSON.parse(text) as { result: Record<string, unknown>[] }).result;
  } catch {
    return null;
  }
}
