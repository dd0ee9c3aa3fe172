/**
 * One file of a copy, fetched piece by piece, several at a time. What is there already, from a try that was cut off, is
 * compared by its checksum and not fetched again.
 */

import { createHash } from 'node:crypto';
import { constants, mkdirSync } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { type BodyPool, TakenBuffer } from '../endpoints/body-pool.js';
import type { Snapshot } from '../store/directory/backup.js';
import { CopyError } from './copy-error.js';
import { readPiece } from './hand-over.js';
import { writeMessage } from './json-message.js';
import { PIECE_BYTES, PIECES_AT_ONCE } from './limits.js';
import type { PeerLink } from './peer.js';

export interface FetchTarget {
  readonly path: string;
  /** What pieces are put together in. */
  readonly pieces: BodyPool;
  /** Asked before each piece. */
  readonly isStopped: () => boolean;
  /** Told of each piece that was not there yet, once it is written. */
  readonly onFetched: (byteCount: number) => void;
}

interface FetchedPiece {
  /** null: they are on the disk already. */
  readonly bytes: Uint8Array | null;
  /** What they are in. */
  readonly taken: TakenBuffer;
}

/** Resolves once all of it is durable, or it is stopped. Rejects as the link and the disk do, or with a PartialError. */
export async function fetchFile(
  link: Pick<PeerLink, 'piece'>,
  snapshot: string,
  { name, byteCount }: Snapshot['files'][number],
  { path, pieces, isStopped, onFetched }: FetchTarget,
): Promise<void> {
  mkdirSync(dirname(path), { recursive: true });
  const file = await open(path, constants.O_RDWR | constants.O_CREAT);
  const coming: Promise<FetchedPiece>[] = [];
  try {
    const { size } = await file.stat();
    const fetch = async (at: number): Promise<FetchedPiece> => {
      const length = Math.min(PIECE_BYTES, byteCount - at);
      const sha256 = at + length <= size ? await checksumOf(file, at, length) : null;
      const taken = new TakenBuffer(pieces);
      const request = writeMessage({ snapshot, name, at, byteCount: length, sha256 });
      const piece = await link.piece(request, taken.take);
      if (piece === null && sha256 === null) throw new CopyError('a piece has no bytes');
      return { bytes: piece === null ? null : readPiece(piece, length), taken };
    };
    let askedBytes = 0;
    for (let at = 0; at < byteCount && !isStopped(); at += PIECE_BYTES) {
      for (; coming.length < PIECES_AT_ONCE && askedBytes < byteCount; askedBytes += PIECE_BYTES) {
        const piece = fetch(askedBytes);
        // One that fails is met in its turn.
        piece.catch(() => undefined);
        coming.push(piece);
      }
      const { bytes, taken } = await coming.shift()!;
      if (bytes === null) continue;
      for (let done = 0; done < bytes.length; )
        done += (await file.write(bytes, done, bytes.length - done, at + done)).bytesWritten;
      taken.giveBack();
      onFetched(bytes.length);
    }
    await file.truncate(byteCount);
    await file.sync();
  } finally {
    await Promise.allSettled(coming);
    await file.close();
  }
}

async function checksumOf(file: FileHandle, at: number, length: number): Promise<string> {
  const bytes = Buffer.allocUnsafe(length);
  const { bytesRead } = await file.read(bytes, 0, length, at);
  return createHash('sha256').update(bytes.subarray(0, bytesRead)).digest('hex');
}
