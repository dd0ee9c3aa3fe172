/**
 * Answers of `logs.all` that were asked for twice while nothing of them changed: a project whose logs pause
 * is asked again and again by the dashboards that show it.
 *
 *   asked ──► same rows as when it was asked before? ──► no: computed, and what it depends on is remembered
 *                                                   ╰─► yes: computed and kept ──► the kept one, from now on
 *
 * An answer depends on which runs there are and on how many rows of the project they have (RowsView.stateOf),
 * and on the time at which the first of its rows expires.
 */

import type { LogsParameters } from '../../engine/rows/partial.js';
import type { RowsView } from '../../engine/rows/rows-view.js';
import type { AnswerWindow, LiveAnswer, PackedBody } from './endpoint.js';
import {
  LOGS_MEMO_COUNT,
  LOGS_MEMO_IDLE_US,
  LOGS_MEMO_KEPT_SHARE,
  LOGS_MEMO_OVERHEAD_BYTES,
} from './limits.js';

type Answer = LiveAnswer | Promise<LiveAnswer>;

export interface LogsMemoPorts {
  /** Those that answers come from now; the array stays as it is. */
  views(): readonly RowsView[];
  /** When the first row of the answer expires, µs since the epoch. */
  expiryUs(parameters: LogsParameters, nowUs: number): number;
  answer(parameters: LogsParameters, nowUs: number): Answer;
}

/** What a question was answered from. */
interface Basis {
  readonly views: readonly RowsView[];
  /** Of each view, two numbers. */
  readonly state: readonly number[];
}

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
    const views = this.#ports.views();
    const basis = { views, state: views.flatMap((view) => view.stateOf(parameters.project)) };
    const kept = this.#kept.get(question);
    const isSame = isSameBasis(kept?.basis ?? this.#asked.get(question), basis);
    if (kept !== undefined) {
      this.#kept.delete(question);
      if (isSame && kept.isRight(nowUs)) {
        kept.askedUs = nowUs;
        this.#kept.set(question, kept);
        return kept.answer(parameters, nowUs);
      }
      this.#keptBytes -= kept.heldBytes;
    }
    const answer = this.#ports.answer(parameters, nowUs);
    this.#forget(question);
    if (answer instanceof Promise || answer.holding !== null) return answer;
    if (isSame && this.#hasRoom((answer.body as Uint8Array).length + bytesOf(question, basis), nowUs))
      this.#keep(parameters, nowUs, basis, answer);
    else this.#remember(question, basis);
    return answer;
  }

  /** Until more is asked. */
  trim(byteLimit: number): void {
    this.#forgetOldest(byteLimit);
    for (const [question, kept] of this.#kept) {
      if (this.heldBytes <= byteLimit) return;
      this.#drop(question, kept);
    }
  }

  /**
   * Makes room among answers. What was asked for just now stays, or many questions in turn would push each
   * other out.
   */
  #hasRoom(byteCount: number, nowUs: number): boolean {
    const limit = LOGS_MEMO_KEPT_SHARE * this.#byteLimit;
    for (const [question, kept] of this.#kept) {
      if (this.#keptBytes + byteCount <= limit) break;
      if (Math.abs(nowUs - kept.askedUs) < LOGS_MEMO_IDLE_US) break;
      this.#drop(question, kept);
    }
    return this.#keptBytes + byteCount <= limit;
  }

  #keep(parameters: LogsParameters, nowUs: number, basis: Basis, { body, window }: LiveAnswer): void {
    const question = questionOf(parameters);
    const kept: Kept = new Kept(
      { question, basis, body: copied(body as Uint8Array), window: window() },
      { fromUs: nowUs, expiryUs: this.#ports.expiryUs(parameters, nowUs) },
      (packedBytes) => {
        const mayKeep = this.#kept.get(question) === kept && this.#hasRoom(packedBytes, kept.askedUs);
        if (mayKeep) this.#addKept(packedBytes);
        return mayKeep;
      },
    );
    this.#kept.set(question, kept);
    this.#addKept(kept.heldBytes);
  }

  /** Answers take the room of questions that were asked once, never the other way round. */
  #addKept(byteCount: number): void {
    this.#keptBytes += byteCount;
    this.#forgetOldest(this.#byteLimit);
  }

  #drop(question: string, kept: Kept): void {
    this.#kept.delete(question);
    this.#keptBytes -= kept.heldBytes;
  }

  #remember(question: string, basis: Basis): void {
    const byteCount = bytesOf(question, basis);
    this.#forgetOldest(this.#byteLimit - byteCount, LOGS_MEMO_COUNT - 1);
    if (this.heldBytes + byteCount > this.#byteLimit) return;
    this.#asked.set(question, basis);
    this.#askedBytes += byteCount;
  }

  #forgetOldest(byteLimit: number, countLimit = LOGS_MEMO_COUNT): void {
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
}

class Kept implements PackedBody {
  readonly #facts: KeptFacts;
  readonly #fromUs: number;
  readonly #expiryUs: number;
  readonly #mayKeep: (packedBytes: number) => boolean;
  #packed: Uint8Array | null = null;
  askedUs: number;

  constructor(
    facts: KeptFacts,
    { fromUs, expiryUs }: { readonly fromUs: number; readonly expiryUs: number },
    mayKeep: (packedBytes: number) => boolean,
  ) {
    this.#facts = facts;
    this.#fromUs = fromUs;
    this.#expiryUs = expiryUs;
    this.#mayKeep = mayKeep;
    this.askedUs = fromUs;
  }

  get basis(): Basis {
    return this.#facts.basis;
  }

  /** Before, rows may have been visible that had expired by then: the clock was set back. */
  isRight(nowUs: number): boolean {
    return this.#fromUs <= nowUs && nowUs < this.#expiryUs;
  }

  answer({ retentionUs }: LogsParameters, nowUs: number): LiveAnswer {
    const { body, window } = this.#facts;
    return {
      body,
      packed: this,
      window: () => ({ ...window, startUs: Math.max(window.startUs, nowUs - retentionUs) }),
      holding: null,
      release: () => undefined,
    };
  }

  get bytes(): Uint8Array | null {
    return this.#packed;
  }

  keep(packed: Uint8Array): void {
    if (this.#packed === null && this.#mayKeep(packed.length)) this.#packed = copied(packed);
  }

  get heldBytes(): number {
    const { question, basis, body } = this.#facts;
    return body.length + (this.#packed?.length ?? 0) + bytesOf(question, basis);
  }
}

/** In a buffer of its own: a Buffer's, or one of zlib's, may be a part of one that it would keep alive whole. */
function copied(bytes: Uint8Array): Uint8Array {
  return new Uint8Array(bytes);
}

function questionOf({ project, retentionUs, startUs, endUs }: LogsParameters): string {
  return `${retentionUs} ${startUs} ${endUs} ${project}`;
}

function isSameBasis(earlier: Basis | undefined, { views, state }: Basis): boolean {
  return (
    earlier !== undefined &&
    earlier.views.length === views.length &&
    views.every((view, i) => view === earlier.views[i]) &&
    state.every((value, i) => value === earlier.state[i])
  );
}

function bytesOf(question: string, { state }: Basis): number {
  return 2 * question.length + 16 * state.length + LOGS_MEMO_OVERHEAD_BYTES;
}
