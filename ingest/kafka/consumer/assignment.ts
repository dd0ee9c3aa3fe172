/** The partitions that the group gave to one consumer, and those that it left to other members. */

import type { PartitionKey } from '../../log-source.js';
import { partitionId } from '../../partition-id.js';
import type { ClusterState } from '../cluster/cluster-view.js';
import { AssignedPartition } from './assigned-partition.js';

export class Assignment {
  readonly #topics: readonly string[];
  readonly #partitions = new Map<string, AssignedPartition>();
  /** When the assignment came that holds now; null while the group shares out its partitions. */
  #assignedAtMs: number | null = null;
  #others: readonly PartitionKey[] | null = null;
  #last: readonly AssignedPartition[] = [];
  /** By partitionId; null: not known since the last assignment. */
  #beside: ReadonlySet<string> | null = null;

  constructor(topics: readonly string[]) {
    this.#topics = topics;
  }

  /** By partitionId. */
  get partitions(): ReadonlyMap<string, AssignedPartition> {
    return this.#partitions;
  }

  /**
   * What the assignment left to other members, by the first reading after it; null before the first. It
   * stands until the next.
   */
  get others(): readonly PartitionKey[] | null {
    return this.#others;
  }

  /** What was assigned last, also once it is revoked. */
  get last(): readonly AssignedPartition[] {
    return this.#last;
  }

  /** See ClusterMember.beside; null while it is not known. */
  get beside(): ReadonlySet<string> | null {
    return this.#beside;
  }

  /** As the group says it of the assignment that was the last one when it was asked. */
  findBeside(asked: readonly AssignedPartition[], beside: readonly PartitionKey[]): void {
    if (asked === this.#last) this.#beside = new Set(beside.map(partitionId));
  }

  /**
   * Whether something is whole here that another member has too: then the group is to leave it to this one. It stays so
   * until the group has assigned its partitions again, also where a heartbeat that was to bring that about was in vain.
   */
  get isMoved(): boolean {
    return this.#last.some(({ id, wholeAsOfMs }) => wholeAsOfMs !== null && this.#beside?.has(id));
  }

  /** In place of what was assigned before; `mayKeep`: what was read then may be read on. */
  assign(
    partitionsByTopic: Readonly<Record<string, readonly number[]>>,
    nowMs: number,
    mayKeep: boolean,
  ): AssignedPartition[] {
    // Without having been revoked, partitions are assigned again because a log may have changed: those are checked.
    const before = new Map(
      this.#last.filter(({ wasReading }) => mayKeep && wasReading).map((one) => [one.id, one]),
    );
    this.revoke();
    this.#assignedAtMs = nowMs;
    for (const [topic, partitions] of Object.entries(partitionsByTopic)) {
      for (const partition of partitions) {
        const assigned = new AssignedPartition({ topic, partition });
        const last = before.get(assigned.id);
        if (last !== undefined) assigned.keep(last);
        this.#partitions.set(assigned.id, assigned);
      }
    }
    this.#last = [...this.#partitions.values()];
    this.#beside = null;
    return [...this.#last];
  }

  revoke(): void {
    this.#assignedAtMs = null;
    for (const assigned of this.#partitions.values()) assigned.revoke();
    this.#partitions.clear();
  }

  /** Only a reading that began after the assignment lists all that it shared out. */
  findOthers(state: ClusterState): void {
    if (this.#assignedAtMs === null || state.begunMs < this.#assignedAtMs) return;
    this.#assignedAtMs = Number.POSITIVE_INFINITY;
    this.#others = [...state.logs.values()]
      .filter((log) => this.#topics.includes(log.topic) && !this.#partitions.has(partitionId(log)))
      .map(({ topic, partition }) => ({ topic, partition }));
  }
}
