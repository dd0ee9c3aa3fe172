/**
 * The result cache of the bucketed endpoints: ready bodies by canonical key. While somebody asks for one it
 * is computed again (warmed) each time it has become warmUs old, before its end at cacheUs: a timer of
 * src/service/service.ts calls `warmDue` ten times a second, and `mayWarm` says no while the log that the
 * answer comes from is not fresh.
 *
 *   #byAsk   (oldest asked) a → b → c (just asked)       what to evict and what nobody asks for any more;
 *                                                        see CACHE_ORDER_STEP_COUNT
 *   #byWarm  (due next)     c → a → b (just computed)    what to warm
 */

import {
  CACHE_DROP_BATCH_SIZE,
  CACHE_ENTRY_OVERHEAD_BYTES,
  CACHE_ORDER_STEP_COUNT,
  WARM_BATCH_SIZE,
} from '../limits.js';

type Computed = Uint8Array | Promise<Uint8Array>;
/** Computes the body as of nowUs. */
export type Compute = (nowUs: number) => Computed;

export interface CachedAnswer {
  readonly key: string;
  readonly body: Uint8Array;
  /** The now that the body is the answer of. */
  readonly computedUs: number;
  /** The same body packed, once someone wanted it so: see addPacked. */
  readonly packed: Uint8Array | null;
}

/** One run of a compute function. */
interface Computation {
  readonly key: string;
  readonly nowUs: number;
  readonly compute: Compute;
  /** In order of their beginnings; times won't do, as the clock may be set back. */
  readonly sequence: number;
}

interface Entry extends CachedAnswer {
  readonly compute: Compute;
  readonly sequence: number;
  packed: Uint8Array | null;
  lastAskedUs: number;
  /** When it was put at its place in #byAsk. */
  placedUs: number;
  nextWarmUs: number;
  isWarming: boolean;
}

export interface CacheOptions {
  /** How long an answer may be used, and how long an answer that nobody asks for is kept. Above 0. */
  readonly cacheUs: number;
  /** How often an answer in the cache is recomputed; 0: never. */
  readonly warmUs: number;
  readonly entryLimit: number;
  readonly byteLimit: number;
  /** Answers that are due are not recomputed while it says no; their next turn comes a period later. */
  readonly mayWarm?: (key: string) => boolean;
  /** Others are handed out once and not kept. */
  readonly isKept?: (body: Uint8Array) => boolean;
  /** Nor are those of an old state. Warming with one leaves what was made of a fresh one, until its time is up. */
  readonly isOld?: (body: Uint8Array) => boolean;
  /** Told of a failed warming; the old answer stays until it is too old. */
  readonly warmingFailed: (error: unknown) => void;
}

export interface CacheFigures {
  readonly entries: number;
  readonly bytes: number;
  readonly hits: number;
  readonly misses: number;
  readonly evictions: number;
  readonly warmings: number;
}

export class ResultCache {
  readonly #options: CacheOptions;
  readonly #byAsk = new Map<string, Entry>();
  readonly #byWarm = new Map<string, Entry>();
  readonly #pending = new Map<string, Promise<CachedAnswer>>();
  /** By prefix of keys: what began before this is not kept. */
  readonly #clearedAt = new Map<string, number>();
  #sequence = 0;
  #hits = 0;
  #misses = 0;
  #heldBytes = 0;
  #evictionCount = 0;
  #warmingCount = 0;
  #runningWarmingCount = 0;

  constructor(options: CacheOptions) {
    this.#options = options;
  }

  /** The cached answer, if it may be used: a hit. */
  find(key: string, nowUs: number): CachedAnswer | null {
    const entry = this.#byAsk.get(key);
    if (entry === undefined || !this.#isUsable(entry, nowUs)) return null;
    this.#hits += 1;
    entry.lastAskedUs = nowUs;
    if (Math.abs(nowUs - entry.placedUs) >= this.#options.cacheUs / CACHE_ORDER_STEP_COUNT) {
      entry.placedUs = nowUs;
      this.#byAsk.delete(key);
      this.#byAsk.set(key, entry);
    }
    return entry;
  }

  /**
   * Drops what has keys of this prefix, and what is being computed for them. Prefixes are few, and none
   * begins another.
   */
  clear(prefix: string): void {
    this.#clearedAt.set(prefix, this.#nextSequence());
    for (const entry of [...this.#byAsk.values()]) if (entry.key.startsWith(prefix)) this.#drop(entry);
    for (const key of [...this.#pending.keys()]) if (key.startsWith(prefix)) this.#pending.delete(key);
  }

  /**
   * The cached answer, or a computed one; callers that miss the same key at the same time share one
   * computation.
   */
  get(key: string, nowUs: number, compute: Compute): CachedAnswer | Promise<CachedAnswer> {
    const held = this.find(key, nowUs);
    if (held !== null) return held;
    this.#misses += 1;
    const pending = this.#pending.get(key);
    if (pending !== undefined) return pending;
    const computed = this.refresh(key, nowUs, compute);
    if (!(computed instanceof Promise)) return computed;
    const shared: Promise<CachedAnswer> = computed.finally(() => {
      if (this.#pending.get(key) === shared) this.#pending.delete(key);
    });
    this.#pending.set(key, shared);
    return shared;
  }

  /**
   * Computes the answer again, whatever is cached, and caches it. What compute throws is thrown and not
   * cached.
   */
  refresh(key: string, nowUs: number, compute: Compute): CachedAnswer | Promise<CachedAnswer> {
    const place = { key, nowUs, compute, sequence: this.#nextSequence() };
    const computed = compute(nowUs);
    if (computed instanceof Promise) return computed.then((body) => this.#storeAsked(place, body));
    return this.#storeAsked(place, computed);
  }

  /** Keeps a packed copy of an answer beside it, if it is still in the cache. */
  addPacked(answer: CachedAnswer, packed: Uint8Array): void {
    const entry = this.#byAsk.get(answer.key);
    if (entry !== answer || entry.packed !== null) return;
    // A copy: zlib's bytes may be a part of a larger buffer, which they would keep alive.
    entry.packed = new Uint8Array(packed);
    this.#heldBytes += packed.length;
    this.#evict();
  }

  /**
   * Drops what nobody asks for any more and recomputes a few of the answers that are due: at most
   * WARM_BATCH_SIZE a call and at a time, so that requests never wait long. To be called about ten times a
   * second.
   */
  warmDue(nowUs: number): void {
    this.#dropUnasked(nowUs);
    if (this.#options.warmUs === 0) return;
    for (
      let started = 0;
      started < WARM_BATCH_SIZE && this.#runningWarmingCount < WARM_BATCH_SIZE;
      started++
    ) {
      const due = this.#byWarm.values().next().value;
      if (due === undefined || !this.#isDue(due, nowUs)) return;
      this.#postpone(due, nowUs);
      if (!due.isWarming && (this.#options.mayWarm?.(due.key) ?? true)) this.#warm(due, nowUs);
    }
  }

  figures(): CacheFigures {
    return {
      entries: this.#byAsk.size,
      bytes: this.#heldBytes,
      hits: this.#hits,
      misses: this.#misses,
      evictions: this.#evictionCount,
      warmings: this.#warmingCount,
    };
  }

  /** An answer from the future is not usable either: the clock was set back. */
  #isUsable(entry: Entry, nowUs: number): boolean {
    return entry.computedUs <= nowUs && nowUs - entry.computedUs < this.#options.cacheUs;
  }

  /** Due in more than a period is due now: the clock was set back. */
  #isDue(entry: Entry, nowUs: number): boolean {
    return entry.nextWarmUs <= nowUs || entry.nextWarmUs > nowUs + this.#options.warmUs;
  }

  #warm(entry: Entry, nowUs: number): void {
    this.#warmingCount += 1;
    const { key, compute } = entry;
    const place = { key, nowUs, compute, sequence: this.#nextSequence() };
    try {
      const computed = compute(nowUs);
      if (computed instanceof Promise) this.#finishWarming(entry, place, computed);
      else this.#storeWarmed(place, computed);
    } catch (error) {
      this.#options.warmingFailed(error);
    }
  }

  #finishWarming(entry: Entry, place: Computation, computed: Promise<Uint8Array>): void {
    entry.isWarming = true;
    this.#runningWarmingCount += 1;
    computed
      .then((body) => this.#storeWarmed(place, body))
      .catch(this.#options.warmingFailed)
      .finally(() => {
        entry.isWarming = false;
        this.#runningWarmingCount -= 1;
      });
  }

  #storeAsked(computation: Computation, body: Uint8Array): CachedAnswer {
    const entry = this.#entryOf(computation, body, {
      lastAskedUs: computation.nowUs,
      placedUs: computation.nowUs,
    });
    if (!this.#isKept(body)) {
      const previous = this.#byAsk.get(entry.key);
      if (previous !== undefined && previous.sequence < entry.sequence) this.#drop(previous);
      return entry;
    }
    if (!this.#replace(entry)) return entry;
    this.#byAsk.delete(entry.key);
    this.#byAsk.set(entry.key, entry);
    this.#evict();
    return entry;
  }

  /** Warming neither brings an entry back nor counts as asking for it. */
  #storeWarmed(computation: Computation, body: Uint8Array): void {
    const previous = this.#byAsk.get(computation.key);
    if (previous === undefined || this.#options.isOld?.(body) === true) return;
    if (!this.#isKept(body)) {
      if (previous.sequence < computation.sequence) this.#drop(previous);
      return;
    }
    const entry = this.#entryOf(computation, body, previous);
    if (!this.#replace(entry)) return;
    this.#byAsk.set(entry.key, entry);
    this.#evict();
  }

  #entryOf(
    { key, nowUs, compute, sequence }: Computation,
    body: Uint8Array,
    { lastAskedUs, placedUs }: Pick<Entry, 'lastAskedUs' | 'placedUs'>,
  ): Entry {
    return {
      key,
      body,
      computedUs: nowUs,
      sequence,
      packed: null,
      compute,
      lastAskedUs,
      placedUs,
      nextWarmUs: nowUs + this.#options.warmUs,
      isWarming: false,
    };
  }

  #isKept(body: Uint8Array): boolean {
    return this.#options.isOld?.(body) !== true && (this.#options.isKept?.(body) ?? true);
  }

  /**
   * False, and nothing done, when a computation that began later has already finished, or all was cleared
   * since it began.
   */
  #replace(entry: Entry): boolean {
    for (const [prefix, sequence] of this.#clearedAt)
      if (entry.sequence < sequence && entry.key.startsWith(prefix)) return false;
    const previous = this.#byAsk.get(entry.key);
    if (previous !== undefined && previous.sequence > entry.sequence) return false;
    this.#heldBytes += sizeOf(entry) - (previous === undefined ? 0 : sizeOf(previous));
    this.#byWarm.delete(entry.key);
    this.#byWarm.set(entry.key, entry);
    return true;
  }

  #nextSequence(): number {
    this.#sequence += 1;
    return this.#sequence;
  }

  #postpone(entry: Entry, nowUs: number): void {
    entry.nextWarmUs = nowUs + this.#options.warmUs;
    this.#byWarm.delete(entry.key);
    this.#byWarm.set(entry.key, entry);
  }

  #dropUnasked(nowUs: number): void {
    for (let dropped = 0; dropped < CACHE_DROP_BATCH_SIZE; dropped++) {
      const oldest = this.#byAsk.values().next().value;
      if (oldest === undefined) return;
      const unaskedUs = nowUs - oldest.lastAskedUs;
      // Asked for in the future: the clock was set back, and nothing can be said about the entry.
      if (unaskedUs >= 0 && unaskedUs < this.#options.cacheUs) return;
      this.#drop(oldest);
    }
  }

  /** Drops those asked for longest ago until the others take so many bytes at most. */
  trim(byteLimit: number): void {
    this.#evict(byteLimit);
  }

  #evict(byteLimit = this.#options.byteLimit): void {
    while (this.#byAsk.size > this.#options.entryLimit || this.#heldBytes > byteLimit) {
      const oldest = this.#byAsk.values().next().value;
      if (oldest === undefined) return;
      this.#drop(oldest);
      this.#evictionCount += 1;
    }
  }

  #drop(entry: Entry): void {
    this.#byAsk.delete(entry.key);
    this.#byWarm.delete(entry.key);
    this.#heldBytes -= sizeOf(entry);
  }
}

function sizeOf(entry: Entry): number {
  // The key, and the parameters that it was made of.
  const textBytes = 4 * entry.key.length;
  return entry.body.length + (entry.packed?.length ?? 0) + textBytes + CACHE_ENTRY_OVERHEAD_BYTES;
}
