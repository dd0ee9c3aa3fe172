/**
 * What members ask each other to copy the state of a partition, as JSON; a piece itself is bytes, with their CRC-32 behind.
 *
 *   copy      topic, its id, partition, asker →  a snapshot of its files, the giver's clock
 *   piece     snapshot, file, from where      →  its bytes, or that they are those which the asker has
 *   release   snapshot
 */

import { crc32 } from 'node:zlib';
import * as z from 'zod';
import { PartialError } from '../../engine/partial-format.js';
import { snapshot } from '../store/directory/backup.js';
import { STORE_FORMAT } from '../store/directory/store-format.js';
import { messageReader } from './json-message.js';
import { PIECE_LIMIT_BYTES } from './limits.js';

const copyRequest = z.object({
  topic: z.string(),
  topicId: z.string(),
  partition: z.int().min(0),
  /** The id of the asker's store. */
  store: z.string(),
});

const pieceRequest = z.object({
  snapshot: z.string(),
  /** In the folder of snapshots. */
  name: z.string(),
  at: z.int().min(0),
  byteCount: z.int().min(1).max(PIECE_LIMIT_BYTES),
  /** Of what the asker has there, in hexadecimal; null: it has nothing. */
  sha256: z.string().nullable(),
});

/** `isTaken`: the member goes on with it. */
const releaseRequest = z.object({ snapshot: z.string(), isTaken: z.boolean().default(true) });

/** HTTP's status for a copy that can't be given while others are: it is to be asked for again. */
export const BUSY_STATUS = 429;

export const readCopyRequest = messageReader(copyRequest, 'a request for a copy');
export const readPieceRequest = messageReader(pieceRequest, 'a request for a piece of a file');
export const readReleaseRequest = messageReader(releaseRequest, 'a release');

const givenCopy = snapshot.extend({
  /** The giver's clock when it was asked, µs since the epoch: times in the files are of that clock. */
  nowUs: z.int().min(0),
});

/** What a member gives of a partition, of the files in one folder only. */
export const readCopy = (bytes: Uint8Array, folder: string) => {
  const copy = messageReader(givenCopy, 'a copy')(bytes);
  if (copy.format !== STORE_FORMAT)
    throw new PartialError(`a copy has format ${copy.format}, not ${STORE_FORMAT}`);
  const paths = new Set(copy.files.map(({ path }) => path));
  if (paths.size !== copy.files.length || [...paths].some((path) => !path.startsWith(`${folder}/`)))
    throw new PartialError('a copy lists files of something else');
  return copy;
};

export const PIECE_CHECKSUM_BYTES = 4;

/** `piece`: its last bytes are room for the checksum. */
export function writePieceChecksum(piece: Uint8Array): void {
  const byteCount = piece.length - PIECE_CHECKSUM_BYTES;
  checksumOf(piece).setUint32(0, crc32(piece.subarray(0, byteCount)), true);
}

/** The bytes of a piece. Throws a PartialError where they are not as they were read. */
export function readPiece(piece: Uint8Array, byteCount: number): Uint8Array {
  if (piece.length !== byteCount + PIECE_CHECKSUM_BYTES)
    throw new PartialError(`a piece has ${piece.length} bytes, not ${byteCount + PIECE_CHECKSUM_BYTES}`);
  const bytes = piece.subarray(0, byteCount);
  if (checksumOf(piece).getUint32(0, true) !== crc32(bytes))
    throw new PartialError('a piece has a wrong checksum');
  return bytes;
}

function checksumOf({ buffer, byteOffset, length }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset + length - PIECE_CHECKSUM_BYTES, PIECE_CHECKSUM_BYTES);
}
