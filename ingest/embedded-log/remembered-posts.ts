/**
 * POSTs that came with an Idempotency-Key, and what they were answered: one that is sent again counts once.
 * They are written with the records of their append as one, so this holds also when a process is killed
 * between append and answer.
 */

import type { MissingCounts } from '../../engine/entry.js';
import { POST_ENTRY_BYTES, POST_MEMORY_BYTES, POST_MEMORY_COUNT, POST_MEMORY_MS } from '../limits.js';
import type { RejectedEntry } from './posted-records.js';
import type { MemoryRules } from './remembered.js';

/** What became of the entries of a POST. */
export interface PostResult {
  readonly accepted: number;
  /** In order of index. */
  readonly rejected: readonly RejectedEntry[];
  /** Of those accepted; those remembered before it was counted have none. */
  readonly missing?: MissingCounts;
}

/** Which POST to a topic it is, and what it brings: both SHA-256 in hexadecimal. */
export interface PostIdentity {
  readonly keyDigest: string;
  readonly bodyDigest: string;
}

export interface RememberedPost extends PostResult {
  /** When it arrived, at the latest: milliseconds since the epoch. */
  readonly postedMs: number;
  readonly bodyDigest: string;
}

/** By digest of the key. */
export const POST_MEMORY: MemoryRules<RememberedPost> = {
  atMs: ({ postedMs }) => postedMs,
  bytesOf: (_key, { rejected }) => POST_ENTRY_BYTES * (4 + rejected.length),
  lifeMs: POST_MEMORY_MS,
  maxCount: POST_MEMORY_COUNT,
  maxBytes: POST_MEMORY_BYTES,
};
