/**
 * The other members of all zones, as Kafka's groups name them, each asked once a second what it holds. So there is a
 * table of who can answer for which partition; nothing of it is stored, and nobody decides by it but who is asked.
 */

import type { ClusterMember, PartitionKey } from '../../ingest/log-source.js';
import { partitionId } from '../../ingest/partition-id.js';
import { errorText } from '../store/disk/system-errors.js';
import { isSameLog } from './floors.js';
import { type Holding, readHoldings, writeKnown } from './holdings.js';
import { ABSENT_MS, HOLDINGS_TIMEOUT_MS, WIRE_VERSION } from './limits.js';
import { Peer, type PeerLink } from './peer.js';

export interface PeersPorts {
  readonly storeId: string;
  readonly zone: string;
  readonly linkTo: (url: string) => PeerLink;
  readonly monotonicUs: () => number;
  /** Copies below this age are fresh, milliseconds. */
  readonly freshMs: number;
  /** Told when a member has become silent, and why; null: it has answered again. */
  readonly onSilent?: ((url: string, why: string | null) => void) | undefined;
}

export class Peers {
  readonly #ports: PeersPorts;
  readonly #peers = new Map<string, Peer>();
  /** Those that are being asked what they hold. */
  readonly #polled = new Set<Peer>();
  /** Those of which `onSilent` was told. */
  readonly #silent = new WeakSet<Peer>();
  #problem: string | null = null;
  #generation = 0;
  #isKnown = false;
  /** Whether all zones' groups have named their members. */
  #isWhole = false;

  constructor(ports: PeersPorts) {
    this.#ports = ports;
  }

  all(): Iterable<Peer> {
    return this.#peers.values();
  }

  /** A sentence for the operator, or null. */
  get problem(): string | null {
    return this.#problem;
  }

  /** Whether this process has been among the members that were told. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  /** How often the members have changed. */
  get generation(): number {
    return this.#generation;
  }

  /** The members as they are from now on; `isWhole`: of all zones. */
  update(members: readonly ClusterMember[], isWhole = true): void {
    this.#isWhole = isWhole;
    const { storeId, linkTo } = this.#ports;
    const problems: string[] = [];
    const present = new Set<string>();
    const own = members.filter((member) => member.storeId === storeId);
    const ownUrls = new Set(own.map(({ url }) => url));
    const urls = new Set(ownUrls);
    const strangers = new Set<string>();
    for (const member of oncePerStore(members, (id) => this.#peers.get(id)?.url)) {
      if (member.storeId === storeId) continue;
      // Another was there before this process, or this one with another disk.
      if (ownUrls.has(member.url)) {
        problems.push(
          `another member has this one's address (${member.url}): LOGRING_CLUSTER_URL must differ, unless its group still lists who was there before`,
        );
        continue;
      }
      if (member.wireVersion !== WIRE_VERSION) {
        strangers.add(member.storeId);
        problems.push(`${member.url} speaks another version (${member.wireVersion}) and is not asked`);
        continue;
      }
      present.add(member.storeId);
      let peer = this.#peers.get(member.storeId);
      if (peer === undefined || peer.url !== member.url || peer.zone !== member.zone) {
        peer?.link.close();
        peer = new Peer(member, linkTo(member.url));
        this.#peers.set(member.storeId, peer);
        this.#generation++;
      }
      urls.add(member.url);
      peer.isInGroup = true;
      peer.assign(member.assigned);
    }
    if (own.length > 0) this.#isKnown = true;
    if (own.length > 1)
      problems.push(
        'another member has a copy of this store: restore copies with `logring backup`, which gives them an identity of their own',
      );
    const nowUs = this.#ports.monotonicUs();
    for (const [id, peer] of this.#peers) {
      if (present.has(id)) {
        peer.seenUs = nowUs;
        continue;
      }
      // One that is back answers from what it has stored before its group has taken it in again.
      peer.isInGroup = false;
      peer.assign([]);
      const isReplaced = urls.has(peer.url) || strangers.has(id);
      if (!isReplaced && nowUs - peer.seenUs < ABSENT_MS * 1000) continue;
      peer.link.close();
      this.#peers.delete(id);
      this.#generation++;
    }
    this.#problem = problems.length === 0 ? null : problems.join('; ');
  }

  /** Asks each what it holds that has none of these questions to answer; resolves when all have answered or are late. */
  async poll(): Promise<void> {
    await Promise.all([...this.#peers.values()].map((peer) => this.pollOne(peer)));
  }

  /** Never rejects. */
  async pollOne(peer: Peer): Promise<void> {
    if (this.#polled.has(peer)) return;
    this.#polled.add(peer);
    const { monotonicUs, onSilent } = this.#ports;
    const askedUs = monotonicUs();
    try {
      const known = writeKnown(peer.projects.known());
      const holdings = readHoldings(await peer.link.holdings(known, HOLDINGS_TIMEOUT_MS));
      peer.hear(holdings, askedUs);
      peer.seenUs = askedUs;
      if (this.#silent.delete(peer)) onSilent?.(peer.url, null);
    } catch (error) {
      // Whatever it was: nothing is known of what it holds now.
      peer.missed(askedUs, monotonicUs());
      if (!peer.isSilent || !peer.isInGroup || this.#silent.has(peer)) return;
      this.#silent.add(peer);
      onSilent?.(peer.url, errorText(error));
    } finally {
      this.#polled.delete(peer);
    }
  }

  /** Partitions of a topic, as many as any member knows of; 0 where none does. */
  partitionCount(topic: string, topicId: string): number {
    let count = 0;
    for (const peer of this.#peers.values())
      for (const known of peer.topics)
        if (known.topic === topic && isSameLog(known.topicId, topicId))
          count = Math.max(count, known.partitionCount);
    return count;
  }

  /**
   * Members that have a whole copy of a partition of a log, beyond an offset, those of its zone and those that are farthest
   * coming first; null while some may that can't be asked now.
   */
  wholeCopies(key: PartitionKey, topicId: string, beyond: number): Peer[] | null {
    if (!this.#isKnown || !this.#isWhole) return null;
    const id = partitionId(key);
    const nowUs = this.#ports.monotonicUs();
    const found: { readonly peer: Peer; readonly nextOffset: number }[] = [];
    let isOpen = false;
    for (const peer of this.#peers.values()) {
      const holding = peer.holding(id, nowUs);
      if (holding === undefined) isOpen ||= peer.isInGroup;
      if (holding === undefined || holding === null || !isWholeBeyond(holding, beyond)) continue;
      if (!peer.topics.some((known) => known.topic === key.topic && isSameLog(known.topicId, topicId)))
        continue;
      if (peer.isSilent) isOpen = true;
      else found.push({ peer, nextOffset: holding.nextOffset });
    }
    if (found.length === 0 && isOpen) return null;
    const isFar = ({ zone }: Peer) => Number(zone !== this.#ports.zone);
    return found
      .sort((a, b) => isFar(a.peer) - isFar(b.peer) || b.nextOffset - a.nextOffset)
      .map(({ peer }) => peer);
  }

  /** Whether a member that answers has read a partition so far, and to its end a short while ago. */
  isRead(key: PartitionKey, nextOffset: number): boolean {
    const id = partitionId(key);
    const nowUs = this.#ports.monotonicUs();
    for (const peer of this.#peers.values()) {
      const holding = peer.isSilent ? null : (peer.holding(id, nowUs) ?? null);
      if (holding !== null && this.#isFresh(holding) && holding.nextOffset >= nextOffset) return true;
    }
    return false;
  }

  /** Whether a member's copy of a partition was read to its end a short while ago. */
  isFresh(peer: Peer, key: PartitionKey): boolean {
    const holding = peer.holding(partitionId(key), this.#ports.monotonicUs());
    return holding !== undefined && holding !== null && this.#isFresh(holding);
  }

  /** How many entries a member has had of a partition; 0 where that is not known. */
  received(peer: Peer, key: PartitionKey): number {
    return peer.holding(partitionId(key), this.#ports.monotonicUs())?.received ?? 0;
  }

  /** Those that may have a partition, whom to ask first coming first. */
  holders(key: PartitionKey): Peer[] {
    const id = partitionId(key);
    const nowUs = this.#ports.monotonicUs();
    const ranked: { readonly peer: Peer; readonly rank: number }[] = [];
    for (const peer of this.#peers.values()) {
      const rank = this.#rank(peer, id, nowUs);
      if (rank !== null) ranked.push({ peer, rank });
    }
    ranked.sort((a, b) => a.rank - b.rank || (a.peer.storeId < b.peer.storeId ? -1 : 1));
    return ranked.map(({ peer }) => peer);
  }

  /** Answering at all counts for more than being fresh, that for more than being near. */
  #rank(peer: Peer, id: string, nowUs: number): number | null {
    const holding = peer.holding(id, nowUs);
    const isAssigned = peer.assigned.has(id);
    if (!isAssigned && (holding === null || holding === undefined)) return null;
    // One that has it to read says so once it has something of it.
    const isFresh = holding === undefined ? isAssigned : holding !== null && this.#isFresh(holding);
    const isNear = peer.zone === this.#ports.zone;
    return (peer.isSilent ? 4 : 0) + (isFresh ? 0 : 2) + (isNear ? 0 : 1);
  }

  #isFresh({ isReached, ageMs }: Holding): boolean {
    return isReached && ageMs <= this.#ports.freshMs;
  }

  close(): void {
    for (const peer of this.#peers.values()) peer.link.close();
    this.#peers.clear();
  }
}

function isWholeBeyond({ ageMs, nextOffset }: Holding, offset: number): boolean {
  return ageMs !== Infinity && nextOffset > offset;
}

/** Of several members with one store the one that is known already, else the last: the others are on their way out. */
function oncePerStore(
  members: readonly ClusterMember[],
  knownUrl: (storeId: string) => string | undefined,
): Iterable<ClusterMember> {
  const byStore = new Map<string, ClusterMember>();
  for (const member of members)
    if (byStore.get(member.storeId)?.url !== knownUrl(member.storeId) || !byStore.has(member.storeId))
      byStore.set(member.storeId, member);
  return byStore.values();
}
