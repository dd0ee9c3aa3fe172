/**
 * The expressions that were asked for and stay: each with its matches per partition. Literals are kept up to date entry
 * by entry; other expressions are brought up to date when they are asked for again. Bounded in number and memory: the
 * least recently asked go first, and idle ones go with time.
 */

import { STANDING_IDLE_US } from '../limits.js';
import { LiteralIndex } from './literal-index.js';
import { MatchMemory } from './match-list.js';
import { PartitionMatches } from './partition-matches.js';
import type { UsagePartition } from './usage-partition.js';

const encoder = new TextEncoder();

/** Whether an expression has no character with a meaning of its own in RE2's dialect: it is then searched as it is. */
export function isLiteral(expression: string): boolean {
  return !/[\\.+*?()|[\]{}^$]/.test(expression);
}

export class StandingExpression {
  readonly expression: string;
  /** The UTF-8 bytes of a literal, else null. */
  readonly literal: Uint8Array | null;
  /** See UsagePartition.birth. */
  readonly birth: number;
  lastAskedUs: number;
  /** Whether it is known to be a valid expression. */
  accepted: boolean;
  /** How many rounds are working on it: it is not dropped meanwhile. */
  roundCount = 0;
  /** By hour index. None for a partition younger than this expression: then all is known, and nothing matches yet. */
  readonly matches = new Map<number, PartitionMatches>();

  constructor(expression: string, birth: number, nowUs: number) {
    this.expression = expression;
    this.literal = isLiteral(expression) ? encoder.encode(expression) : null;
    this.accepted = this.literal !== null;
    this.birth = birth;
    this.lastAskedUs = nowUs;
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
    this.#byExpression.set(expression, standing);
    if (standing.literal !== null) this.#literals.add(standing.literal, standing);
    this.trim();
    return standing;
  }

  /** What is known of an expression over a partition; null when it is younger and holds no match of a literal. */
  matchesOf(standing: StandingExpression, partition: UsagePartition): PartitionMatches | null {
    const known = standing.matches.get(partition.hourIndex);
    if (known !== undefined) return known;
    if (standing.literal !== null && partition.birth > standing.birth) return null;
    const matches = new PartitionMatches(this.memory);
    standing.matches.set(partition.hourIndex, matches);
    return matches;
  }

  /** Adds an entry to the live matches of all literals that its URL contains. */
  note(partition: UsagePartition, offsetUs: number, areas: number, url: Uint8Array): void {
    const hitCount = this.#literals.match(url, url.length);
    for (let i = 0; i < hitCount; i++) {
      const standing = this.#literals.hits[i];
      let matches = standing.matches.get(partition.hourIndex);
      if (matches === undefined) {
        if (partition.birth < standing.birth) continue;
        matches = new PartitionMatches(this.memory);
        matches.goLive();
        standing.matches.set(partition.hourIndex, matches);
      }
      if (matches.live) matches.list.insert(offsetUs, areas);
    }
  }

  forgetPartition(hourIndex: number): void {
    for (const standing of this.#byExpression.values()) {
      standing.matches.get(hourIndex)?.release();
      standing.matches.delete(hourIndex);
    }
  }

  /** Drops what was not asked for lately. */
  expire(nowUs: number): void {
    for (const standing of this.#byExpression.values()) {
      if (standing.lastAskedUs <= nowUs - STANDING_IDLE_US && standing.roundCount === 0) this.drop(standing);
    }
    this.trim();
  }

  /** Keeps within the limits. What is being worked on stays, and so does the latest asked, whatever it takes. */
  trim(): void {
    let left = this.#byExpression.size;
    for (const standing of this.#byExpression.values()) {
      const withinLimits =
        this.#byExpression.size <= this.#limits.expressionCount &&
        this.memory.heldBytes <= this.#limits.matchBytes;
      left -= 1;
      if (withinLimits || left === 0) return;
      if (standing.roundCount === 0) this.drop(standing);
    }
  }

  drop(standing: StandingExpression): void {
    if (this.#byExpression.get(standing.expression) !== standing) return;
    this.#byExpression.delete(standing.expression);
    if (standing.literal !== null) this.#literals.remove(standing.literal, standing);
    for (const matches of standing.matches.values()) matches.release();
    standing.matches.clear();
  }
}
