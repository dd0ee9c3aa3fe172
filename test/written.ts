/** What is written for other members, as bytes. */

import { ByteWriter } from '../engine/bytes.js';
import { type Reply, writeReply } from '../src/cluster/messages.js';

export function writtenBy(write: (out: ByteWriter) => void): Uint8Array {
  const out = new ByteWriter();
  write(out);
  return out.finish();
}

/** A reply as it was read, or changed. */
export function writeReadReply(reply: Reply): Uint8Array {
  if (reply.kind !== 'answer') return writeReply(reply);
  const partials = reply.partials.map((bytes) => (out: ByteWriter) => out.bytes(bytes));
  return writeReply({ ...reply, partials });
}
