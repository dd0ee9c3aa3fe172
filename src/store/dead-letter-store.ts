/**
 * Dead letters when there is no Kafka to hold them: a journal of the store, bounded by size and age. Elements of
 * one reason that come together share a letter, which counts them and has the first of them; more of them soon
 * after are added to it. What comes again after a crash is known by its place, and counts once.
 *
 *   <time, ms, 15 digits>/<number, 8 digits>   header bytes u32 │ header, JSON │ the samples' bytes
 */

import { entryOf } from '../../engine/entry-of.js';
import type { DeadLetter, DeadLetterReason, DeadLetterSink } from '../../ingest/dead-letters.js';
import type { Journal } from './journal/journal.js';
import {
  LETTER_GROUP_MS,
  LETTER_LIFE_MS,
  LETTER_SAMPLE_BYTES,
  LETTER_SAMPLES,
  LETTERS_BYTES,
} from './limits.js';
import type { Store } from './store.js';
import { compressedValue } from './values/checked-value.js';
import { openEnvelope } from './values/envelope.js';

/** The place of an element: its record, and where in its value. */
interface Place {
  readonly offset: number;
  readonly index: number;
}

export interface LetterSample extends Place {
  /** Of the whole element; `value` is its beginning. */
  readonly byteCount: number;
  readonly value: Uint8Array;
}

/** Elements of one reason that came together. */
export interface KeptLetter {
  readonly topic: string;
  readonly partition: number;
  readonly reason: DeadLetterReason;
  readonly count: number;
  readonly first: Place;
  readonly last: Place;
  readonly samples: readonly LetterSample[];
}

/** A letter with its place in the store: what `before` takes. */
export interface StoredLetter extends KeptLetter {
  readonly key: string;
  /** When it was begun, ms since the epoch. */
  readonly timeMs: number;
}

interface PendingLetter {
  readonly key: string;
  readonly kept: KeptLetter;
  readonly value: Uint8Array;
}

interface Span {
  readonly key: string;
  readonly first: Place;
  last: Place;
}

const KEY = /^(\d{15})\/\d{8}$/;

export class DeadLetterStore implements DeadLetterSink {
  /** Elements of letters that were removed for their age or to make room. */
  removedCount = 0;
  readonly #store: Store;
  readonly #journal: Journal;
  readonly #nowMs: () => number;
  /** By topic, partition and reason, what the letters are of, in order. */
  readonly #spans = new Map<string, Span[]>();
  #nextNumber = 0;

  constructor(store: Store, nowMs: () => number) {
    this.#store = store;
    this.#journal = store.table('dead-letters');
    this.#nowMs = nowMs;
    for (const { key, value } of this.#journal.entries()) {
      const { first, last, ...of } = decodeLetter(key, value);
      this.#spansOf(of).push({ key, first, last });
    }
    for (const spans of this.#spans.values()) spans.sort((a, b) => order(a.first, b.first));
  }

  async write(letters: readonly DeadLetter[]): Promise<void> {
    const nowMs = this.#nowMs();
    // Also what it reads may meet a shortage.
    const puts = await this.#store.room.retried(() => this.#writeOnce(letters, nowMs));
    for (const { key, kept } of puts) this.#take(key, kept);
  }

  /** The newest first; `before`: only those before the letter of that key. None may be written meanwhile. */
  *letters(before: string | null = null): Iterable<StoredLetter> {
    for (const key of this.#journal.keysBackwards(before)) {
      yield { key, timeMs: Number(KEY.exec(key)![1]), ...decodeLetter(key, this.#journal.get(key)!) };
    }
  }

  async #writeOnce(letters: readonly DeadLetter[], nowMs: number): Promise<PendingLetter[]> {
    const puts = this.#grouped(letters).map((group) => this.#letterOf(group, nowMs));
    const removedKeys = this.#due(
      nowMs,
      puts.reduce((sum, { value }) => sum + value.length, 0),
    );
    if (puts.length + removedKeys.length === 0) return puts;
    await this.#store.writeTables([
      {
        table: this.#journal,
        puts: puts.map(({ key, value }) => ({ key, value })),
        removedKeys: removedKeys.filter((key) => puts.every((put) => put.key !== key)),
      },
    ]);
    return puts;
  }

  /** By topic, partition and reason, without what is kept already. */
  #grouped(letters: readonly DeadLetter[]): DeadLetter[][] {
    const groups = new Map<string, DeadLetter[]>();
    for (const letter of letters) {
      if (this.#isKept(letter)) continue;
      entryOf(groups, nameOf(letter), () => []).push(letter);
    }
    return [...groups.values()];
  }

  /** They come in order, but after a crash. */
  #isKept(letter: DeadLetter): boolean {
    const spans = this.#spansOf(letter);
    const end = spans.at(-1);
    if (end === undefined || order(letter, end.last) > 0) return false;
    return spans.some(({ first, last }) => order(first, letter) <= 0 && order(letter, last) <= 0);
  }

  /** A letter for them, or the last one of their kind with them, when that is of many and new. */
  #letterOf(group: readonly DeadLetter[], nowMs: number): PendingLetter {
    const [{ topic, partition, reason }] = group;
    const end = this.#spansOf(group[0]).at(-1);
    const previous = end === undefined ? null : this.#letterAt(end.key);
    const isSame =
      previous !== null &&
      previous.count > LETTER_SAMPLES &&
      Math.abs(nowMs - previous.timeMs) < LETTER_GROUP_MS;
    const key = isSame ? previous.key : this.#newKey(nowMs);
    const samples = isSame ? previous.samples : group.slice(0, LETTER_SAMPLES).map(sampleOf);
    const first = isSame ? previous.first : placeOf(group[0]);
    const count = group.length + (isSame ? previous.count : 0);
    const kept = { topic, partition, reason, count, first, last: placeOf(group.at(-1)!), samples };
    return { key, kept, value: encodeLetter(key, kept) };
  }

  #letterAt(key: string): StoredLetter | null {
    const value = this.#journal.get(key);
    return value === undefined
      ? null
      : { key, timeMs: Number(KEY.exec(key)![1]), ...decodeLetter(key, value) };
  }

  #newKey(nowMs: number): string {
    const time = String(Math.max(0, Math.floor(nowMs))).padStart(15, '0');
    for (;;) {
      const key = `${time}/${String(this.#nextNumber++ % 1e8).padStart(8, '0')}`;
      if (this.#journal.get(key) === undefined) return key;
    }
  }

  /** The oldest letters, of which there are too many, or that are too old. */
  #due(nowMs: number, addedBytes: number): string[] {
    const due: string[] = [];
    let byteCount = this.#journal.liveBytes + addedBytes;
    // The clock is not trusted with deletion.
    const trustedMs = Math.min(nowMs, (this.#store.committedUs() ?? 0) / 1000);
    for (const key of this.#journal.keysInOrder()) {
      const isOld = Number(KEY.exec(key)![1]) < trustedMs - LETTER_LIFE_MS;
      if (!isOld && byteCount <= LETTERS_BYTES) break;
      const value = this.#journal.get(key)!;
      byteCount -= key.length + value.length;
      due.push(key);
      const { count, ...of } = decodeLetter(key, value);
      const spans = this.#spansOf(of);
      const at = spans.findIndex((span) => span.key === key);
      // Another write is removing it.
      if (at === -1) continue;
      spans.splice(at, 1);
      this.removedCount += count;
    }
    return due;
  }

  #take(key: string, kept: KeptLetter): void {
    const spans = this.#spansOf(kept);
    const known = spans.find((span) => span.key === key);
    if (known === undefined) spans.push({ key, first: kept.first, last: kept.last });
    else known.last = kept.last;
  }

  #spansOf(of: Pick<KeptLetter, 'topic' | 'partition' | 'reason'>): Span[] {
    return entryOf(this.#spans, nameOf(of), () => []);
  }
}

function nameOf({ topic, partition, reason }: Pick<KeptLetter, 'topic' | 'partition' | 'reason'>): string {
  return `${topic}/${partition} ${reason}`;
}

/** Negative when a comes before b. */
export function order(a: Place, b: Place): number {
  return a.offset - b.offset || a.index - b.index;
}

function placeOf({ offset, index }: Place): Place {
  return { offset, index };
}

function sampleOf({ offset, index, value }: DeadLetter): LetterSample {
  return { offset, index, byteCount: value.length, value: value.subarray(0, LETTER_SAMPLE_BYTES) };
}

function encodeLetter(key: string, { samples, ...letter }: KeptLetter): Uint8Array {
  const header = Buffer.from(
    JSON.stringify({
      ...letter,
      samples: samples.map(({ value, ...sample }) => ({ ...sample, keptBytes: value.length })),
    }),
  );
  const length = Buffer.alloc(4);
  length.writeUInt32LE(header.length);
  return compressedValue(key, Buffer.concat([length, header, ...samples.map(({ value }) => value)]));
}

function decodeLetter(key: string, value: Uint8Array): KeptLetter {
  const raw = Buffer.from(openEnvelope(key, value));
  let at = 4 + raw.readUInt32LE(0);
  const { samples, ...letter } = JSON.parse(raw.toString('utf8', 4, at)) as Omit<KeptLetter, 'samples'> & {
    readonly samples: readonly (Omit<LetterSample, 'value'> & { readonly keptBytes: number })[];
  };
  return {
    ...letter,
    samples: samples.map(({ keptBytes, ...sample }) => {
      at += keptBytes;
      return { ...sample, value: raw.subarray(at - keptBytes, at) };
    }),
  };
}
