/**
 * Which member of a group gets which partition. State is large and a partition's log is long, so a partition
 * stays with the member that holds its state:
 *
 *   the store that committed its offset is here            that member
 *   else a member here holds some of it                    the one that holds most
 *   else the group has committed an offset: whoever
 *     holds it is away                                     nobody, until it is back or was away for too long
 *   else nobody has read it, or will come back             the member with the fewest partitions
 *
 * Then a few move from the member with most to the one with fewest, where possible of the topic in which they differ
 * most: the second gets them beside the first, copies what that one has and reads on; once it has read them to their
 * ends they are its own.
 *
 * A function of its arguments, whatever their order; but for those that move each partition goes to one member at most.
 */

import type { PartitionKey } from '../../log-source.js';
import { partitionId } from '../../partition-id.js';
import { MOVES_AT_ONCE } from '../limits.js';
import type { MemberData } from './member-data.js';

export interface GroupMember {
  readonly memberId: string;
  /** null where it can't be read: as one that holds nothing. */
  readonly data: MemberData | null;
}

/** What the group has committed of a partition: the store that did, '' for one that did not say. */
export type CommittedBy = ReadonlyMap<string, string>;

/** What a member gets. */
export interface Assigned {
  readonly partitions: readonly PartitionKey[];
  /** Those of them that another member has too, until this one has copied them and read them to their ends. */
  readonly beside: readonly PartitionKey[];
}

/**
 * By member id. `committedBy` is by partitionId. `givenUp` gets, by partitionId, the partitions whose holder is away, and
 * returns which of them wait no longer.
 */
export function assignPartitions(
  partitions: readonly PartitionKey[],
  members: readonly GroupMember[],
  committedBy: CommittedBy,
  givenUp: (away: readonly string[]) => ReadonlySet<string> = () => new Set(),
): Map<string, Assigned> {
  const places = placesOf(members);
  const ordered = [...partitions].sort(byTopicAndNumber);
  const without: PartitionKey[] = [];
  for (const key of ordered) {
    const id = partitionId(key);
    const owner = committedBy.get(id);
    const holder = places.find(({ storeId }) => storeId !== '' && storeId === owner) ?? holderOf(id, places);
    if (holder !== null) holder.partitions.push(key);
    else without.push(key);
  }
  const away = without.map(partitionId).filter((id) => committedBy.has(id));
  const over = givenUp(away.filter((id) => !places.some(({ held }) => held.has(id))));
  // One that was given to a member before is copied to it, or will be.
  const free = without.filter((key) => {
    const id = partitionId(key);
    return !committedBy.has(id) || over.has(id) || places.some(({ held }) => held.has(id));
  });
  const share = Math.ceil(ordered.length / Math.max(1, places.length));
  const left = free.filter((key) => {
    // Nothing came of it yet: it stays where it is while that is fair.
    const id = partitionId(key);
    const before = places.find(({ held, partitions: own }) => held.has(id) && own.length < share);
    before?.partitions.push(key);
    return before === undefined;
  });
  for (const key of left) leastLoaded(places)?.partitions.push(key);
  takeOver(places);
  moveSome(places);
  return new Map(
    members.map(({ memberId }) => {
      const { partitions: own = [], beside = [] } = places.find((place) => place.memberId === memberId) ?? {};
      return [memberId, { partitions: [...own, ...beside].sort(byTopicAndNumber), beside }];
    }),
  );
}

/** What a member with fewer partitions has copied and read to its end is its own from now on. */
function takeOver(places: readonly Place[]): void {
  for (const from of places)
    for (const key of [...from.partitions]) {
      const id = partitionId(key);
      const to = leastLoaded(places.filter((place) => place !== from && place.whole.has(id)));
      if (to === null || from.partitions.length - to.partitions.length < 2) continue;
      from.partitions.splice(from.partitions.indexOf(key), 1);
      to.partitions.push(key);
    }
}

/** Members with fewer partitions than others are to copy some: those first that they have begun with. */
function moveSome(places: readonly Place[]): void {
  const countOf = (place: Place) => place.partitions.length - place.givenAway.length + place.beside.length;
  for (let count = 0; count < MOVES_AT_ONCE; count++) {
    const ordered = [...places].sort((a, b) => countOf(a) - countOf(b));
    const [to, from] = [ordered[0], ordered.at(-1)];
    if (to === undefined || from === undefined || countOf(from) - countOf(to) < 2) return;
    const movable = from.partitions.filter((key) => !from.givenAway.includes(key));
    const begun = movable.filter((one) => to.held.has(partitionId(one)));
    const key = ofTopicAhead(begun.length > 0 ? begun : movable, movable, to);
    if (key === undefined) return;
    to.beside.push(key);
    from.givenAway.push(key);
  }
}

/**
 * Of the candidates the first of the topic of which one member has most more to give than the other has: topics differ in
 * what they bring.
 */
function ofTopicAhead(
  candidates: readonly PartitionKey[],
  movable: readonly PartitionKey[],
  to: Place,
): PartitionKey | undefined {
  const ahead = new Map<string, number>();
  for (const { topic } of movable) ahead.set(topic, (ahead.get(topic) ?? 0) + 1);
  for (const { topic } of [...to.partitions, ...to.beside]) ahead.set(topic, (ahead.get(topic) ?? 0) - 1);
  const most = Math.max(...candidates.map(({ topic }) => ahead.get(topic)!));
  return candidates.find(({ topic }) => ahead.get(topic) === most);
}

/** A member that gets partitions. */
interface Place {
  readonly memberId: string;
  readonly storeId: string;
  /** Next offsets by partitionId. */
  readonly held: ReadonlyMap<string, number>;
  /** Which it has read to their ends, by partitionId. */
  readonly whole: ReadonlySet<string>;
  readonly partitions: PartitionKey[];
  readonly beside: PartitionKey[];
  /** Those of its partitions that another member gets beside it. */
  readonly givenAway: PartitionKey[];
}

/** Of two members with one store, which can only be a copied directory, the second gets nothing. */
function placesOf(members: readonly GroupMember[]): Place[] {
  const places: Place[] = [];
  const ordered = [...members].sort((a, b) => compare(a.memberId, b.memberId));
  for (const { memberId, data } of ordered) {
    const storeId = data?.storeId ?? '';
    if (storeId !== '' && places.some((place) => place.storeId === storeId)) continue;
    const held = new Map(data?.held.map((position) => [partitionId(position), position.nextOffset]));
    const whole = new Set(data?.held.filter(({ isWhole }) => isWhole).map(partitionId));
    places.push({ memberId, storeId, held, whole, partitions: [], beside: [], givenAway: [] });
  }
  // By store, so that a restart, which changes the member's id, changes nothing else.
  return places.sort((a, b) => compare(a.storeId, b.storeId) || compare(a.memberId, b.memberId));
}

/** The one that holds most of a partition; null where nobody holds any. */
function holderOf(id: string, places: readonly Place[]): Place | null {
  let holder: Place | null = null;
  for (const place of places) if ((place.held.get(id) ?? 0) > (holder?.held.get(id) ?? 0)) holder = place;
  return holder;
}

function leastLoaded(places: readonly Place[]): Place | null {
  let least: Place | null = null;
  for (const place of places)
    if (least === null || place.partitions.length < least.partitions.length) least = place;
  return least;
}

function byTopicAndNumber(a: PartitionKey, b: PartitionKey): number {
  return compare(a.topic, b.topic) || a.partition - b.partition;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
