/**
 * Who the members of all zones' groups are, and which partitions each was assigned, as the groups'
 * coordinators describe them.
 */

import { AssignerProtocol } from 'kafkajs';
import type { ClusterMember } from '../../log-source.js';
import type { ClusterView } from '../cluster/cluster-view.js';
import { decodeBeside } from './beside.js';
import { decodedOrNull, memberDataOf } from './member-data.js';

/** A zone, and the group that reads it. */
export interface ZoneGroup {
  readonly zone: string;
  readonly groupId: string;
}

/** null while the group shares its partitions out: it says nothing of its members then. Rejects when its coordinator can't be asked. */
export async function groupMembers(
  view: ClusterView,
  { zone, groupId }: ZoneGroup,
): Promise<ClusterMember[] | null> {
  const described = await view.describeGroup(groupId);
  if (described.some(({ memberMetadata }) => memberMetadata.length === 0)) return null;
  return described.flatMap(({ memberMetadata, memberAssignment }) => {
    const data = memberDataOf(memberMetadata);
    if (data === null) return [];
    const { storeId, url, wireVersion } = data;
    return [{ zone, storeId, url, wireVersion, ...assignedOf(memberAssignment) }];
  });
}

function assignedOf(memberAssignment: Buffer): Pick<ClusterMember, 'assigned' | 'beside'> {
  const decoded = decodedOrNull(() => AssignerProtocol.MemberAssignment.decode(memberAssignment));
  if (decoded === null) return { assigned: [], beside: [] };
  const assigned = Object.entries(decoded.assignment).flatMap(([topic, partitions]) =>
    partitions.map((partition) => ({ topic, partition })),
  );
  return { assigned, beside: decodeBeside(decoded.userData) };
}
