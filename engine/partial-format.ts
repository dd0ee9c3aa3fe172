/**
 * The written form of partial answers. A partial answer is what one shard contributes to an answer: complete
 * for that shard, and mergeable with those of the others, wherever they are.
 *
 *   form (length u32, text such as `rows 1`) │ content │ CRC-32C of all before, u32
 */

import { ByteReader, ByteWriter } from './bytes.js';
import { crc32c } from './crc32c.js';
import { SegmentError } from './segments.js';

const CHECKSUM_BYTES = 4;

/** Bytes that are no partial answer of the form that was expected. */
export class PartialError extends Error {
  override name = 'PartialError';
}

/** A form names a view and its version; the two never change their meaning. */
export function writePartial(form: string, writeContent: (out: ByteWriter) => void): Uint8Array {
  const out = new ByteWriter();
  out.string(form);
  writeContent(out);
  out.u32(crc32c(out.written(), 0, out.length));
  return out.finish();
}

/** Throws a PartialError for anything but what writePartial returned for this form. */
export function readPartial<Content>(
  form: string,
  bytes: Uint8Array,
  readContent: (content: ByteReader) => Content,
): Content {
  const end = bytes.length - CHECKSUM_BYTES;
  if (end < 0) throw new PartialError('a partial answer is shorter than its checksum');
  if (new ByteReader(bytes.subarray(end)).u32() !== crc32c(bytes, 0, end))
    throw new PartialError('a partial answer has a wrong checksum');
  const content = new ByteReader(bytes.subarray(0, end));
  try {
    if (content.string() !== form) throw new PartialError(`a partial answer is not of the form ${form}`);
    const value = readContent(content);
    if (content.remaining > 0) throw new PartialError('a partial answer is longer than it says');
    return value;
  } catch (error) {
    throw error instanceof SegmentError ? new PartialError(error.message) : error;
  }
}
