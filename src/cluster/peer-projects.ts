/**
 * What another member has nothing of: its lists of projects, as far as they came, each with the offset up to which it
 * holds. So it need not be asked for what it can't have.
 */

import { randomBytes } from 'node:crypto';
import { HashSet } from '../../engine/hash-set.js';
import { nextMark, type ProjectsMark } from '../../engine/project-list.js';
import { partitionId, partitionOf } from '../../ingest/partition-id.js';
import type { HeldCopy, KnownProjects } from './holdings.js';
import { KEPT_HASHES } from './limits.js';

const SEED = randomBytes(4).readUInt32LE();

/** As many as there can be: none are to be sent. */
const ALL = 0xffff_ffff;

/** How far a copy was, and how old, when a list was of it. */
export interface ListedCopy {
  readonly topicId: string;
  readonly nextOffset: number;
  readonly ageMs: number;
  readonly heardUs: number;
}

interface List {
  readonly hashes: HashSet;
  mark: number;
  /** null while it is not known to be whole. */
  copy: ListedCopy | null;
}

export class PeerProjects {
  /** By partitionId. */
  readonly #lists = new Map<string, List>();
  #hashCount = 0;
  /** Partitions whose lists there is no room for. */
  readonly #refused = new Set<string>();

  get heldBytes(): number {
    let byteCount = 0;
    for (const { hashes } of this.#lists.values()) byteCount += hashes.heldBytes;
    return byteCount;
  }

  /** To be told with the next question what it holds. */
  known(): KnownProjects[] {
    return [
      ...[...this.#lists].map(([id, { hashes }]) => ({ ...partitionOf(id), count: hashes.count })),
      ...[...this.#refused].map((id) => ({ ...partitionOf(id), count: ALL })),
    ];
  }

  /** Takes what it said of all that it holds. */
  hear(copies: readonly HeldCopy[], topicIdOf: (topic: string) => string, heardUs: number): void {
    const ids = new Set(copies.map(partitionId));
    for (const id of [...this.#lists.keys()]) {
      if (ids.has(id)) continue;
      this.#forget(id);
      // There is room again.
      this.#refused.clear();
    }
    for (const id of this.#refused) if (!ids.has(id)) this.#refused.delete(id);
    for (const held of copies) {
      const id = partitionId(held);
      if (held.projects === null) this.#forget(id);
      else if (!this.#refused.has(id)) this.#extend(id, held.from, held.hashes);
      if (held.isReached && held.ageMs !== Infinity)
        this.note(id, held.projects, { ...held, topicId: topicIdOf(held.topic), heardUs });
    }
  }

  /** Notes that a copy has these projects. */
  note(id: string, projects: ProjectsMark | null, copy: ListedCopy): void {
    const list = this.#lists.get(id);
    if (list === undefined || projects === null || list.hashes.count !== projects.count) return;
    if (list.mark !== projects.mark) {
      // The same projects came in another order, or others: it is asked for from its beginning.
      this.#forget(id);
      return;
    }
    const { topicId, nextOffset, ageMs, heardUs } = copy;
    if (list.copy === null || list.copy.topicId !== topicId || isNewer(copy, list.copy))
      list.copy = { topicId, nextOffset, ageMs, heardUs };
  }

  /** The newest copy known of a log that has nothing of a project, its age as of now; null: none is known. */
  without(id: string, project: number, topicId: string, nowUs: number): ListedCopy | null {
    const list = this.#lists.get(id);
    if (list === undefined || list.copy === null) return null;
    const { copy, hashes } = list;
    if (copy.topicId !== topicId || topicId === '' || hashes.has(project)) return null;
    return { ...copy, ageMs: copy.ageMs + (nowUs - copy.heardUs) / 1000 };
  }

  #extend(id: string, from: number, hashes: Uint32Array): void {
    const list = this.#lists.get(id) ?? { hashes: new HashSet(SEED), mark: 0, copy: null };
    this.#lists.set(id, list);
    if (this.#hashCount + hashes.length > KEPT_HASHES) {
      this.#forget(id);
      this.#refused.add(id);
      return;
    }
    // One that is shorter than what is known of it, or has a hash twice, is another one.
    let isSame = from === list.hashes.count;
    for (const hash of isSame ? hashes : []) {
      isSame = hash !== 0 && list.hashes.add(hash);
      if (!isSame) break;
      list.mark = nextMark(list.mark, hash);
      this.#hashCount++;
    }
    if (!isSame) this.#forget(id);
  }

  #forget(id: string): void {
    this.#hashCount -= this.#lists.get(id)?.hashes.count ?? 0;
    this.#lists.delete(id);
  }
}

function isNewer(one: ListedCopy, than: ListedCopy): boolean {
  if (one.nextOffset !== than.nextOffset) return one.nextOffset > than.nextOffset;
  return one.heardUs - 1000 * one.ageMs > than.heardUs - 1000 * than.ageMs;
}
