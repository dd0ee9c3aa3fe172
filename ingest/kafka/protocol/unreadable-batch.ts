/**
 * Makes a batch that can't be unpacked pass through kafkajs as records of its own, so that it becomes a dead
 * letter: otherwise kafkajs would end the consumer, come back, and end again at the same batch for ever.
 *
 * kafkajs hands a codec only the packed bytes, but as a view into the whole batch, whose header lies before
 * it.
 */

import type { KafkaMessage } from 'kafkajs';
import type { UnreadableReason } from '../../log-source.js';
import { BatchView } from './record-batch.js';
import { varint } from './varint.js';

/** A header of the records made here; unforgeable, because only buffers made here are in `reasonByBuffer`. */
const MARK = 'logring.unreadable';
const reasonByBuffer = new WeakMap<ArrayBufferLike, UnreadableReason>();

/**
 * As many records as the batch says it has, in the form that unpacking would have given. The last one stands
 * at the batch's last offset and holds the packed bytes; those before it are fillers. Throws a
 * RangeError when `packed` lies in no batch of the present format.
 */
export function unreadableRecords(packed: Uint8Array, reason: UnreadableReason): Buffer {
  const { recordCount, lastOffsetDelta } = BatchView.before(packed);
  const parts: Buffer[] = [];
  for (let index = 0; index < recordCount - 1; index++)
    parts.push(encodeRecord(Math.min(index, lastOffsetDelta), null));
  parts.push(encodeRecord(lastOffsetDelta, packed));
  const joined = Buffer.concat(parts);
  // A memory block of its own, not a piece of a shared pool: the mark is for this batch alone.
  const records = Buffer.allocUnsafeSlow(joined.length);
  joined.copy(records);
  reasonByBuffer.set(records.buffer, reason);
  return records;
}

/**
 * What kind of record kafkajs delivers: a real one, a filler to be left out, or one that stands for its
 * batch.
 */
export function unreadableReason(message: KafkaMessage): UnreadableReason | 'filler' | null {
  if (message.headers === undefined || !(MARK in message.headers) || message.key === null) return null;
  const reason = reasonByBuffer.get(message.key.buffer);
  if (reason === undefined) return null;
  return message.value === null ? 'filler' : reason;
}

function encodeRecord(offsetDelta: number, value: Uint8Array | null): Buffer {
  const mark = Buffer.from(MARK);
  const body = Buffer.concat([
    Buffer.from([0, 0]), // attributes, timestamp delta
    varint(offsetDelta),
    varint(1),
    Buffer.from([0]), // a key of one byte: it leads back to the memory block
    varint(value === null ? -1 : value.length),
    value ?? Buffer.alloc(0),
    varint(1),
    varint(mark.length),
    mark,
    varint(0),
  ]);
  return Buffer.concat([varint(body.length), body]);
}
