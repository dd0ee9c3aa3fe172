/**
 * What a member of a group says of itself when it joins, for the one that assigns the partitions and for those
 * that look for it: who it is, where others ask it, and what it holds.
 *
 *   version u8 │ wire version u16 │ store id │ url │ held count u32 │ per partition: topic, partition u32, next offset f64
 *   since version 2: per partition, is whole u8
 *
 * Versions only ever add at the end.
 */

import { AssignerProtocol } from 'kafkajs';
import { ByteReader, ByteWriter } from '../../../engine/bytes.js';
import { SegmentError } from '../../../engine/segments.js';
import type { Position } from '../../log-source.js';
import { MEMBER_DATA_BYTES } from '../limits.js';

const VERSION = 2;

/** Who a process is among those that answer together. */
export interface ClusterIdentity {
  /** Of its store: it stays over restarts. */
  readonly storeId: string;
  /** Where other members ask it. */
  readonly url: string;
  /** Of the messages that it takes. */
  readonly wireVersion: number;
}

/** What a member has of a partition; an offset of 0: it was assigned, and nothing came yet. */
export interface HeldPosition extends Position {
  /** It was read to its end since it was assigned to this member. */
  readonly isWhole: boolean;
}

export interface MemberData extends ClusterIdentity {
  /** What matters most to the member that assigns the partitions coming first. */
  readonly held: readonly HeldPosition[];
}

/** What does not fit of what it holds is left out: the group also has whose it is with the committed offset. */
export function encodeMemberData({ storeId, url, wireVersion, held }: MemberData): Buffer {
  const out = new ByteWriter();
  out.u8(VERSION);
  out.u16(wireVersion);
  out.string(storeId);
  out.string(url);
  let byteCount = out.length + 4;
  let count = 0;
  while (count < held.length) {
    byteCount += 17 + Buffer.byteLength(held[count].topic);
    if (byteCount > MEMBER_DATA_BYTES) break;
    count++;
  }
  out.u32(count);
  for (const { topic, partition, nextOffset } of held.slice(0, count)) {
    out.string(topic);
    out.u32(partition);
    out.f64(nextOffset);
  }
  for (const { isWhole } of held.slice(0, count)) out.u8(isWhole ? 1 : 0);
  return Buffer.from(out.finish());
}

/** Of what a member told its group; null for what no member of this program wrote. */
export function memberDataOf(memberMetadata: Buffer): MemberData | null {
  const metadata = decodedOrNull(() => AssignerProtocol.MemberMetadata.decode(memberMetadata));
  return metadata?.userData ? decodeMemberData(metadata.userData) : null;
}

/** kafkajs takes bytes for what they should be: of others it makes whatever error. */
export function decodedOrNull<Decoded>(decode: () => Decoded): Decoded | null {
  try {
    return decode();
  } catch {
    return null;
  }
}

/** null for bytes that no member of this program wrote. */
export function decodeMemberData(bytes: Uint8Array): MemberData | null {
  try {
    const content = new ByteReader(bytes);
    const version = content.u8();
    if (version < 1) return null;
    const wireVersion = content.u16();
    const storeId = content.string();
    const url = content.string();
    if (!URL.canParse(url)) return null;
    const positions: Position[] = [];
    for (let left = content.u32(); left > 0; left--) {
      const position = { topic: content.string(), partition: content.u32(), nextOffset: content.f64() };
      if (!Number.isSafeInteger(position.nextOffset) || position.nextOffset < 0) return null;
      positions.push(position);
    }
    const held = positions.map((position) => ({ ...position, isWhole: version >= 2 && content.u8() === 1 }));
    return { storeId, url, wireVersion, held };
  } catch (error) {
    if (error instanceof SegmentError) return null;
    throw error;
  }
}
