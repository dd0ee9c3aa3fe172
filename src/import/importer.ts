/** Imports one file: finds out how far it has come, and sends what is missing chunk by chunk. */

import { createHash } from 'node:crypto';
import type { ImportState } from '../../ingest/embedded-log/import-state.js';
import { fileChunks, tooShort } from './file-chunks.js';
import { readFirstLine } from './first-line.js';
import type { ImportClient } from './import-client.js';
import { ImportError } from './import-error.js';
import { chained } from './unpacked-bytes.js';

export interface FileReport {
  /** null for a file without anything in it. */
  readonly state: ImportState | null;
  /** Entries that stood before, accepted. */
  readonly acceptedBefore: number;
  /** At the end of the file, of an entry whose rest is missing: they are taken once it is there. */
  readonly unfinishedBytes: number;
}

/**
 * Takes what is missing of the file whose unpacked bytes come in pieces. Files are told apart by their names,
 * where they are given one, else by their first lines: a file that has grown goes on, and of different files
 * that begin alike the second is refused, for what both have would count twice. `onProgress` is told where
 * the import stands when it begins and after each chunk. Throws an ImportError; then all up to the last state
 * told stands, and the same call goes on there.
 */
export async function importFile(
  pieces: AsyncGenerator<Uint8Array>,
  name: string | null,
  client: ImportClient,
  onProgress: (state: ImportState) => void,
): Promise<FileReport> {
  try {
    const { head, firstLine } = await readFirstLine(pieces);
    if (head.length === 0) return { state: null, acceptedBefore: 0, unfinishedBytes: 0 };
    const importId = createHash('sha256')
      .update(`${client.topic}\0${name === null ? 'line' : 'name'}\0`)
      .update(name ?? firstLine)
      .digest('hex');
    let state = await client.state(importId);
    const acceptedBefore = state.accepted;
    onProgress(state);
    const chunks = fileChunks(chained(head, pieces), state);
    let endByte = state.nextByte;
    for (;;) {
      const next = await chunks.next();
      if (next.done) {
        // Meanwhile another import with the same first line has gone on beyond the end of this one.
        if (state.nextByte > endByte) throw tooShort(state);
        return { state, acceptedBefore, unfinishedBytes: next.value };
      }
      const chunk = next.value;
      endByte = chunk.endByte;
      state = await client.send(importId, chunk);
      if (state.nextByte < chunk.endByte)
        throw new ImportError('the service answers as if it had taken less than it was sent: this is a bug');
      onProgress(state);
    }
  } finally {
    await pieces.return(undefined);
  }
}
