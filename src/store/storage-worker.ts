/** The storage thread: compresses and checksums what a commit writes, so that the serving thread needn't. */

import { parentPort } from 'node:worker_threads';
import { sealEnvelope } from './envelope.js';
import type { SealReply, SealRequest } from './storage-protocol.js';

parentPort!.on('message', (request: SealRequest) => {
  const reply = seal(request);
  parentPort!.postMessage(reply, [reply.sealed]);
});

function seal({ id, names, arena, ends }: SealRequest): SealReply {
  const values = names.map((name, i) => {
    const start = i === 0 ? 0 : ends[i - 1];
    return sealEnvelope(name, new Uint8Array(arena, start, ends[i] - start));
  });
  const sealedEnds: number[] = [];
  let byteCount = 0;
  for (const { length } of values) {
    byteCount += length;
    sealedEnds.push(byteCount);
  }
  const sealed = new Uint8Array(byteCount);
  for (const [i, value] of values.entries()) sealed.set(value, i === 0 ? 0 : sealedEnds[i - 1]);
  return { id, sealed: sealed.buffer, ends: sealedEnds };
}
