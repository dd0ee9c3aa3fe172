/**
 * A few of the dead letters met last, of each reason, cut short and in memory: for an operator to see what
 * they look like.
 */

import type { DeadLetter, DeadLetterReason, DeadLetterSink } from './dead-letters.js';
import { SAMPLE_BYTES, SAMPLES_OF_REASON } from './limits.js';

export interface DeadLetterSample {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly index: number;
  readonly reason: DeadLetterReason;
  /** The beginning of the value, as far as it is UTF-8. */
  readonly text: string;
  /** Of the whole value. */
  readonly byteCount: number;
}

/**
 * The same sink, which tells samples of what it has made durable: of each write the last few of each reason.
 */
export function sampledSink(
  sink: DeadLetterSink,
  tell: (samples: readonly DeadLetterSample[]) => void,
): DeadLetterSink {
  return {
    async write(letters) {
      await sink.write(letters);
      const byReason = new Map<DeadLetterReason, DeadLetter[]>();
      for (const letter of letters) {
        const last = byReason.get(letter.reason) ?? [];
        byReason.set(letter.reason, [...last.slice(1 - SAMPLES_OF_REASON), letter]);
      }
      tell([...byReason.values()].flat().map(sampleOf));
    },
  };
}

export class DeadLetterSamples {
  readonly #byReason = new Map<DeadLetterReason, DeadLetterSample[]>();

  keep(samples: readonly DeadLetterSample[]): void {
    for (const sample of samples) {
      const kept = this.#byReason.get(sample.reason) ?? [];
      kept.unshift(sample);
      this.#byReason.set(sample.reason, kept.slice(0, SAMPLES_OF_REASON));
    }
  }

  /** Of each reason the last first. */
  all(): DeadLetterSample[] {
    return [...this.#byReason.values()].flat();
  }
}

function sampleOf({ topic, partition, offset, index, reason, value }: DeadLetter): DeadLetterSample {
  const text = new TextDecoder().decode(value.subarray(0, SAMPLE_BYTES));
  return { topic, partition, offset, index, reason, text, byteCount: value.length };
}
