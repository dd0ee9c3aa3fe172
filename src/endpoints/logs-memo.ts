/**
 * Answers of `logs.all` that were asked for twice while nothing of them changed: a project whose logs pause
 * is asked again and again by the dashboards that show it.
 *
 *   asked ──► same rows as when it was asked before? ──► no: computed, and what it depends on is remembered
 *                                                   ╰─► yes: computed and kept ──► the kept one, from now on
 *
 * An answer depends on which runs there are and on how many rows of the project they have (RowsView.stateOf),
 * and on when the first of its rows expires.
 */

import type { LogsParameters } from '../../engine/rows/partial.js';
import type { RowsView } from '../../engine/rows/rows-view.js';
import type { AnswerWindow, LiveAnswer, PackedBody } from './endpoint.js';
import {
  LOGS_MEMO_ASKED_COUNT,
  LOGS_MEMO_IDLE_US,
  LOGS_MEMO_KEPT_BYTES,
  LOGS_MEMO_KEPT_SHARE,
  LOGS_MEMO_OVERHEAD_BYTES,
} from './limits.js';

type Answer = LiveAnswer | Promise<LiveAnswer>;

export interface LogsMemoPorts {
  /** Those that answers come from now; the array stays as it is. */
  views(): readonly RowsView[];
  answer(parameters: LogsParameters, nowUs: number): Answer;
}

/** What a question was answered from: see RowsView.stateOf. The views themselves may be gone, and are not kept for this. */
type Basis = readonly number[];

export class LogsMemo {
  readonly #ports: LogsMemoPorts;
  readonly #byteLimit: number;
  /** Asked longest ago first. */
  readonly #kept = new Map<string, Kept>();
  /** Of questions whose answers are not kept; asked longest ago first. */
  readonly #asked = new Map<string, Basis>();
  #keptBytes = 0;
  #askedBytes = 0;

  constructor(ports: LogsMemoPorts, byteLimit: number) {
    this.#ports = ports;
    this.#byteLimit = byteLimit;
  }

  get heldBytes(): number {
    return this.#keptBytes + this.#askedBytes;
  }

  answer(parameters: LogsParameters, nowUs: number): Answer {
    const question = questionOf(parameters);
    const basis = this.#ports.views().flatMap((view) => view.stateOf(parameters.project));
    const kept = this.#kept.get(question);
    const isSame = isSameBasis(kept?.facts.basis ?? this.#asked.get(question), basis);
    if (kept !== undefined && isSame && kept.isRight(nowUs)) {
      kept.askedUs = nowUs;
      this.#kept.delete(question);
      this.#kept.set(question, kept);
      return kept.answer(parameters, nowUs);
    }
    if (kept !== undefined) this.#drop(kept);
    this.#forget(question);
    const answer = this.#ports.answer(parameters, nowUs);
    if (answer instanceof Promise || answer.visibleUntilUs === undefined) return answer;
    if (!isSame || !this.#keep(question, basis, answer, nowUs)) this.#remember(question, basis);
    return answer;
  }

  /** Until more is asked. */
  trim(byteLimit: number): void {
    this.#forgetOldest(byteLimit);
    for (const kept of this.#kept.values()) {
      if (this.heldBytes <= byteLimit) return;
      this.#drop(kept);
    }
  }

  /**
   * Makes room among answers. What was asked for just now stays, or many questions in turn would push each
   * other out.
   */
  #hasRoom(byteCount: number, nowUs: number): boolean {
    const limit = LOGS_MEMO_KEPT_SHARE * this.#byteLimit;
    for (const kept of this.#kept.values()) {
      if (this.#keptBytes + byteCount <= limit) break;
      if (Math.abs(nowUs - kept.askedUs) < LOGS_MEMO_IDLE_US) break;
      this.#drop(kept);
    }
    return this.#keptBytes + byteCount <= limit;
  }

  /** Whether there is room for it. */
  #keep(question: string, basis: Basis, answer: LiveAnswer, nowUs: number): boolean {
    const { body, window, visibleUntilUs = -Infinity } = answer;
    const heldBytes = (body as Uint8Array).length + bytesOf(question, basis) + LOGS_MEMO_KEPT_BYTES;
    if (!this.#hasRoom(heldBytes, nowUs)) return false;
    const facts = {
      question,
      basis,
      body: copied(body as Uint8Array),
      window: window(),
      fromUs: nowUs,
      visibleUntilUs,
    };
    const kept: Kept = new Kept(facts, heldBytes, (packedBytes) => {
      const mayKeep = this.#kept.get(question) === kept && this.#hasRoom(packedBytes, kept.askedUs);
      if (mayKeep) this.#addKept(packedBytes);
      return mayKeep;
    });
    this.#kept.set(question, kept);
    this.#addKept(heldBytes);
    return true;
  }

  /** Answers take the room of questions that were asked once, never the other way round. */
  #addKept(byteCount: number): void {
    this.#keptBytes += byteCount;
    this.#forgetOldest(this.#byteLimit);
  }

  #drop(kept: Kept): void {
    this.#kept.delete(kept.facts.question);
    this.#keptBytes -= kept.heldBytes;
  }

  #remember(question: string, basis: Basis): void {
    const byteCount = bytesOf(question, basis);
    this.#forgetOldest(this.#byteLimit - byteCount, LOGS_MEMO_ASKED_COUNT - 1);
    if (this.heldBytes + byteCount > this.#byteLimit) return;
    this.#asked.set(question, basis);
    this.#askedBytes += byteCount;
  }

  #forgetOldest(byteLimit: number, countLimit = LOGS_MEMO_ASKED_COUNT): void {
    for (const oldest of this.#asked.keys()) {
      if (this.#asked.size <= countLimit && this.heldBytes <= byteLimit) return;
      this.#forget(oldest);
    }
  }

  #forget(question: string): void {
    const basis = this.#asked.get(question);
    if (basis === undefined) return;
    this.#asked.delete(question);
    this.#askedBytes -= bytesOf(question, basis);
  }
}

interface KeptFacts {
  readonly question: string;
  readonly basis: Basis;
  readonly body: Uint8Array;
  readonly window: AnswerWindow;
  /** When it was computed. */
  readonly fromUs: number;
  readonly visibleUntilUs: number;
}

class Kept implements PackedBody {
  readonly facts: KeptFacts;
  /** Asked with how much it would be; it is counted where it says yes. */
  readonly #mayKeep: (packedBytes: number) => boolean;
  heldBytes: number;
  bytes: Uint8Array | null = null;
  askedUs: number;

  constructor(facts: KeptFacts, heldBytes: number, mayKeep: (packedBytes: number) => boolean) {
    this.facts = facts;
    this.heldBytes = heldBytes;
    this.#mayKeep = mayKeep;
    this.askedUs = facts.fromUs;
  }

  /** Before, rows may have been visible that had expired by then: the clock was set back. */
  isRight(nowUs: number): boolean {
    return this.facts.fromUs <= nowUs && nowUs <= this.facts.visibleUntilUs;
  }

  answer({ retentionUs }: LogsParameters, nowUs: number): LiveAnswer {
    const { body, window } = this.facts;
    return {
      body,
      packed: this,
      window: () => ({ ...window, startUs: Math.max(window.startUs, nowUs - retentionUs) }),
      holding: null,
      release: () => undefined,
    };
  }

  keep(packed: Uint8Array): void {
    if (this.bytes !== null || !this.#mayKeep(packed.length)) return;
    this.bytes = copied(packed);
    this.heldBytes += packed.length;
  }
}

/** In a buffer of its own: a Buffer's, or one of zlib's, may be a part of one that it would keep alive whole. */
function copied(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

function questionOf({ project, retentionUs, startUs, endUs }: LogsParameters): string {
  return `${retentionUs} ${startUs} ${endUs} ${project}`;
}

function isSameBasis(earlier: Basis | undefined, basis: Basis): boolean {
  return earlier?.length === basis.length && basis.every((value, i) => value === earlier[i]);
}

function bytesOf(question: string, basis: Basis): number {
  return 2 * question.length + 12 * basis.length + LOGS_MEMO_OVERHEAD_BYTES;
}
