/**
 * The log source that reads Kafka. The sink's offsets are the truth: every partition is compared with its log
 * and sought before anything of it is read; what does not connect is reported, never jumped over. This class
 * watches the cluster and keeps one consumer going; see consumer-session.ts for the reading itself.
 */

import { assert } from '../../engine/assert.js';
import type { Holds } from '../holds.js';
import { Latch } from '../latch.js';
import type {
  ClusterMember,
  LogEnds,
  LogSink,
  LogSource,
  LogSourceStatus,
  PartitionKey,
  Position,
} from '../log-source.js';
import { partitionId } from '../partition-id.js';
import { type KafkaClock, wait, within } from './clock.js';
import { createClient, type KafkaConnection } from './cluster/client.js';
import type { KafkaLogger } from './cluster/client-logger.js';
import { type ClusterState, ClusterView } from './cluster/cluster-view.js';
import { ClusterWatch } from './cluster/cluster-watch.js';
import { refusalOf } from './cluster/refusal.js';
import { registerCodecs } from './codecs/codecs.js';
import { ApplyLanes } from './consumer/apply-lanes.js';
import type { AssignedPartition } from './consumer/assigned-partition.js';
import { ConsumerHealth } from './consumer/consumer-health.js';
import { ConsumerSession, type KafkaSourceCounters } from './consumer/consumer-session.js';
import type { AssignerPorts } from './group/cluster-assigner.js';
import { groupMembers, type ZoneGroup } from './group/group-members.js';
import type { HeldPosition } from './group/member-data.js';
import {
  DISMISS_TIMEOUT_MS,
  KAFKA_TIMING,
  type KafkaTiming,
  MEMBERS_POLL_MS,
  STALL_RESTARTS,
} from './limits.js';
import { OffsetMirror } from './offset-mirror.js';

/** How a process takes part where several answer together. */
export interface ClusterMembership extends AssignerPorts {
  /** All zones, its own included. */
  readonly zones: readonly ZoneGroup[];
}

export interface KafkaLogSourceOptions {
  readonly connection: KafkaConnection;
  readonly groupId: string;
  /** Must not be empty. */
  readonly topics: readonly string[];
  /** null: this process answers alone. */
  readonly cluster: ClusterMembership | null;
  /** Shared with the sink. */
  readonly holds: Holds;
  /** Of a member that is gone without having left the group, as after a kill; null when none is known. */
  readonly lastMemberId: string | null;
  /** Told the id that `lastMemberId` is to be after a kill. */
  onJoined(memberId: string): void;
  readonly logger: KafkaLogger;
  readonly clock: KafkaClock;
  /** Called once, when the sink failed or no consumer makes progress: the process must end. */
  onFatal(error: Error): void;
  readonly timing?: KafkaTiming;
}

export class KafkaLogSource implements LogSource {
  readonly counters: KafkaSourceCounters = {
    consumersStarted: 0,
    offsetGaps: 0,
    droppedBatches: 0,
    fetches: 0,
  };
  readonly #options: KafkaLogSourceOptions;
  readonly #timing: KafkaTiming;
  readonly #view: ClusterView;
  readonly #lanes = new ApplyLanes();
  readonly #health: ConsumerHealth;
  readonly #cluster: ClusterWatch;
  readonly #mirror: OffsetMirror;
  #lastMemberId: string | null;
  #sink: LogSink | null = null;
  #session: ConsumerSession | null = null;
  #others: readonly PartitionKey[] = [];
  #members: readonly ClusterMember[] | null = null;
  readonly #unheardZones: Set<string>;
  #membersReadMs = Number.NEGATIVE_INFINITY;
  #isReadingMembers = false;
  #supervision: Promise<void> = Promise.resolve();
  readonly #stopping = new Latch();
  #isHeld = false;
  /** Cuts the pause between two looks short. */
  #woken = new Latch();
  #fatal: Error | null = null;

  constructor(options: KafkaLogSourceOptions) {
    assert(options.topics.length > 0, 'a Kafka source needs topics');
    this.#options = options;
    this.#timing = options.timing ?? KAFKA_TIMING;
    this.#lastMemberId = options.lastMemberId;
    this.#unheardZones = new Set(options.cluster?.zones.map(({ zone }) => zone));
    const { topics, clock, logger } = options;
    const refusalOf = (error: unknown) => this.#refusal(error);
    this.#view = new ClusterView(this.#createClient(), topics, clock);
    this.#cluster = new ClusterWatch(this.#view, logger, refusalOf, this.#stopping);
    this.#health = new ConsumerHealth(this.#timing, clock, logger, refusalOf);
    this.#mirror = new OffsetMirror(clock, logger, () => {
      const isUnsure = options.cluster !== null && this.#session?.assignment.beside === null;
      return this.#stopping.isOpen || isUnsure ? null : this.#session;
    });
  }

  start(sink: LogSink): Promise<void> {
    assert(this.#sink === null, 'a Kafka source starts once');
    this.#sink = sink;
    registerCodecs();
    this.#supervision = this.#supervise().catch((error: unknown) => this.#fail(error));
    return Promise.resolve();
  }

  status(): LogSourceStatus {
    const assignedPartitions = this.#session?.partitions ?? new Map<string, AssignedPartition>();
    return {
      missingTopics: this.#view.latest?.missingTopics ?? [],
      topics: this.#cluster.topics,
      unassigned: (this.#session?.assignment.others ?? this.#others).filter(
        (key) => !assignedPartitions.has(partitionId(key)),
      ),
      assigned: [...assignedPartitions.values()].map(({ key, endOffset, wholeAsOfMs }) => ({
        ...key,
        endOffset,
        wholeAsOfMs,
      })),
      held: this.#options.holds.open.filter((held) => assignedPartitions.has(partitionId(held))),
      problem: this.#fatal?.message ?? this.#cluster.problem ?? this.#readingProblem,
      isUnreachable: this.#cluster.isUnreachable,
      members: this.#members,
      unheardZones: [...this.#unheardZones],
      logEnds: this.#options.cluster === null ? null : logEndsOf(this.#view.latest),
    };
  }

  /** Of a consumer that goes on, or of some partitions. */
  get #readingProblem(): string | null {
    const problems = [this.#health.problem, this.#cluster.leaderProblem].filter((one) => one !== null);
    return problems.length === 0 ? null : problems.join('; ');
  }

  /** What the group assigned to this process last, those first that another member has too. */
  assignedLast(): readonly Omit<HeldPosition, 'nextOffset'>[] {
    const { last, beside } = this.#session?.assignment ?? { last: [], beside: null };
    return [...last]
      .sort((a, b) => Number(beside?.has(b.id) ?? false) - Number(beside?.has(a.id) ?? false))
      .map(({ key, wholeAsOfMs }) => ({ ...key, isWhole: wholeAsOfMs !== null }));
  }

  /** Resolves once the brokers have the positions or the try has failed, which is only logged. */
  committed(positions: readonly Position[]): Promise<void> {
    return this.#mirror.commit(positions);
  }

  /** Whether the sink keeps batches waiting for long: records that wait meanwhile are no stall. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
  }

  /** Bytes of batches that are unpacked and not all applied. */
  get unpackedBytes(): number {
    return this.#session?.unpackedBytes ?? 0;
  }

  async stop(): Promise<void> {
    this.#stopping.open();
    this.#woken.open();
    await this.#session?.close(this.#timing.stopTimeoutMs);
    this.#view.close();
    await this.#supervision;
  }

  #createClient() {
    return createClient(this.#options.connection, this.#options.logger, this.#options.clock);
  }

  #refusal(error: unknown): string | null {
    const { connection, topics, groupId } = this.#options;
    return refusalOf(error, { connection, topics, groupId, operations: ['Read'] });
  }

  /** One path to the end of the process. */
  #fail(error: unknown): void {
    if (this.#fatal !== null) return;
    this.#fatal = error instanceof Error ? error : new Error(String(error));
    this.#options.onFatal(this.#fatal);
  }

  /** Looks at the cluster again and again, until stopped. */
  async #supervise(): Promise<void> {
    const { clock } = this.#options;
    while (!this.#stopping.isOpen && this.#fatal === null) {
      this.#woken = new Latch();
      await this.#superviseOnce();
      const { pollIntervalMs } = this.#timing;
      const untilRestartMs = this.#session === null ? this.#health.untilRestartMs : pollIntervalMs;
      const restartIsNear = untilRestartMs > 0 && untilRestartMs < pollIntervalMs;
      await wait(clock, restartIsNear ? untilRestartMs : pollIntervalMs, this.#woken);
    }
  }

  async #superviseOnce(): Promise<void> {
    const positions = new Map<string, number>();
    for (const assigned of this.#session?.partitions.values() ?? [])
      positions.set(assigned.id, assigned.position);
    const state = await this.#cluster.read();
    if (this.#stopping.isOpen) return;
    if (state === null) {
      this.#health.pause();
      return;
    }
    this.#readMembers();
    const missing = new Set(state.missingTopics);
    const topics = this.#options.topics.filter((topic) => !missing.has(topic));
    const session = this.#session;
    if (session !== null) {
      const hasSameTopics = session.topics.join('\n') === topics.join('\n');
      if (!hasSameTopics)
        await this.#closeSession('kafka: the consumer is restarted for the topics that exist now', {
          topics,
        });
      else if (!session.observe(state, positions)) await this.#closeSession('kafka: a topic was made again');
    }
    if (topics.length > 0) await this.#watchProgress();
    if (this.#session !== null || topics.length === 0 || this.#stopping.isOpen || this.#fatal !== null)
      return;
    if (this.#health.untilRestartMs > 0) return;
    await this.#dismissLastMember();
    if (!this.#stopping.isOpen) this.#openSession(topics);
  }

  /**
   * Beside what else is looked at, as a coordinator that is away takes its time. Those of a zone whose coordinator can't
   * be asked are as they were.
   */
  #readMembers(): void {
    const { cluster, clock, logger } = this.#options;
    if (cluster === null || this.#isReadingMembers) return;
    if (clock.nowMs() - this.#membersReadMs < MEMBERS_POLL_MS) return;
    this.#membersReadMs = clock.nowMs();
    this.#isReadingMembers = true;
    const ofZone = async (zone: ZoneGroup): Promise<readonly ClusterMember[]> => {
      const assignment = this.#session?.assignment ?? null;
      const asked = assignment?.last ?? [];
      try {
        const found = await this.#stopping.orOpen(groupMembers(this.#view, zone));
        if (found !== null) {
          this.#unheardZones.delete(zone.zone);
          const own = found.find(({ storeId }) => storeId === cluster.identity.storeId);
          if (own !== undefined) assignment?.findBeside(asked, own.beside);
          return found;
        }
        this.#membersReadMs = Number.NEGATIVE_INFINITY;
      } catch (error) {
        logger.warn({ groupId: zone.groupId, error: String(error) }, 'kafka: the group cannot be described');
      }
      return this.#members?.filter((member) => member.zone === zone.zone) ?? [];
    };
    void Promise.all(cluster.zones.map(ofZone)).then((members) => {
      this.#members = members.flat();
      this.#isReadingMembers = false;
    });
  }

  /**
   * The group would wait for the session time-out of a member that is gone before it gives its partitions
   * away.
   */
  async #dismissLastMember(): Promise<void> {
    const memberId = this.#lastMemberId;
    if (memberId === null) return;
    this.#lastMemberId = null;
    const { clock, groupId, logger } = this.#options;
    const left = this.#stopping.orOpen(this.#view.leaveGroup(groupId, memberId));
    await within(clock, DISMISS_TIMEOUT_MS, left).then(
      (inTime) =>
        inTime &&
        logger.info({ groupId, memberId }, 'kafka: the member of the previous process has left the group'),
      () => undefined, // as a rule the group has forgotten it already; if not, it is waited for
    );
  }

  #openSession(topics: readonly string[]): void {
    assert(this.#sink !== null, 'a Kafka source opens no consumer before its start');
    const { groupId, holds, logger, clock } = this.#options;
    const session: ConsumerSession = new ConsumerSession({
      client: this.#createClient(),
      groupId,
      topics,
      assigner: this.#options.cluster,
      sink: this.#sink,
      view: this.#view,
      lanes: this.#lanes,
      holds,
      clock,
      logger,
      timing: this.#timing,
      counters: this.counters,
      onJoined: (memberId) => {
        this.#lastMemberId = memberId;
        this.#membersReadMs = Number.NEGATIVE_INFINITY;
        if (this.#options.cluster !== null) this.#woken.open();
        this.#options.onJoined(memberId);
      },
      onEnded: (error) => this.#sessionEnded(session, error),
      onFatal: (error) => this.#fail(error),
    });
    this.#session = session;
    this.#health.opened(this.counters.fetches);
    session.open();
  }

  async #closeSession(why: string, fields: object = {}): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    this.#options.logger.warn(fields, why);
    this.#forget(session);
    await session.close(this.#timing.stopTimeoutMs);
  }

  #sessionEnded(session: ConsumerSession, error: Error): void {
    if (this.#session !== session || this.#stopping.isOpen) return;
    this.#health.ended(error);
    this.#forget(session);
    void session.close(this.#timing.stopTimeoutMs).then(() => this.#woken.open());
  }

  /** What it knew of other members stands until its successor joins. */
  #forget(session: ConsumerSession): void {
    this.#others = session.assignment.others ?? this.#others;
    this.#session = null;
  }

  async #watchProgress(): Promise<void> {
    const stall = this.#health.observe(this.#session, this.counters.fetches, this.#isHeld);
    if (stall === null) return;
    if (stall.strikes > STALL_RESTARTS)
      this.#fail(
        new Error(`Kafka: no progress in ${stall.where} with ${STALL_RESTARTS} consumers restarted`),
      );
    else await this.#closeSession('kafka: the consumer is restarted');
  }
}

function logEndsOf(state: ClusterState | null): LogEnds | null {
  if (state === null) return null;
  const ends = [...state.logs.values()].flatMap(({ topic, partition, bounds }) =>
    bounds === null ? [] : [{ topic, partition, nextOffset: bounds.endOffset }],
  );
  return { askedMs: state.askedMs, ends };
}
