/** assignPartitions as kafkajs asks for it: what a member says when it joins, and what the leader assigns. */

import { AssignerProtocol, type PartitionAssigner } from 'kafkajs';
import type { PartitionKey } from '../../log-source.js';
import { partitionId } from '../../partition-id.js';
import { coordinatorOf } from '../cluster/kafkajs-internals.js';
import type { Absences } from './absences.js';
import { assignPartitions, type CommittedBy } from './assign-partitions.js';
import { encodeBeside } from './beside.js';
import { type ClusterIdentity, encodeMemberData, type HeldPosition, memberDataOf } from './member-data.js';

const ASSIGNER_NAME = 'logring-1';
const VERSION = 1;
/** Of a partition of which the group has committed nothing. */
const NO_OFFSET = '-1';

export interface AssignerPorts {
  readonly identity: ClusterIdentity;
  /** What this process holds: see MemberData. */
  readonly held: () => readonly HeldPosition[];
  readonly absences: Absences;
}

/** Members of a group must have it all, or none of them. */
export function clusterAssigner({ identity, held, absences }: AssignerPorts): PartitionAssigner {
  return ({ cluster, groupId }) => ({
    name: ASSIGNER_NAME,
    version: VERSION,
    protocol: ({ topics }) => ({
      name: ASSIGNER_NAME,
      metadata: AssignerProtocol.MemberMetadata.encode({
        version: VERSION,
        topics,
        userData: encodeMemberData({ ...identity, held: held() }),
      }),
    }),
    assign: async ({ members, topics }) => {
      const partitions = topics.flatMap((topic) =>
        cluster.findTopicPartitionMetadata(topic).map(({ partitionId: partition }) => ({ topic, partition })),
      );
      const assigned = assignPartitions(
        partitions,
        members.map(({ memberId, memberMetadata }) => ({ memberId, data: memberDataOf(memberMetadata) })),
        await committedBy(cluster, groupId, partitions),
        (away) => absences.note(away),
      );
      return [...assigned].map(([memberId, { partitions: keys, beside }]) => ({
        memberId,
        memberAssignment: AssignerProtocol.MemberAssignment.encode({
          version: VERSION,
          assignment: byTopic(keys),
          userData: encodeBeside(beside),
        }),
      }));
    },
  });
}

/** Rejects where the coordinator can't say: then the group tries again, as without it a restart moves shards. */
async function committedBy(
  cluster: object,
  groupId: string,
  partitions: readonly PartitionKey[],
): Promise<CommittedBy> {
  const coordinator = await coordinatorOf(cluster, groupId);
  const topics = Object.entries(byTopic(partitions)).map(([topic, numbers]) => ({
    topic,
    partitions: numbers.map((partition) => ({ partition })),
  }));
  const { responses } = await coordinator.offsetFetch({ groupId, topics });
  const stores = new Map<string, string>();
  for (const { topic, partitions: committed } of responses)
    for (const { partition, offset, metadata } of committed)
      if (offset !== NO_OFFSET) stores.set(partitionId({ topic, partition }), metadata ?? '');
  return stores;
}

function byTopic(keys: readonly PartitionKey[]): Record<string, number[]> {
  const topics: Record<string, number[]> = {};
  for (const { topic, partition } of keys) {
    topics[topic] ??= [];
    topics[topic].push(partition);
  }
  return topics;
}
