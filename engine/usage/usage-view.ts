/**
 * The state behind `usage.api-counts` within one shard: hours over seven days, each in parts, and standing
 * expressions.
 *
 *   hour 17   sealed │ sealed │ fresh       late entries begin another fresh part
 *   hour 18   sealed │ frozen │ open        a part is frozen when it is large, when its hour is over, or because memory is short;
 *                                           a frozen one is sealed by the one who asks for the plan, off this thread
 */

import { assert } from '../assert.js';
import type { EdgeEntry } from '../entry.js';
import {
  SPILLED_MATCH_BYTES,
  STANDING_EXPRESSION_LIMIT,
  STANDING_MATCH_BYTES,
  USAGE_FRESH_BYTES,
  USAGE_PART_BYTES,
  USAGE_SEAL_FROM_BYTES,
  USAGE_SPILL_FROM_BYTES,
} from '../limits.js';
import type { SegmentReader, SegmentWriter } from '../segments.js';
import { slotIndex, US_PER_HOUR } from '../time.js';
import type { FigureLine, MemoryPressure, View } from '../view.js';
import { USAGE_RETENTION_US } from './api-counts.js';
import {
  StandingExpression,
  StandingExpressions,
  type StandingLimits,
} from './expressions/standing-expressions.js';
import { FreshPart } from './fresh/fresh-part.js';
import { USAGE } from './kind.js';
import type { SealPlan } from './sealed/seal.js';
import { type PartSummary, partFile, SealedPart } from './sealed/sealed-part.js';
import { StoredParts } from './stored-parts.js';

export type UsagePart = FreshPart | SealedPart;

export interface UsageLimits extends StandingLimits {
  /** Of entries and URLs that are not sealed; see spill(). */
  readonly freshBytes: number;
  /** Content from which a part is sealed. */
  readonly partBytes: number;
  /** Content from which a part is sealed once its hour is over. */
  readonly sealFromBytes: number;
  /** Content from which a part is sealed because memory is short. */
  readonly spillFromBytes: number;
}

const USUAL_LIMITS: UsageLimits = {
  expressionCount: STANDING_EXPRESSION_LIMIT,
  matchBytes: STANDING_MATCH_BYTES,
  freshBytes: USAGE_FRESH_BYTES,
  partBytes: USAGE_PART_BYTES,
  sealFromBytes: USAGE_SEAL_FROM_BYTES,
  spillFromBytes: USAGE_SPILL_FROM_BYTES,
};

export class UsageView implements View<EdgeEntry> {
  readonly kind = USAGE;
  readonly standing: StandingExpressions;
  readonly #limits: UsageLimits;
  /** By sequence. */
  readonly #parts = new Map<number, UsagePart>();
  /** The part of an hour that takes its entries, by hour index. */
  readonly #open = new Map<number, FreshPart>();
  /** To be sealed, in the order of freezing. */
  readonly #frozen = new Set<FreshPart>();
  readonly #stored = new StoredParts();
  #sealing: FreshPart | null = null;
  #lastSequence = 0;
  #nextPartIndex = 0;
  #latest: FreshPart | null = null;

  constructor(limits: Partial<UsageLimits> = {}) {
    this.#limits = { ...USUAL_LIMITS, ...limits };
    this.standing = new StandingExpressions(this.#limits);
  }

  apply(entry: EdgeEntry): void {
    if (entry.url === null) return;
    const hourIndex = slotIndex(entry.timestampUs, US_PER_HOUR);
    let part = this.#latest;
    if (part === null || part.name.hourIndex !== hourIndex) {
      part = this.#openPart(hourIndex);
      this.#latest = part;
    }
    this.#stored.changed(part);
    const offsetUs = entry.timestampUs - part.startUs;
    part.add(offsetUs, entry.areas, entry.url);
    this.standing.note(part, offsetUs, entry.areas, entry.url);
    if (part.contentBytes >= this.#limits.partBytes) this.#freeze(part);
  }

  expire(nowUs: number, trustedUs = nowUs): boolean {
    const busyHour = slotIndex(nowUs, US_PER_HOUR) - 1;
    for (const part of this.#parts.values()) {
      if (part.endUs <= trustedUs - USAGE_RETENTION_US) this.#expirePart(part);
      else if (part.kind === 'fresh' && part.name.hourIndex < busyHour && !this.#frozen.has(part)) {
        part.trim();
        if (part.contentBytes >= this.#limits.sealFromBytes) this.#freeze(part);
      }
    }
    this.standing.expire(nowUs);
    return false;
  }

  /** O(parts + their blocks). */
  get heldBytes(): number {
    return this.freshBytes + this.standing.memory.heldBytes;
  }

  /** Memory of entries and URLs; O(parts + their blocks). */
  get freshBytes(): number {
    let heldBytes = 0;
    for (const part of this.#parts.values()) if (part.kind === 'fresh') heldBytes += part.heldBytes;
    return heldBytes;
  }

  /**
   * Has the largest part sealed next, whatever its hour, unless others wait for it or none is worth a file;
   * and lets go of matches, which can be found again.
   */
  spill({ keptBytes }: Pick<MemoryPressure, 'keptBytes'> = { keptBytes: SPILLED_MATCH_BYTES }): boolean {
    this.standing.spill(Math.min(keptBytes, SPILLED_MATCH_BYTES));
    return this.#frozen.size > 0 || this.#freezeLargest();
  }

  /**
   * What is to be sealed next, if anything. One of the two methods below ends it, before another is asked
   * for.
   */
  planSeal(): SealPlan | null {
    assert(this.#sealing === null, 'a part is sealed while another is');
    if (this.#frozen.size === 0 && this.freshBytes > this.#limits.freshBytes) this.#freezeLargest();
    for (const part of this.#frozen) {
      this.#sealing = part;
      return part.sealPlan();
    }
    return null;
  }

  /** The file is there: from now on it is read instead of the memory, and counts with the next save. */
  finishSeal({ name }: SealPlan, summary: PartSummary): void {
    const fresh = this.#endSealing();
    if (!this.#frozen.delete(fresh)) {
      // It expired meanwhile.
      this.#stored.unwanted(partFile(name));
      return;
    }
    const part = new SealedPart(name, fresh.sequence, summary);
    this.#parts.set(part.sequence, part);
    this.#stored.sealed(fresh, part);
  }

  /** There is no file, and the plan may be made again. */
  dropSeal(): void {
    this.#endSealing();
  }

  get hasUnsaved(): boolean {
    return this.#stored.hasUnsaved;
  }

  save(writer: SegmentWriter): void {
    this.#stored.save(writer);
  }

  *load(reader: SegmentReader): Generator<void, void> {
    assert(this.#parts.size === 0, 'a usage view is loaded only while it is empty');
    const nextSequence = () => this.#nextSequence();
    yield* this.#stored.load(reader, nextSequence, (part) => {
      this.#parts.set(part.sequence, part);
      const { hourIndex, partIndex } = part.name;
      this.#nextPartIndex = Math.max(this.#nextPartIndex, partIndex + 1);
      if (part.kind === 'sealed') return;
      // An hour has several that are not sealed when they were frozen: all but the last still are.
      const earlier = this.#open.get(hourIndex);
      if (earlier !== undefined) this.#freeze(earlier);
      this.#open.set(hourIndex, part);
    });
    for (const part of this.#open.values()) part.trim();
  }

  parts(): IterableIterator<UsagePart> {
    return this.#parts.values();
  }

  /** Makes an expression stand, or notes that it was asked for again. */
  ask(expression: string, nowUs: number): StandingExpression {
    return this.standing.ask(expression, nowUs, () => {
      return new StandingExpression(expression, this.#nextSequence(), nowUs);
    });
  }

  /** O(parts + their blocks). Of URLs, one that comes again after very many others, or a restart, may count twice. */
  figures(): FigureLine[] {
    let entryCount = 0;
    let urlCount = 0;
    for (const part of this.#parts.values()) {
      entryCount += part.kind === 'fresh' ? part.entries.count : part.summary.entryCount;
      urlCount += part.kind === 'fresh' ? part.urls.count : part.summary.urlCount;
    }
    return [{ label: null, values: [entryCount, urlCount, this.standing.count] }];
  }

  #openPart(hourIndex: number): FreshPart {
    const known = this.#open.get(hourIndex);
    if (known !== undefined) return known;
    assert(hourIndex >= 0, 'an edge entry lies before 1970');
    const part = new FreshPart({ hourIndex, partIndex: this.#nextPartIndex++ }, this.#nextSequence());
    this.#parts.set(part.sequence, part);
    this.#open.set(hourIndex, part);
    return part;
  }

  #freezeLargest(): boolean {
    let largest: FreshPart | null = null;
    for (const part of this.#open.values()) {
      if (largest === null || part.contentBytes > largest.contentBytes) largest = part;
    }
    if (largest === null || largest.contentBytes < this.#limits.spillFromBytes) return false;
    this.#freeze(largest);
    return true;
  }

  #freeze(part: FreshPart): void {
    this.#open.delete(part.name.hourIndex);
    if (this.#latest === part) this.#latest = null;
    part.trim();
    this.#frozen.add(part);
  }

  #expirePart(part: UsagePart): void {
    this.#parts.delete(part.sequence);
    this.standing.forgetPart(part.sequence);
    this.#stored.expired(part);
    if (part.kind === 'sealed') return;
    if (!this.#frozen.delete(part)) this.#open.delete(part.name.hourIndex);
    if (this.#latest === part) this.#latest = null;
  }

  #endSealing(): FreshPart {
    const part = this.#sealing;
    assert(part !== null, 'a seal ends that was not begun');
    this.#sealing = null;
    return part;
  }

  #nextSequence(): number {
    this.#lastSequence += 1;
    return this.#lastSequence;
  }
}
