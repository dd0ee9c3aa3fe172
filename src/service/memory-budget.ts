/**
 * Keeps what the process holds within LOGRING_MEMORY_BUDGET_MB: each part counts its own; towards the
 * budget's end the block cache gives way, then what can be spilled is, and last ingest pauses until there is
 * room again. Nothing is dropped.
 *
 *   0                             0.65      3/4       0.85      0.9         1   of the budget, without the cache
 *   │                              │         │ spill    │ go on   │ pause    │
 *   │ cache: 1/4 at most ───────── shrinks ── to ──── nothing ──▶│          │   what comes in between two looks
 *   │ bodies and large answers: what is left up to the pause ────▶│          │
 *
 * Where bodies and answers bring it to 0.98, ingest pauses for them too.
 */

import { COMPACTION_CHUNK_BYTES } from '../../engine/limits.js';
import type { Config } from '../config.js';
import { MemoryRoom } from '../http/memory-room.js';
import {
  CACHE_SHARE,
  COMPACTION_SHARE,
  FULL_SHARE,
  HEAP_GROWING_PERCENT,
  LONE_SHARE,
  PAUSE_SHARE,
  RESUME_SHARE,
  SPILL_SHARE,
} from '../limits.js';
import type { IngestGate } from './ingest-gate.js';

const MEBIBYTE = 1024 * 1024;
/** Parts that the reason of a pause names, the largest first. */
const NAMED_PARTS = 3;

export function budgetBytesOf({ MEMORY_BUDGET_MB }: Pick<Config, 'MEMORY_BUDGET_MB'>): number {
  return MEMORY_BUDGET_MB * MEBIBYTE;
}

/** Requests have what is left up to the pause. */
export function memoryRoomOf(budgetBytes: number): MemoryRoom {
  return new MemoryRoom(PAUSE_SHARE * budgetBytes, {
    limitBytes: LONE_SHARE * budgetBytes,
    roomyBytes: SPILL_SHARE * budgetBytes,
  });
}

/** See HEAP_GROWING_PERCENT. */
export function heapGrowingPercent({ MEMORY_BUDGET_MB }: Pick<Config, 'MEMORY_BUDGET_MB'>): number {
  const { least, most, ofBudgetMb } = HEAP_GROWING_PERCENT;
  return Math.round(Math.min(most, Math.max(least, ofBudgetMb * MEMORY_BUDGET_MB)));
}

/** What a compaction may sort in memory at a time. */
export function compactionBytesOf(config: Pick<Config, 'MEMORY_BUDGET_MB'>): number {
  return Math.min(COMPACTION_CHUNK_BYTES, COMPACTION_SHARE * budgetBytesOf(config));
}

export interface MemoryPart {
  readonly name: string;
  /** It waits to be applied, so that only ingest frees it. */
  readonly isUnapplied?: boolean;
  heldBytes(): number;
}

export interface MemoryBudgetPorts {
  readonly budgetBytes: number;
  readonly gate: IngestGate;
  /** Counted apart: it has what the other parts leave. */
  readonly cache: { readonly heldBytes: number; limit(capacityBytes: number): void };
  readonly parts: readonly MemoryPart[];
  /** What requests hold, which is among the parts. */
  readonly room: MemoryRoom;
  /**
   * Asks the parts to free what need not be in memory, near a pause also what is soon needed again; they may
   * take their time.
   */
  readonly spill: (isNearPause: boolean) => void;
}

export class MemoryBudget {
  readonly #ports: MemoryBudgetPorts;
  #heldBytes = 0;
  /** Without what requests hold and what waits to be applied. */
  #isFull = false;

  constructor(ports: MemoryBudgetPorts) {
    this.#ports = ports;
    ports.room.tell((heldBytes) => this.#limitCache(heldBytes));
  }

  get budgetBytes(): number {
    return this.#ports.budgetBytes;
  }

  /** To be called every MEMORY_CHECK_MS. Costs what counting costs. */
  check(): void {
    const { budgetBytes, gate, parts, room, spill } = this.#ports;
    this.#heldBytes = parts.reduce((sum, part) => sum + part.heldBytes(), 0);
    this.#limitCache(this.#heldBytes);
    const othersBytes = this.#heldBytes - room.takenBytes;
    const wantedBytes = this.#heldBytes + room.noteOthers(othersBytes);
    if (wantedBytes >= SPILL_SHARE * budgetBytes) spill(wantedBytes >= RESUME_SHARE * budgetBytes);
    const unappliedBytes = parts.reduce((sum, part) => sum + (part.isUnapplied ? part.heldBytes() : 0), 0);
    const stateBytes = othersBytes - unappliedBytes;
    // What requests hold goes by itself, and what waits to be applied goes only if ingest is not paused.
    if (stateBytes >= PAUSE_SHARE * budgetBytes) this.#isFull = true;
    else if (stateBytes < RESUME_SHARE * budgetBytes) this.#isFull = false;
    const countedBytes = this.#heldBytes - unappliedBytes;
    if (this.#isFull || countedBytes >= FULL_SHARE * budgetBytes)
      gate.close('memory', this.#reason(countedBytes));
    else gate.open('memory');
  }

  /** Says which budget is enough for what is held once the store is loaded; null where this one is. */
  shortfall(): string | null {
    const { budgetBytes, parts } = this.#ports;
    const heldBytes = parts.reduce((sum, part) => sum + part.heldBytes(), 0);
    if (heldBytes < PAUSE_SHARE * budgetBytes) return null;
    const neededMb = Math.ceil(heldBytes / SPILL_SHARE / MEBIBYTE);
    return `LOGRING_MEMORY_BUDGET_MB=${budgetBytes / MEBIBYTE} is too small for what is stored: ${Math.round(heldBytes / MEBIBYTE)} MiB are held after the start, so ingest is paused; if it stays paused, set ${neededMb}`;
  }

  /** What each part holds now, the cache among them. */
  readings(): readonly { readonly part: string; readonly bytes: number }[] {
    const { cache, parts } = this.#ports;
    const readings = parts.map((part) => ({ part: part.name, bytes: part.heldBytes() }));
    return [...readings, { part: 'block-cache', bytes: cache.heldBytes }];
  }

  #limitCache(heldBytes: number): void {
    const { budgetBytes, cache } = this.#ports;
    cache.limit(Math.min(CACHE_SHARE * budgetBytes, Math.max(0, PAUSE_SHARE * budgetBytes - heldBytes)));
  }

  /** In MiB. */
  #largestParts(): string {
    return this.#ports.parts
      .filter(({ isUnapplied }) => isUnapplied !== true)
      .map((part) => ({ name: part.name, mib: Math.round(part.heldBytes() / MEBIBYTE) }))
      .sort((a, b) => b.mib - a.mib)
      .slice(0, NAMED_PARTS)
      .map(({ name, mib }) => `${name} ${mib}`)
      .join(', ');
  }

  #reason(countedBytes: number): string {
    const { budgetBytes } = this.#ports;
    const held = Math.round(countedBytes / MEBIBYTE);
    return `ingest is paused: ${held} MiB are held (${this.#largestParts()}), and LOGRING_MEMORY_BUDGET_MB allows ${budgetBytes / MEBIBYTE}; it goes on when enough was written away or has expired, or with a larger budget`;
  }
}
