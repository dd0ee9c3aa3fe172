/** Imports one file: finds out how far it has come, and sends what is missing chunk by chunk. */

import { createHash } from 'node:crypto';
import { skipWhitespace, trimEnd } from '../../ingest/decode/json-scan.js';
import type { ImportState } from '../../ingest/embedded-log/import-state.js';
import { fileChunks } from './file-chunks.js';
import type { ImportClient } from './import-client.js';
import { ImportError } from './import-error.js';
import { IDENTIFYING_BYTES } from './limits.js';

const LINE_FEED = 0x0a;

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
    return await importPieces(pieces, name, client, onProgress);
  } finally {
    await pieces.return(undefined);
  }
}

async function importPieces(
  pieces: AsyncGenerator<Uint8Array>,
  name: string | null,
  client: ImportClient,
  onProgress: (state: ImportState) => void,
): Promise<FileReport> {
  const head = await readHead(pieces);
  if (head.length === 0) return { state: null, acceptedBefore: 0, unfinishedBytes: 0 };
  const importId = createHash('sha256')
    .update(`${client.topic}\0${name === null ? 'line' : 'name'}\0`)
    .update(name ?? firstLine(head))
    .digest('hex');
  let state = await client.state(importId);
  const acceptedBefore = state.accepted;
  onProgress(state);
  const chunks = fileChunks(prepended(head, pieces), state);
  for (;;) {
    const next = await chunks.next();
    if (next.done) return { state, acceptedBefore, unfinishedBytes: next.value };
    const chunk = next.value;
    state = await client.send(importId, chunk);
    if (state.nextByte < chunk.endByte)
      throw new ImportError('the service answers as if it had taken less than it was sent: this is a bug');
    onProgress(state);
  }
}

/**
 * All of the first line that isn't blank, its end included, or as much of it as identifies; else all there
 * is.
 */
async function readHead(pieces: AsyncGenerator<Uint8Array>): Promise<Buffer> {
  let head: Buffer = Buffer.alloc(0);
  let lineStart = 0;
  while (head.length < IDENTIFYING_BYTES && head.indexOf(LINE_FEED, lineStart) < 0) {
    const { value, done } = await pieces.next();
    if (done) break;
    head = Buffer.concat([head, value]);
    lineStart = skipWhitespace(head, 0, head.length);
  }
  return head;
}

/** Without the whitespace around it: a last line without an end is the same once more follows. */
function firstLine(head: Buffer): Buffer {
  const start = skipWhitespace(head, 0, head.length);
  const feed = head.indexOf(LINE_FEED, start);
  return head
    .subarray(start, trimEnd(head, start, feed < 0 ? head.length : feed))
    .subarray(0, IDENTIFYING_BYTES);
}

async function* prepended(head: Uint8Array, rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield head;
  yield* rest;
}
