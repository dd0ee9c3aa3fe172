/** Imports one file: finds out how far it has come, and sends what is missing chunk by chunk. */

import { createHash } from 'node:crypto';
import type { ImportState } from '../../ingest/embedded-log/import-state.js';
import { fileChunks } from './file-chunks.js';
import type { ImportClient } from './import-client.js';
import { ImportError } from './import-error.js';
import { IDENTIFYING_BYTES } from './limits.js';

export interface FileReport {
  /** null for a file without anything in it. */
  readonly state: ImportState | null;
  /** Entries that stood before, accepted. */
  readonly acceptedBefore: number;
}

/**
 * Takes what is missing of the file whose unpacked bytes come in pieces. `onProgress` is told where the import stands
 * when it begins and after each chunk. Throws an ImportError; then all up to the last state told stands, and the same
 * call goes on there.
 */
export async function importFile(
  pieces: AsyncGenerator<Uint8Array>,
  client: ImportClient,
  onProgress: (state: ImportState) => void,
): Promise<FileReport> {
  try {
    return await importPieces(pieces, client, onProgress);
  } finally {
    await pieces.return(undefined);
  }
}

async function importPieces(
  pieces: AsyncGenerator<Uint8Array>,
  client: ImportClient,
  onProgress: (state: ImportState) => void,
): Promise<FileReport> {
  const head = await readHead(pieces);
  if (head.length === 0) return { state: null, acceptedBefore: 0 };
  const importId = createHash('sha256')
    .update(`${client.topic}\0`)
    .update(head.subarray(0, IDENTIFYING_BYTES))
    .digest('hex');
  let state = await client.state(importId);
  const acceptedBefore = state.accepted;
  onProgress(state);
  for await (const chunk of fileChunks(prepended(head, pieces), state)) {
    state = await client.send(importId, chunk);
    if (state.nextByte < chunk.endByte)
      throw new ImportError('the service answers as if it had taken less than it was sent: this is a bug');
    onProgress(state);
  }
  return { state, acceptedBefore };
}

/** At least the identifying bytes, or all there are. */
async function readHead(pieces: AsyncGenerator<Uint8Array>): Promise<Buffer> {
  const head: Uint8Array[] = [];
  let byteCount = 0;
  while (byteCount < IDENTIFYING_BYTES) {
    const { value, done } = await pieces.next();
    if (done) break;
    head.push(value);
    byteCount += value.length;
  }
  return Buffer.concat(head);
}

async function* prepended(head: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield head;
  yield* rest;
}
