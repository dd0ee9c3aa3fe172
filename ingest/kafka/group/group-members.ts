/**
 * Who the members of all zones' groups are, and which partitions each was assigned, as the groups'
 * coordinators describe them.
 */

import { AssignerProtocol } from 'kafkajs';
import type { ClusterMember, PartitionKey } from '../../log-source.js';
import type { ClusterView } from '../cluster/cluster-view.js';
import { decodeMemberData } from './member-data.js';

/** A zone, and the group that reads it. */
export interface ZoneGroup {
  readonly zone: string;
  readonly groupId: string;
}

/** A group that is being assigned has members without partitions. Rejects when a coordinator can't be asked. */
export async function groupMembers(
  view: ClusterView,
  { zone, groupId }: ZoneGroup,
): Promise<ClusterMember[]> {
  const described = await view.describeGroup(groupId);
  return described.flatMap(({ memberMetadata, memberAssignment }) => {
    const metadata =
      memberMetadata.length === 0 ? null : AssignerProtocol.MemberMetadata.decode(memberMetadata);
    const data = metadata === null ? null : decodeMemberData(metadata.userData);
    if (data === null) return [];
    const { storeId, url, wireVersion } = data;
    return [{ zone, storeId, url, wireVersion, assigned: assignedOf(memberAssignment) }];
  });
}

function assignedOf(memberAssignment: Buffer): PartitionKey[] {
  if (memberAssignment.length === 0) return [];
  const assignment = AssignerProtocol.MemberAssignment.decode(memberAssignment)?.assignment ?? {};
  return Object.entries(assignment).flatMap(([topic, partitions]) =>
    partitions.map((partition) => ({ topic, partition })),
  );
}
