/**
 * Questions to one member that are asked at about the same time go in one request, as do their replies: the system's calls
 * around a request are most of what a question to a member costs.
 *
 *   questions 1, replies 1   count u32 │ per message: length u32, bytes
 *
 * A reply of no bytes: it can't be given at once, and others are not to wait for it, so it is to be asked for alone.
 */

import { ByteWriter } from '../../engine/bytes.js';
import { PartialError, readPartial } from '../../engine/partial-format.js';
import type { TakenBuffer } from '../endpoints/body-pool.js';
import { QUESTIONS_TOGETHER, REPLIES_TOGETHER_BYTES, TOGETHER_MS } from './limits.js';
import { type Allocate, atMost, written } from './message-bytes.js';

const QUESTIONS = 'questions 1';
const REPLIES = 'replies 1';

/** Rejects for anything but a whole reply. */
type PostAll = (questions: Uint8Array, limitMs: number, allocate: Allocate) => Promise<Uint8Array>;

/** Asks one question alone. Rejects as PeerLink.ask does. */
type AskAlone = () => Promise<Uint8Array>;

interface Waiting {
  readonly question: Uint8Array;
  readonly limitMs: number;
  readonly room: TakenBuffer;
  readonly askAlone: AskAlone;
  readonly end: (reply: Uint8Array) => void;
  readonly fail: (error: unknown) => void;
}

export class QuestionsTogether {
  readonly #post: PostAll;
  /** What others wait for: the exchange that began last, as long as it is not answered and not old. */
  #last: NodeJS.Timeout | null = null;
  #waiting: Waiting[] = [];

  constructor(post: PostAll) {
    this.#post = post;
  }

  /**
   * Asks it at once where nothing is under way; else when that is answered, after TOGETHER_MS, or when there are
   * QUESTIONS_TOGETHER, whatever comes first. As PeerLink.ask.
   */
  ask(question: Uint8Array, limitMs: number, room: TakenBuffer, askAlone: AskAlone): Promise<Uint8Array> {
    if (this.#last === null) return this.#during(askAlone());
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => fail(new Error(`did not answer within ${limitMs} ms`)), limitMs);
      const fail = (error: unknown): void => {
        clearTimeout(timer);
        reject(error);
      };
      const end = (reply: Uint8Array): void => {
        clearTimeout(timer);
        resolve(reply);
      };
      this.#waiting.push({ question, limitMs, room, askAlone, end, fail });
      if (this.#waiting.length >= QUESTIONS_TOGETHER) this.#go();
    });
  }

  #during(exchange: Promise<Uint8Array>): Promise<Uint8Array> {
    if (this.#last !== null) clearTimeout(this.#last);
    const last = setTimeout(() => this.#end(last), TOGETHER_MS);
    this.#last = last;
    const end = () => this.#end(last);
    exchange.then(end, end);
    return exchange;
  }

  #end(exchange: NodeJS.Timeout): void {
    if (this.#last !== exchange) return;
    clearTimeout(exchange);
    this.#last = null;
    if (this.#waiting.length > 0) this.#go();
  }

  #go(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    const [first, ...others] = waiting;
    if (others.length === 0) this.#during(first.askAlone()).then(first.end, first.fail);
    else void this.#askAll(waiting);
  }

  /** Never rejects. */
  async #askAll(waiting: readonly Waiting[]): Promise<void> {
    const [{ room: firstRoom }] = waiting;
    // One that may take longer holds no connection for longer than the others.
    const limitMs = Math.min(...waiting.map((one) => one.limitMs));
    try {
      const questions = writeTogether(waiting.map(({ question }) => question));
      const bytes = await this.#during(this.#post(questions, limitMs, firstRoom.take));
      const replies = readMessages(REPLIES, bytes);
      if (replies.length !== waiting.length)
        throw new PartialError('there are not as many replies as questions');
      for (const [i, { room, askAlone, end, fail }] of waiting.entries())
        if (replies[i].length === 0) askAlone().then(end, fail);
        else {
          if (room !== firstRoom) firstRoom.shareWith(room);
          end(replies[i]);
        }
    } catch (error) {
      for (const { limitMs: ownMs, askAlone, end, fail } of waiting)
        if (ownMs > limitMs) askAlone().then(end, fail);
        else fail(error);
    }
  }
}

export function writeTogether(questions: readonly Uint8Array[]): Uint8Array {
  const out = new ByteWriter();
  out.string(QUESTIONS);
  out.u32(questions.length);
  for (const question of questions) {
    out.u32(question.length);
    out.bytes(question);
  }
  return out.written();
}

/**
 * The replies to questions that came together, in memory from `allocate`. `answer` appends the reply to a question, or nothing
 * where that can't be given at once; what it throws, it throws again when it is asked alone. Throws a PartialError for bytes
 * that are no questions.
 */
export function answerTogether(
  bytes: Uint8Array,
  answer: (question: Uint8Array, out: ByteWriter) => void,
  allocate: Allocate,
): Uint8Array {
  const questions = readMessages(QUESTIONS, bytes);
  return written((out) => {
    out.string(REPLIES);
    out.u32(questions.length);
    for (const question of questions) {
      out.u32(0);
      const at = out.length;
      try {
        // Large ones are put together one by one.
        if (at < REPLIES_TOGETHER_BYTES) answer(question, out);
      } catch {
        // It is the others' no longer when it is asked for alone.
        out.cut(at);
      }
      out.replaceU32(at - 4, out.length - at);
    }
  }, allocate);
}

/** Throws a PartialError. */
function readMessages(form: string, bytes: Uint8Array): Uint8Array[] {
  return readPartial(form, bytes, (content) => {
    const count = atMost(QUESTIONS_TOGETHER, content.u32());
    return Array.from({ length: count }, () => content.bytes(content.u32()));
  });
}
