/**
 * The projects that a shard has ever taken entries of, as hashes in the order in which they came. What is not in it, the
 * shard has nothing of, up to its next offset. Two projects may have one hash: then it seems to have both.
 *
 *   projects/state     next offset f64 │ count u32 │ mark u32     with every save: they belong to its offset
 *   projects/000000…   CHUNK_COUNT hashes each, the last one fewer
 *
 * There is no list of a shard that took entries before lists were kept, or has too many projects, or of whose list
 * something is lost: any project may be in it.
 */

import { ByteReader, ByteWriter } from './bytes.js';
import { HashSet } from './hash-set.js';
import { LISTED_PROJECTS } from './limits.js';
import type { SegmentReader, SegmentWriter } from './segments.js';

/** The names of its segments begin with it. */
export const PROJECTS_PREFIX = 'projects/';
const STATE = `${PROJECTS_PREFIX}state`;
const CHUNK_COUNT = 1024;

/** Tells lists apart: of equal ones it is equal. */
export interface ProjectsMark {
  readonly count: number;
  /** Of all hashes, in their order. */
  readonly mark: number;
}

export const NO_PROJECTS: ProjectsMark = { count: 0, mark: 0 };

/** FNV-1a of the UTF-16 units, never 0. Source: Fowler, Noll and Vo. */
export function projectHash(project: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < project.length; i++) hash = Math.imul(hash ^ project.charCodeAt(i), 0x01000193);
  return hash >>> 0 || 1;
}

/** The mark of a list that has one hash more. */
export function nextMark(mark: number, hash: number): number {
  return (Math.imul(mark, 0x01000193) ^ hash) >>> 0;
}

export class ProjectList {
  #set = new HashSet();
  #hashes = new Uint32Array(16);
  #mark = 0;
  #isKnown = true;
  /** Hashes that are stored. */
  #savedCount = 0;
  #isStored = false;
  #last = '';

  /** null: there is no list. */
  get mark(): ProjectsMark | null {
    return this.#isKnown ? { count: this.#set.count, mark: this.#mark } : null;
  }

  get heldBytes(): number {
    return this.#set.heldBytes + this.#hashes.byteLength;
  }

  /** Hashes from an index on, so many at most; not to be changed. */
  from(index: number, most: number): Uint32Array {
    return this.#hashes.subarray(index, Math.min(index + most, this.#set.count));
  }

  add(project: string): void {
    if (project === this.#last || !this.#isKnown) return;
    this.#last = project;
    this.#take(projectHash(project));
  }

  save(writer: SegmentWriter, nextOffset: number): void {
    if (!this.#isKnown) {
      if (this.#isStored) writer.deletePrefix(PROJECTS_PREFIX);
      this.#isStored = false;
      return;
    }
    const { count } = this.#set;
    for (let at = this.#savedCount; at < count; at += CHUNK_COUNT - (at % CHUNK_COUNT)) {
      const start = at - (at % CHUNK_COUNT);
      const chunk = new ByteWriter();
      for (const hash of this.from(start, CHUNK_COUNT)) chunk.u32(hash);
      writer.put(chunkName(start), chunk.finish());
    }
    this.#savedCount = count;
    const state = new ByteWriter();
    state.f64(nextOffset);
    state.u32(count);
    state.u32(this.#mark);
    writer.put(STATE, state.finish());
    this.#isStored = true;
  }

  /** Restores what was saved with an offset into a fresh list; anything else is no list. */
  load(reader: SegmentReader, nextOffset: number): void {
    const bytes = reader.get(STATE);
    this.#isStored = bytes !== null;
    if (bytes === null || !this.#isLoaded(reader, new ByteReader(bytes), nextOffset)) this.#forget();
    else this.#savedCount = this.#set.count;
  }

  #isLoaded(reader: SegmentReader, state: ByteReader, nextOffset: number): boolean {
    const savedOffset = state.f64();
    const count = state.u32();
    const mark = state.u32();
    for (let at = 0; at < count; at += CHUNK_COUNT) {
      const chunk = reader.get(chunkName(at));
      if (chunk === null) return false;
      for (const hash of new ByteReader(chunk).u32s(Math.floor(chunk.length / 4))) this.#take(hash);
    }
    return savedOffset === nextOffset && count === this.#set.count && mark === this.#mark;
  }

  #take(hash: number): void {
    if (!this.#set.add(hash)) return;
    const { count } = this.#set;
    if (count > LISTED_PROJECTS) {
      this.#forget();
      return;
    }
    if (count > this.#hashes.length) {
      const grown = new Uint32Array(2 * this.#hashes.length);
      grown.set(this.#hashes);
      this.#hashes = grown;
    }
    this.#hashes[count - 1] = hash;
    this.#mark = nextMark(this.#mark, hash);
  }

  #forget(): void {
    this.#isKnown = false;
    this.#set = new HashSet();
    this.#hashes = new Uint32Array(0);
  }
}

function chunkName(index: number): string {
  return `${PROJECTS_PREFIX}${String(index / CHUNK_COUNT).padStart(6, '0')}`;
}
