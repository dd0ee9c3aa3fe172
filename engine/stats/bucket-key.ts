/**
 * The name of a bucket within its slot, for a project alone or a function of it. Names come from outside and
 * may hold any characters, so no separator is safe: a function's key begins with the length of the project's
 * name instead.
 *
 *     project "shop"                 :shop
 *     project "shop", function "f"   4:shopf
 */

import type { ByteReader, ByteWriter } from '../bytes.js';
import { SegmentError } from '../segments.js';

export function projectKey(project: string): string {
  return `:${project}`;
}

/** Differs from every projectKey, which begins with no digit. */
export function functionKey(project: string, functionId: string): string {
  return `${project.length}:${project}${functionId}`;
}

/** JSON can spell half a surrogate pair. UTF-8 can't: two names would become one. */
const LONE_SURROGATE = /\p{Surrogate}/u;

const UTF8 = 0;
const UTF16 = 1;

export function writeKey(out: ByteWriter, key: string): void {
  if (!LONE_SURROGATE.test(key)) {
    out.u8(UTF8);
    out.string(key);
    return;
  }
  out.u8(UTF16);
  out.u32(key.length);
  for (let i = 0; i < key.length; i++) out.u16(key.charCodeAt(i));
}

export function readKey(segment: ByteReader): string {
  const encoding = segment.u8();
  if (encoding === UTF8) return segment.string();
  if (encoding !== UTF16) throw new SegmentError('a bucket key in a segment has no known encoding');
  let key = '';
  for (let left = segment.u32(); left > 0; left--) key += String.fromCharCode(segment.u16());
  return key;
}
