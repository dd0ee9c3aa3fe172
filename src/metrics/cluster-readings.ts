/** How this process stands with the others that it answers together with. */

import type { Cluster } from '../cluster/cluster.js';
import type { Readings } from './readings.js';

export function readCluster(readings: Readings, cluster: Cluster): void {
  readings.read(
    'logring_cluster_peers',
    'Other members of all zones, by whether they answer',
    ['zone', 'answers'],
    (add) => {
      const counts = new Map<string, [number, number]>();
      for (const { zone, isSilent } of cluster.peers.all()) {
        const count = counts.get(zone) ?? [0, 0];
        count[isSilent ? 1 : 0]++;
        counts.set(zone, count);
      }
      for (const [zone, [answering, silent]] of counts) {
        add({ zone, answers: 'yes' }, answering);
        add({ zone, answers: 'no' }, silent);
      }
    },
  );
  readings.read(
    'logring_cluster_copies',
    'Whole copies of the partition of a topic that has fewest, of all members that answer',
    ['topic'],
    (add) => {
      for (const { topic, fewestCopies } of cluster.copies()) add({ topic }, fewestCopies);
    },
  );
  readings.read(
    'logring_peer_requests_total',
    'Questions to other members by outcome: counted, passed on to another member, unavailable, failed, late',
    ['outcome'],
    (add) => {
      for (const [outcome, { count }] of Object.entries(cluster.asked)) add({ outcome }, count);
    },
  );
  readings.read(
    'logring_peer_request_seconds_total',
    'Time that questions to other members took, by outcome',
    ['outcome'],
    (add) => {
      for (const [outcome, { seconds }] of Object.entries(cluster.asked)) add({ outcome }, seconds);
    },
  );
  readings.one(
    'logring_peer_hedges_total',
    'Questions that a second member was asked before the first had answered',
    () => cluster.hedges.takenCount,
  );
  readings.read(
    'logring_shared_answers_total',
    'Answers that other members had a part in, by outcome: fresh, old, refused',
    ['outcome'],
    (add) => {
      const { answered, old, refused } = cluster.scatter.counts;
      add({ outcome: 'fresh' }, answered);
      add({ outcome: 'old' }, old);
      add({ outcome: 'refused' }, refused);
    },
  );
}
