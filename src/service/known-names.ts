/**
 * Names to choose from in the console: of projects, and of a project's functions. Read from what the views
 * hold anyway. There may be hundreds of thousands, so they are looked through in turns, and few lists are
 * made at a time.
 */

import { functionKey } from '../../engine/stats/bucket-key.js';
import { COUNT } from '../../engine/stats/figures.js';
import { seriesOf } from '../../engine/stats/series.js';
import type { Slot } from '../../engine/stats/slot.js';
import { Unavailable } from '../endpoints/refusal.js';
import type { NamedCount, Names } from '../http/console/console-api.js';
import { LISTS_AT_ONCE, NAMES_A_TURN } from '../limits.js';
import { longWorkTurn } from '../turns.js';
import type { Shards } from './shards.js';

const RETRY_SECONDS = 1;

export class KnownNames implements Names {
  readonly #shards: Shards;
  readonly #yieldTurn: () => Promise<void>;
  /** Lists that are being made, by what they are of: who asks for the same gets the same. */
  readonly #underWay = new Map<string, Promise<unknown>>();

  constructor(shards: Shards, yieldTurn: () => Promise<void> = () => longWorkTurn('names')) {
    this.#shards = shards;
    this.#yieldTurn = yieldTurn;
  }

  /** Projects with logs, up to a limit: those with most rows of the last hours first. */
  projects(nowUs: number, limit: number): Promise<readonly string[]> {
    return this.#once('projects', () => this.#projects(nowUs, limit));
  }

  /** Functions that a project called in the last seven days, up to a limit, most called first. */
  functions(project: string, nowUs: number, limit: number): Promise<readonly NamedCount[]> {
    return this.#once(`functions of ${project}`, () => this.#functions(project, nowUs, limit));
  }

  /** Throws Unavailable while enough others are made. */
  #once<T>(name: string, make: () => Promise<T>): Promise<T> {
    const underWay = this.#underWay.get(name) as Promise<T> | undefined;
    if (underWay !== undefined) return underWay;
    if (this.#underWay.size >= LISTS_AT_ONCE)
      throw new Unavailable('other lists are being made', RETRY_SECONDS);
    const made = make().finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, made);
    return made;
  }

  async #projects(nowUs: number, limit: number): Promise<string[]> {
    const { edge } = this.#shards;
    const rowCounts = new Map<string, number>();
    for (const { rows } of edge)
      for (const run of rows.freshRuns())
        for (const [project, { count }] of run.projects())
          rowCounts.set(project, (rowCounts.get(project) ?? 0) + count);
    const names = new Set((await this.#largest(rowCounts, limit)).map(([project]) => project));
    for (const { rows } of edge) {
      for (const project of rows.sortedProjects()) {
        if (names.size >= limit) return [...names];
        names.add(project);
      }
    }
    await this.#eachBucket(nowUs, (slot, bucket) => {
      const key = slot.keyOf(bucket);
      if (key.startsWith(':')) names.add(key.slice(1));
      return names.size < limit;
    });
    return [...names];
  }

  async #functions(project: string, nowUs: number, limit: number): Promise<NamedCount[]> {
    const prefix = functionKey(project, '');
    const counts = new Map<string, number>();
    await this.#eachBucket(nowUs, (slot, bucket) => {
      const key = slot.keyOf(bucket);
      // An empty id can't be asked for: it stands for all functions.
      if (key.length > prefix.length && key.startsWith(prefix)) {
        const id = key.slice(prefix.length);
        counts.set(id, (counts.get(id) ?? 0) + slot.figures[slot.rowOf(bucket) + COUNT]);
      }
      return true;
    });
    return (await this.#largest(counts, limit)).map(([id, count]) => ({ id, count }));
  }

  /** All buckets of the last days' statistics, newest day first, until `visit` returns false. */
  async #eachBucket(nowUs: number, visit: (slot: Slot, bucket: number) => boolean): Promise<void> {
    const { level, firstSlot, lastSlot } = seriesOf('7day', nowUs);
    let visitCount = 0;
    for (const { stats } of [...this.#shards.relay]) {
      for (let index = lastSlot; index >= firstSlot; index--) {
        let slot = stats.slotAt(level, index);
        for (let bucket = 0; slot !== null && bucket < slot.bucketCount; bucket++) {
          if (!visit(slot, bucket)) return;
          if (++visitCount % NAMES_A_TURN > 0) continue;
          await this.#yieldTurn();
          // It may have expired, and another day be in its place.
          slot = stats.slotAt(level, index);
        }
      }
    }
  }

  /** The largest counts, up to a limit, largest first. */
  async #largest(counts: ReadonlyMap<string, number>, limit: number): Promise<[string, number][]> {
    const cut = (some: [string, number][]) => some.sort(([, a], [, b]) => b - a).slice(0, limit);
    let largest: [string, number][] = [];
    let visitCount = 0;
    for (const entry of counts) {
      largest.push(entry);
      if (++visitCount % NAMES_A_TURN > 0) continue;
      largest = cut(largest);
      await this.#yieldTurn();
    }
    return cut(largest);
  }
}
