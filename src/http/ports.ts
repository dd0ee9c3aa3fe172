/** What the HTTP layer needs from the rest of the service: composition provides it. */

import type { Reach } from '../../ingest/embedded-log/body.js';
import type { AppendOutcome, BodyIdentity } from '../../ingest/embedded-log/embedded-log.js';
import type { ImportState } from '../../ingest/embedded-log/import-state.js';
import type { HeldPartition, OffsetGap } from '../../ingest/log-source.js';
import type { AnswerWindow, LogName } from '../endpoints/endpoint.js';

/** Whether what answers come from is whole now, and how old it is. */
export type AnswerState =
  /** All that its log was known to hold. */
  | { readonly kind: 'fresh' }
  /** All that its log held so long ago. */
  | { readonly kind: 'old'; readonly ageUs: number }
  /** Other processes have some of it: how old an answer is shows once it is gathered. */
  | { readonly kind: 'shared' }
  /** Nothing whole. */
  | { readonly kind: 'none'; readonly reason: string; readonly retryAfterSeconds: number }
  /** The log is not read: the setting that would name it is empty. */
  | { readonly kind: 'off'; readonly setting: string };

export const FRESH: AnswerState = { kind: 'fresh' };

export interface StatePort {
  /** Asked at each request: O(1) while the log's answers are fresh. */
  stateOf(log: LogName): AnswerState;
  /**
   * Changes whenever the log's answers come from other partitions: what is computed across a change may lack
   * some.
   */
  epochOf(log: LogName): number;
}

export interface IngestPort {
  /** Why nothing is taken at the moment, or null: bodies are then not even read. */
  refusal(): { readonly reason: string; readonly retryAfterSeconds: number } | null;
  /**
   * The body, unpacked, is not looked at once it resolves: its memory is used for something else then. Of a
   * body that is neither stored nor unclear nothing is kept. `reach`: see Reach.
   */
  append(
    sourceName: string,
    body: Uint8Array,
    contentType: string,
    identity: BodyIdentity,
    reach: Reach,
  ): Promise<AppendOutcome>;
  /** null for a source that is not known. */
  importState(sourceName: string, importId: string): ImportState | null;
}

/** Alarms of one kind: gaps, of each partition the latest; partitions that hold. */
export interface AlarmPort<Alarm extends object> {
  /** Those that are not acknowledged. */
  open(): readonly Alarm[];
  /** Acknowledges all that are open; resolves with them once that is done, as durably as they are kept. */
  acknowledge(): Promise<readonly Alarm[]>;
}

export interface AlarmPorts {
  readonly gaps: AlarmPort<OffsetGap>;
  readonly holds: AlarmPort<HeldPartition>;
}

/** Half-open. A start of -Infinity: as far as anything goes back. */
export interface DroppedSpan {
  readonly startUs: number;
  readonly endUs: number;
}

/**
 * The spans within a window of which a repair has dropped entries: answers are given from what is left, and
 * say so.
 */
export type DroppedPort = (window: AnswerWindow) => readonly DroppedSpan[];

export interface Health {
  readonly ok: boolean;
  /** One sentence each; empty when ok. */
  readonly reasons: readonly string[];
  /** What an operator should know although all is well. */
  readonly notes?: readonly string[];
  /** How the answers of the oldest log stand; absent: they are fresh. */
  readonly oldest?: AnswerState;
}

export interface OperatorPort {
  readyz(): Health;
  /** In Prometheus' text format. */
  metrics(): string | Promise<string>;
}

export interface Clock {
  /** Microseconds since the epoch. Read once a request. */
  nowUs(): number;
  /** A clock that never steps, in microseconds, for durations. */
  monotonicUs(): number;
}
