/**
 * POSTs that came with an Idempotency-Key, and what they were answered: one that is sent again counts once.
 * They are written with the records of their append as one, so this holds also when a process is killed
 * between append and answer.
 */

import type { MissingCounts } from '../../engine/entry.js';
import { POST_ENTRY_BYTES, POST_MEMORY_BYTES, POST_MEMORY_COUNT, POST_MEMORY_MS } from '../limits.js';
import type { RejectedEntry } from './posted-records.js';

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

/** By digest of the key; null: forgotten. */
export type PostChanges = ReadonlyMap<string, RememberedPost | null>;

/**
 * Of one topic. What changes is worked out first (`find`, `change`) and taken over once it is durable
 * (`apply`).
 */
export class RememberedPosts {
  /** Oldest first. */
  readonly #posts: Map<string, RememberedPost>;
  #heldBytes = 0;

  constructor(stored: Iterable<readonly [string, RememberedPost]>) {
    this.#posts = new Map([...stored].sort(([, a], [, b]) => a.postedMs - b.postedMs));
    for (const post of this.#posts.values()) this.#heldBytes += bytesOf(post);
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** `changes` are those of the write under way. */
  find(keyDigest: string, changes: PostChanges, trustedMs: number): RememberedPost | null {
    const post = changes.get(keyDigest) ?? this.#posts.get(keyDigest) ?? null;
    return post === null || isExpired(post, trustedMs) ? null : post;
  }

  /**
   * Adds a POST to the changes, and that those are forgotten which have expired or make room for it: the oldest go first.
   */
  change(
    changes: Map<string, RememberedPost | null>,
    keyDigest: string,
    post: RememberedPost,
    trustedMs: number,
  ): void {
    changes.set(keyDigest, post);
    let count = this.#posts.size;
    let heldBytes = this.#heldBytes;
    for (const [key, change] of changes) {
      const before = this.#posts.get(key);
      count += Number(change !== null) - Number(before !== undefined);
      heldBytes += (change === null ? 0 : bytesOf(change)) - (before === undefined ? 0 : bytesOf(before));
    }
    for (const [key, oldest] of this.#posts) {
      const isBeyond = count > POST_MEMORY_COUNT || heldBytes > POST_MEMORY_BYTES;
      if (!isBeyond && !isExpired(oldest, trustedMs)) return;
      if (changes.has(key)) continue;
      changes.set(key, null);
      count -= 1;
      heldBytes -= bytesOf(oldest);
    }
  }

  apply(changes: PostChanges): void {
    for (const [key, post] of changes) {
      const before = this.#posts.get(key);
      if (before !== undefined) this.#heldBytes -= bytesOf(before);
      this.#posts.delete(key);
      if (post === null) continue;
      this.#posts.set(key, post);
      this.#heldBytes += bytesOf(post);
    }
  }
}

function isExpired({ postedMs }: RememberedPost, trustedMs: number): boolean {
  return trustedMs - postedMs >= POST_MEMORY_MS;
}

function bytesOf({ rejected }: RememberedPost): number {
  return POST_ENTRY_BYTES * (4 + rejected.length);
}
