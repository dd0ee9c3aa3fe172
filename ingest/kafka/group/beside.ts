/**
 * What an assignment says beside its partitions: which of them another member has too, until this one has them whole.
 * The group keeps it, and its description tells it.
 */

import { ByteReader, ByteWriter } from '../../../engine/bytes.js';
import { SegmentError } from '../../../engine/segments.js';
import type { PartitionKey } from '../../log-source.js';

export function encodeBeside(keys: readonly PartitionKey[]): Buffer {
  const out = new ByteWriter();
  out.u32(keys.length);
  for (const { topic, partition } of keys) {
    out.string(topic);
    out.u32(partition);
  }
  return Buffer.from(out.finish());
}

/** None for bytes that no member of this program wrote. */
export function decodeBeside(bytes: Uint8Array): PartitionKey[] {
  try {
    const content = new ByteReader(bytes);
    const keys: PartitionKey[] = [];
    for (let left = content.u32(); left > 0; left--)
      keys.push({ topic: content.string(), partition: content.u32() });
    return keys;
  } catch (error) {
    if (error instanceof SegmentError) return [];
    throw error;
  }
}
