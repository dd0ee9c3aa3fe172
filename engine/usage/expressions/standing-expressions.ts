/**
 * The expressions that were asked for and stay: each with its matches per part. Literals are kept up to date
 * entry by entry; other expressions are brought up to date when they are asked for again. Bounded in number
 * and memory: the least recently asked go first, and idle ones go with time.
 */

import { STANDING_IDLE_US } from '../../limits.js';
import type { CountedMatches } from '../api-counts.js';
import { FreshMatches } from '../fresh/fresh-matches.js';
import type { FreshPart } from '../fresh/fresh-part.js';
import { NONE, SealedMatches } from '../sealed/sealed-matches.js';
import type { SealedPart } from '../sealed/sealed-part.js';
import { LiteralIndex } from './literal-index.js';
import { MatchMemory } from './match-list.js';

const encoder = new TextEncoder();

/**
 * Whether an expression has no character with a meaning of its own in RE2's syntax: it is then searched as
 * it is.
 */
export function isLiteral(expression: string): boolean {
  return !/[\\.+*?()|[\]{}^$]/.test(expression);
}

/** The expression that finds a text as it is. */
export function literally(text: string): string {
  return text.replace(/[\\.+*?()|[\]{}^$]/g, '\\$&');
}

/**
 * What an expression takes up beside its text: the object, its map, its places in others; measured roughly,
 * meant for the memory bound.
 */
const OVERHEAD_BYTES = 800;

export class StandingExpression {
  readonly expression: string;
  /** The UTF-8 bytes of a literal, else null. */
  readonly literal: Uint8Array | null;
  /** See FreshPart.sequence. */
  readonly sequence: number;
  lastAskedUs: number;
  /** Whether it is known to be a valid expression. */
  accepted: boolean;
  /** How many evaluations are under way: it is not dropped meanwhile. */
  evaluationCount = 0;
  /**
   * By sequence of the part. A literal has none for a part younger than itself: then all is known, and
   * nothing matches yet.
   */
  readonly matches = new Map<number, FreshMatches | SealedMatches>();

  constructor(expression: string, sequence: number, nowUs: number) {
    this.expression = expression;
    this.literal = isLiteral(expression) ? encoder.encode(expression) : null;
    this.accepted = this.literal !== null;
    this.sequence = sequence;
    this.lastAskedUs = nowUs;
  }

  /** Without its matches. */
  get heldBytes(): number {
    return OVERHEAD_BYTES + 2 * this.expression.length + (this.literal?.length ?? 0);
  }
}

export interface StandingLimits {
  readonly expressionCount: number;
  readonly matchBytes: number;
}

export class StandingExpressions {
  readonly memory = new MatchMemory();
  readonly #limits: StandingLimits;
  readonly #literals = new LiteralIndex<StandingExpression>();
  /** In order of the last ask, the latest at the end. */
  readonly #byExpression = new Map<string, StandingExpression>();

  constructor(limits: StandingLimits) {
    this.#limits = limits;
  }

  get count(): number {
    return this.#byExpression.size;
  }

  /** The expression, made standing by `create` if it is not; it is now the latest asked. */
  ask(expression: string, nowUs: number, create: () => StandingExpression): StandingExpression {
    const known = this.#byExpression.get(expression);
    if (known !== undefined) {
      known.lastAskedUs = nowUs;
      this.#byExpression.delete(expression);
      this.#byExpression.set(expression, known);
      return known;
    }
    const standing = create();
    this.memory.heldBytes += standing.heldBytes;
    this.#byExpression.set(expression, standing);
    if (standing.literal !== null) this.#literals.add(standing.literal, standing);
    this.trim();
    return standing;
  }

  /** The expression, if it stands. */
  find(expression: string): StandingExpression | undefined {
    return this.#byExpression.get(expression);
  }

  /** The matches among all entries of a part; null when some are still to be evaluated. */
  wholeMatches(standing: StandingExpression, part: FreshPart | SealedPart): CountedMatches | null {
    const known = standing.matches.get(part.sequence);
    if (known === undefined) return isKnownToHaveNone(standing, part) ? NONE : null;
    if (known instanceof SealedMatches) return known.isComplete ? known.list : null;
    const entryCount = part.kind === 'fresh' ? part.entries.count : part.summary.entryCount;
    return known.live || known.foldedEntries === entryCount ? known.list : null;
  }

  /**
   * What is known of an expression over a fresh part; null when the part is younger and holds no match of a
   * literal.
   */
  matchesOfFresh(standing: StandingExpression, part: FreshPart): FreshMatches | null {
    const known = standing.matches.get(part.sequence);
    if (known instanceof FreshMatches) return known;
    if (isKnownToHaveNone(standing, part)) return null;
    const matches = new FreshMatches(this.memory);
    standing.matches.set(part.sequence, matches);
    return matches;
  }

  /**
   * The same of a sealed part. What was known whole of it while it was fresh stays; what was known in part
   * doesn't, as its URLs have other places now.
   */
  matchesOfSealed(standing: StandingExpression, part: SealedPart): FreshMatches | SealedMatches | null {
    const known = standing.matches.get(part.sequence);
    if (known instanceof SealedMatches || known?.foldedEntries === part.summary.entryCount || known?.live)
      return known;
    if (known === undefined && isKnownToHaveNone(standing, part)) return null;
    known?.release();
    const matches = new SealedMatches(this.memory);
    standing.matches.set(part.sequence, matches);
    return matches;
  }

  /** Adds an entry to the live matches of all literals that its URL contains. */
  note(part: FreshPart, offsetUs: number, areas: number, url: Uint8Array): void {
    const hitCount = this.#literals.match(url, url.length);
    for (let i = 0; i < hitCount; i++) {
      const standing = this.#literals.hits[i];
      let matches = standing.matches.get(part.sequence);
      if (matches === undefined) {
        if (part.sequence < standing.sequence) continue;
        matches = new FreshMatches(this.memory);
        matches.goLive();
        standing.matches.set(part.sequence, matches);
      }
      if (matches instanceof FreshMatches && matches.live) matches.list.insert(offsetUs, areas);
    }
  }

  forgetPart(sequence: number): void {
    for (const standing of this.#byExpression.values()) {
      standing.matches.get(sequence)?.release();
      standing.matches.delete(sequence);
    }
  }

  /** Drops what was not asked for lately. */
  expire(nowUs: number): void {
    for (const standing of this.#byExpression.values()) {
      if (standing.lastAskedUs <= nowUs - STANDING_IDLE_US && standing.evaluationCount === 0)
        this.drop(standing);
    }
    this.trim();
  }

  /**
   * Keeps within the limits. What is being worked on stays, and so does the latest asked, whatever it takes. Returns whether
   * all of it takes no more memory than it may.
   */
  trim(): boolean {
    this.#dropOldest(this.#limits.matchBytes, 1);
    return this.memory.heldBytes <= this.#limits.matchBytes;
  }

  /** Drops all but so many bytes, of the expression asked last too. */
  spill(matchBytes: number): void {
    this.#dropOldest(matchBytes, 0);
  }

  #dropOldest(matchBytes: number, keptCount: number): void {
    let left = this.#byExpression.size;
    for (const standing of this.#byExpression.values()) {
      const withinLimits =
        this.#byExpression.size <= this.#limits.expressionCount && this.memory.heldBytes <= matchBytes;
      left -= 1;
      if (withinLimits || left < keptCount) return;
      if (standing.evaluationCount === 0) this.drop(standing);
    }
  }

  drop(standing: StandingExpression): void {
    if (this.#byExpression.get(standing.expression) !== standing) return;
    this.#byExpression.delete(standing.expression);
    this.memory.heldBytes -= standing.heldBytes;
    if (standing.literal !== null) this.#literals.remove(standing.literal, standing);
    for (const matches of standing.matches.values()) matches.release();
    standing.matches.clear();
  }
}

/** A literal takes note of all entries of parts younger than itself. */
function isKnownToHaveNone(
  { literal, sequence }: StandingExpression,
  part: { readonly sequence: number },
): boolean {
  return literal !== null && part.sequence > sequence;
}
