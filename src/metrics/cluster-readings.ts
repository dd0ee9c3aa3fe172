/** How this process stands with the others that it answers together with. */

import type { Cluster } from '../cluster/cluster.js';
import type { CopyGiver } from '../cluster/copy-giver.js';
import type { CopyTaker } from '../cluster/copy-taker.js';
import type { Peer } from '../cluster/peer.js';
import type { Readings } from './readings.js';

/** `cluster`: null where this process answers alone; then there are no series. */
export function readCluster(readings: Readings, cluster: Cluster | null): void {
  const perZone = (name: string, help: string, isCounted: (peer: Peer) => boolean) =>
    readings.read(name, help, ['zone'], (add) => {
      const counts = new Map<string, number>();
      for (const peer of cluster?.peers.all() ?? [])
        if (peer.isInGroup) counts.set(peer.zone, (counts.get(peer.zone) ?? 0) + (isCounted(peer) ? 1 : 0));
      for (const [zone, count] of counts) add({ zone }, count);
    });
  perZone('logring_cluster_peers', 'Other members, by zone', () => true);
  perZone(
    'logring_cluster_silent_peers',
    'Other members that did not answer three queries in a row, by zone',
    ({ isSilent }) => isSilent,
  );
  readings.read(
    'logring_cluster_copies',
    'Whole copies, about as new as the newest, of the partition of a topic that has fewest, of all members that answer',
    ['topic'],
    (add) => {
      for (const { topic, fewestCopies } of cluster?.copies() ?? []) add({ topic }, fewestCopies);
    },
  );
  readings.read(
    'logring_peer_requests_total',
    'Questions to other members by outcome: counted, passed on to another member, unavailable, failed, late',
    ['outcome'],
    (add) => {
      for (const [outcome, { count }] of Object.entries(cluster?.asked ?? {})) add({ outcome }, count);
    },
  );
  readings.read(
    'logring_peer_request_seconds_total',
    'Time that queries to other members took, by outcome',
    ['outcome'],
    (add) => {
      for (const [outcome, { seconds }] of Object.entries(cluster?.asked ?? {})) add({ outcome }, seconds);
    },
  );
  readings.one(
    'logring_partitions_spared_total',
    'Partitions of answers that no member was asked for, as it was known that they have nothing of the project',
    () => cluster?.sparedCount ?? null,
  );
  readings.one(
    'logring_peer_hedges_total',
    'Questions that a second member was asked before the first had answered',
    () => cluster?.hedges.takenCount ?? null,
  );
  readings.read(
    'logring_shared_answers_total',
    'Answers that other members had a part in, by outcome: fresh, old, refused',
    ['outcome'],
    (add) => {
      if (cluster === null) return;
      const { answered, old, refused } = cluster.scatter.counts;
      add({ outcome: 'fresh' }, answered);
      add({ outcome: 'old' }, old);
      add({ outcome: 'refused' }, refused);
    },
  );
}

/** `handOver`: null where this process answers alone. */
export function readHandOver(
  readings: Readings,
  handOver: { readonly given: CopyGiver; readonly taken: CopyTaker } | null,
): void {
  readings.read(
    'logring_handover_bytes_total',
    'Bytes of partitions that were copied to other members and from them',
    ['direction'],
    (add) => {
      if (handOver === null) return;
      add({ direction: 'given' }, handOver.given.byteCount);
      add({ direction: 'taken' }, handOver.taken.byteCount);
    },
  );
  readings.read(
    'logring_handovers_total',
    'Partitions copied from other members, and tries that failed',
    ['outcome'],
    (add) => {
      if (handOver === null) return;
      add({ outcome: 'adopted' }, handOver.taken.adoptedCount);
      add({ outcome: 'failed' }, handOver.taken.failedCount);
    },
  );
  readings.one(
    'logring_handovers_waiting',
    'Partitions that are not read yet because they are being copied from another member',
    () => handOver?.taken.waitingCount ?? null,
  );
}
