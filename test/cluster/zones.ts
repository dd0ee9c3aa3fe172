/** Zones of members on a broker of their own, for one topic. */

import { type Broker, startBroker } from '../kafka/broker/broker.js';
import { Rig, uniqueName } from '../kafka/rig.js';
import { type MemberPlace, Members } from './members.js';

export interface Zones {
  readonly topic: string;
  readonly rig: Rig;
  readonly members: Members;
  readonly places: readonly MemberPlace[];
  close(): Promise<void>;
}

export interface ZonesPlan {
  /** Without names: one that needs none. */
  readonly zones: readonly string[];
  readonly membersAZone: number;
  readonly partitionCount: number;
  readonly settings: Record<string, string>;
}

/** None of them is started yet. */
export async function openZones({
  zones,
  membersAZone,
  partitionCount,
  settings,
}: ZonesPlan): Promise<Zones> {
  const topic = uniqueName('edge');
  const broker: Broker = await startBroker({
    version: '4.1',
    properties: { 'group.initial.rebalance.delay.ms': '3000' },
  });
  const rig = new Rig(broker.brokers, { idempotent: true });
  await rig.connect();
  await rig.createTopic(topic, partitionCount);
  const members = new Members({
    LOGRING_KAFKA_BROKERS: broker.brokers.join(),
    LOGRING_KAFKA_GROUP_ID: topic,
    LOGRING_EDGE_TOPIC: topic,
    LOGRING_RELAY_TOPIC: '',
    LOGRING_DEAD_LETTER_TOPIC: `${topic}-dead`,
    ...(zones.length > 1 ? { LOGRING_ZONES: zones.join() } : {}),
    ...settings,
  });
  return {
    topic,
    rig,
    members,
    places: zones.flatMap((zone) =>
      Array.from({ length: membersAZone }, (_, i) => ({
        name: `${zone}-${i}`,
        zone: zones.length > 1 ? zone : '',
      })),
    ),
    close: async () => {
      await members.stop();
      await rig.close();
      await broker.stop();
    },
  };
}
