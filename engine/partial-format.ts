/**
 * The written form of partial answers. A partial answer is what one shard contributes to an answer: complete
 * for that shard, and mergeable with those of the others, wherever they are.
 *
 *   form (length u32, text such as `rows 1`) │ content
 *
 * It has no checksum of its own: the message that carries it has one.
 */

import { ByteReader } from './bytes.js';
import { SegmentError } from './segments.js';

/** Bytes that are no partial answer of the form that was expected. */
export class PartialError extends Error {
  override name = 'PartialError';
}

/** How much of a partial answer is written: so many, and no more than so many bytes. */
export interface Detail {
  readonly count: number;
  readonly byteLimit: number;
}

/** What partial answers lack that are to be merged. */
export interface Lacking {
  /** Of each what to ask for, in the place of what has come; null: it needs nothing. */
  readonly details: readonly (Detail | null)[];
  /** Of what is to come, as far as that is known. */
  readonly byteCount: number;
}

/**
 * A form names a view and its version; the two never change their meaning. Throws a PartialError for anything but the
 * form and what was written after it.
 */
export function readPartial<Content>(
  form: string,
  bytes: Uint8Array,
  readContent: (content: ByteReader) => Content,
): Content {
  const content = new ByteReader(bytes);
  try {
    if (content.string() !== form) throw new PartialError(`a partial answer is not of the form ${form}`);
    const value = readContent(content);
    if (content.remaining > 0) throw new PartialError('a partial answer is longer than it says');
    return value;
  } catch (error) {
    throw error instanceof SegmentError ? new PartialError(error.message) : error;
  }
}
