/**
 * The bytes of what members ask and answer each other. Anything else than what the functions that write it write is a
 * PartialError.
 *
 *   message    form (length u32, text such as `reply 4`) │ content │ CRC-32 of all before
 *   projects   is known u8 │ count u32 │ mark u32
 */

import { crc32 } from 'node:zlib';
import { ByteReader, ByteWriter } from '../../engine/bytes.js';
import { PartialError, readPartial } from '../../engine/partial-format.js';
import { NO_PROJECTS, type ProjectsMark } from '../../engine/project-list.js';
import { POOLED_BODY_BYTES, SMALL_BODY_BYTES } from '../endpoints/limits.js';

const CHECKSUM_BYTES = 4;

/** Memory of at least so many bytes. */
export type Allocate = (byteCount: number) => Uint8Array<ArrayBuffer>;

/**
 * In memory from `allocate` where it is not larger than what that keeps; what is small does not hold that. Throws what
 * writing its content throws.
 */
export function writeMessage(
  form: string,
  writeContent: (out: ByteWriter) => void,
  allocate?: Allocate,
): Uint8Array {
  const out = new ByteWriter(allocate?.(POOLED_BODY_BYTES));
  out.string(form);
  writeContent(out);
  out.u32(crc32(out.written()));
  return allocate !== undefined && out.length < SMALL_BODY_BYTES ? out.finish(allocate) : out.written();
}

/** Throws a PartialError. */
export function readMessage<Content>(
  form: string,
  bytes: Uint8Array,
  readContent: (content: ByteReader) => Content,
): Content {
  const end = bytes.length - CHECKSUM_BYTES;
  if (end < 0) throw new PartialError('a message is shorter than its checksum');
  const content = bytes.subarray(0, end);
  if (new ByteReader(bytes.subarray(end)).u32() !== crc32(content))
    throw new PartialError('a message has a wrong checksum');
  return readPartial(form, content, readContent);
}

export function writeMark(projects: ProjectsMark | null, out: ByteWriter): void {
  out.u8(projects === null ? 0 : 1);
  const { count, mark } = projects ?? NO_PROJECTS;
  out.u32(count);
  out.u32(mark);
}

export function readMark(content: ByteReader): ProjectsMark | null {
  const isKnown = content.u8() === 1;
  const mark = { count: content.u32(), mark: content.u32() };
  return isKnown ? mark : null;
}

/** A count (u32) and so many. */
export function many<One>(content: ByteReader, read: () => One): One[] {
  const all: One[] = [];
  // A count that is a lie ends at the end of the bytes.
  for (let left = content.u32(); left > 0; left--) all.push(read());
  return all;
}

export function whole(value: number): number {
  if (!Number.isSafeInteger(value)) throw new PartialError('a number is not a whole one');
  return value;
}

export function atMost(most: number, value: number): number {
  if (value > most) throw new PartialError('a number is larger than it can be');
  return value;
}

export function notNegative(value: number): number {
  if (!(value >= 0)) throw new PartialError('a number is less than nothing');
  return value;
}
