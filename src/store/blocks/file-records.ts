/**
 * What a partition's journal holds of a file of blocks: where its frames end, in one record or several.
 *
 *   files/<file>#<frame>   flags u8 │ frame length u32 × frames, from that one on
 */

import { ByteReader } from '../../../engine/bytes.js';
import { rawEnvelope } from '../values/envelope.js';

const FLAG_DICTIONARY = 1;
export const FRAME_DIGITS = 10;

/** Begins the keys of what a journal knows of files. */
export const FILE_KEY = 'files/';

/** What a journal holds of a file. */
export interface FileRecord {
  /** Whose journal it is. */
  readonly scope: string;
  readonly key: string;
  readonly value: Uint8Array;
}

/** What a record of a scope's journal says. */
export function decodeFileRecord(scope: string, key: string, record: Uint8Array) {
  const hash = key.lastIndexOf('#');
  return {
    fileKey: `${scope}:${key.slice(FILE_KEY.length, hash)}`,
    firstFrame: Number(key.slice(hash + 1)),
    hasDictionary: (record[0] & FLAG_DICTIONARY) !== 0,
    lengths: new ByteReader(record.subarray(1)).u32s((record.length - 1) >>> 2),
  };
}

export function fileRecord(
  fileKey: string,
  firstFrame: number,
  hasDictionary: boolean,
  frameLengths: readonly number[],
): FileRecord {
  const { scope, file } = splitFileKey(fileKey);
  const key = `${FILE_KEY}${file}#${String(firstFrame).padStart(FRAME_DIGITS, '0')}`;
  const raw = new Uint8Array(1 + 4 * frameLengths.length);
  raw[0] = hasDictionary ? FLAG_DICTIONARY : 0;
  const view = new DataView(raw.buffer);
  for (const [i, length] of frameLengths.entries()) view.setUint32(1 + 4 * i, length, true);
  return { scope, key, value: rawEnvelope(`${scope}:${key}`, raw) };
}

export function splitFileKey(fileKey: string): { readonly scope: string; readonly file: string } {
  const colon = fileKey.lastIndexOf(':');
  return { scope: fileKey.slice(0, colon), file: fileKey.slice(colon + 1) };
}
