/**
 * Where rows come from several processes, each of which sent only as many as are likely to be needed: whether that was
 * enough, and what to ask for where it was not.
 */

import { LOG_ROW_LIMIT } from '../limits.js';
import type { Lacking } from '../partial-format.js';
import {
  type CameRows,
  comparePlaces,
  type LogsPartial,
  NewestRows,
  type Place,
  type ReadRow,
} from './partial.js';

/** Projects of which it is known what the last questions needed. More: memory, a name each. */
const KNOWN_PROJECTS = 1024;
/**
 * Rows that are asked for beyond what was needed, and that a question with fewer forgets of it. More: more rows come in
 * vain; fewer: more questions take a second request.
 */
const SPARE_ROWS = 2;
const FORGOTTEN_ROWS = 0.5;

/**
 * null when all that are needed have come. `unseenBytes`: so much of bodies may be asked for before it is known which
 * are needed. `note` is told, once that is known, of the most that are needed of a process. Throws as mergeLogs does.
 */
export function lackingRows(
  partials: readonly LogsPartial[],
  unseenBytes: number,
  note: (mostNeeded: number) => void = () => undefined,
): Lacking | null {
  const isAllHere = ({ rows, bodyCount, hasMore }: CameRows) => bodyCount === rows.length && !hasMore;
  if (partials.every(({ came }) => came === undefined || isAllHere(came))) return null;
  const lists = partials.map(({ sources, came }) =>
    came === undefined ? new Places([], new NewestRows(sources)) : new Places(came.rows, null),
  );
  const isMore = partials.map(({ came }) => came?.hasMore === true);
  const needed = neededOf(lists, isMore);
  // The next one of such a list may belong to the answer too, and then others go on further than was seen.
  if (isMore.some((more, i) => more && lists[i].at(needed[i]) === undefined)) {
    const all = { count: LOG_ROW_LIMIT, byteLimit: unseenBytes };
    return { details: isMore.map((more) => (more ? all : null)), byteCount: 0 };
  }
  note(partials.reduce((most, { came }, i) => (came === undefined ? most : Math.max(most, needed[i])), 0));
  let byteCount = 0;
  const details = partials.map(({ came }, i) => {
    if (came === undefined || needed[i] <= came.bodyCount) return null;
    // Meanwhile newer ones may have come, which are then needed too.
    const { rows, bodyCount } = came;
    const bytesOf = (some: readonly ReadRow[]) => some.reduce((sum, { length }) => sum + length, 0);
    const asked = rows.slice(0, needed[i] + Math.ceil(Math.sqrt(needed[i])));
    byteCount += bytesOf(asked.slice(bodyCount));
    return { count: LOG_ROW_LIMIT, byteLimit: bytesOf(asked) };
  });
  return details.some((detail) => detail !== null) ? { details, byteCount } : null;
}

/**
 * How many of each list are among the newest LOG_ROW_LIMIT of all, as far as that can be told; each list is in order,
 * newest first, and those with `isMore` go on.
 */
function neededOf(lists: readonly Places[], isMore: readonly boolean[]): number[] {
  const needed = lists.map(() => 0);
  let last: Place | null = null;
  for (let taken = 0; taken < LOG_ROW_LIMIT; taken++) {
    let newest = -1;
    let newestPlace: Place | null = null;
    for (let i = 0; i < lists.length; i++) {
      const place = lists[i].at(needed[i]);
      if (place === undefined) {
        if (isMore[i]) return needed;
      } else if (newestPlace === null || comparePlaces(place, newestPlace) > 0) {
        newest = i;
        newestPlace = place;
      }
    }
    if (newestPlace === null) return needed;
    last = newestPlace;
    needed[newest]++;
  }
  // Rows of one place are told apart by their bodies, so all of the last one's are needed.
  for (const [i, places] of lists.entries())
    while (needed[i] < LOG_ROW_LIMIT) {
      const next = places.at(needed[i]);
      if (next === undefined || comparePlaces(next, last!) !== 0) break;
      needed[i]++;
    }
  return needed;
}

/**
 * Newest first: those that came, or of this process, of which each that is looked at costs. One class for both, as a call on
 * either of two would be looked up each time.
 */
class Places {
  readonly #seen: Place[];
  /** Those behind `#seen`; null: there are none. */
  readonly #rest: NewestRows | null;

  constructor(seen: readonly Place[], rest: NewestRows | null) {
    this.#seen = [...seen];
    this.#rest = rest;
  }

  /** undefined behind the last one. `index`: at most one behind those that were asked for. Throws as mergeLogs does. */
  at(index: number): Place | undefined {
    if (index < this.#seen.length) return this.#seen[index];
    const row = this.#rest?.next() ?? null;
    if (row === null) return undefined;
    this.#seen.push({ timeUs: row.timeUs, idHash: row.idHash });
    return this.#seen[index];
  }
}

/** How many rows to ask each process for, by how many the last questions of a project needed. */
export class LikelyRows {
  /** By project, the one asked about longest ago first. */
  readonly #needed = new Map<string, number>();

  note(project: string, mostNeeded: number): void {
    const before = this.#needed.get(project) ?? 0;
    this.#needed.delete(project);
    this.#needed.set(project, Math.max(mostNeeded, before - FORGOTTEN_ROWS));
    if (this.#needed.size <= KNOWN_PROJECTS) return;
    const [oldest] = this.#needed.keys();
    this.#needed.delete(oldest);
  }

  count(project: string, processCount: number): number {
    const needed = this.#needed.get(project);
    if (needed === undefined) return likelyRowCount(processCount);
    return Math.min(LOG_ROW_LIMIT, Math.ceil(needed) + SPARE_ROWS);
  }
}

/** Of so many processes that have about the same share of them. */
export function likelyRowCount(processCount: number): number {
  const share = LOG_ROW_LIMIT / processCount;
  return Math.min(LOG_ROW_LIMIT, Math.ceil(share + 3 * Math.sqrt(share)));
}
