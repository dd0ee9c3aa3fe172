/**
 * How the parts of an evaluation are shared among threads: each has a lane, which takes the next parts that
 * no other has taken when it is through with those it has.
 */

import { assert } from '../../assert.js';
import type { FreshMatches } from '../fresh/fresh-matches.js';
import type { FreshPart } from '../fresh/fresh-part.js';
import type { PartScanRequest, ScanResult } from '../sealed/part-scan.js';
import type { SealedMatches } from '../sealed/sealed-matches.js';
import type { SealedPart } from '../sealed/sealed-part.js';
import type { UsageView } from '../usage-view.js';
import { type BatchRoom, copyUrls, type UrlBatch } from './url-batch.js';

/** A fresh part as it was when the evaluation began. */
export interface FreshTarget {
  readonly part: FreshPart;
  readonly matches: FreshMatches;
  readonly urlCount: number;
  readonly entryCount: number;
}

export interface SealedTarget {
  readonly view: UsageView;
  readonly part: SealedPart;
  readonly matches: SealedMatches;
}

export type ScanTarget = FreshTarget | SealedTarget;

/** A piece of a sealed part to be scanned elsewhere (see scanPart). What it holds stays the evaluation's. */
export interface PartBatch extends PartScanRequest {
  readonly kind: 'part';
  /** Whose part it is. */
  readonly view: UsageView;
}

/** What came of a batch: of URLs a byte each, not 0 where one matches. */
export type BatchResult = Uint8Array | ScanResult;

export class ScanLane {
  /** Of all lanes, the next one last. */
  readonly #untaken: ScanTarget[];
  #fresh: FreshTarget[] = [];
  #sealed: SealedTarget | null = null;
  #isCancelled = false;

  constructor(untaken: ScanTarget[]) {
    this.#untaken = untaken;
  }

  get isBusy(): boolean {
    return (this.#sealed !== null && !this.#sealed.matches.isComplete) || this.#fresh.some(isUnmatched);
  }

  /**
   * The next piece of a sealed part, or about `byteLimit` bytes of URLs and at least one; null when there is
   * none. A batch whose results never came is asked for again.
   */
  takeBatch(byteLimit: number, room: BatchRoom): UrlBatch | PartBatch | null {
    if (this.#isCancelled) return null;
    if (!this.isBusy) this.#take(byteLimit);
    if (this.#sealed === null)
      return this.#fresh.length === 0 ? null : copyUrls(this.#fresh, byteLimit, room);
    const { view, part, matches } = this.#sealed;
    return { kind: 'part', view, file: part.file, from: matches.next!, matches: matches.list.columns };
  }

  /** What came of the batch taken last. It is noted for all evaluations to come. */
  note(result: BatchResult): void {
    assert(this.isBusy, 'a lane is told of a batch that nobody asked for');
    if (result instanceof Uint8Array) this.#noteVerdicts(result);
    else this.#sealed!.matches.scanned(result);
  }

  /** There is no further batch; what is in hand is still taken note of. */
  cancel(): void {
    this.#isCancelled = true;
  }

  /** A sealed part, or fresh ones: one, or as many as `byteLimit` bytes of what is left of them hold. */
  #take(byteLimit: number): void {
    this.#sealed = null;
    this.#fresh = [];
    let byteCount = 0;
    for (let next = this.#untaken.at(-1); next !== undefined; next = this.#untaken.at(-1)) {
      if (isSealed(next)) {
        if (this.#fresh.length > 0) return;
        this.#untaken.pop();
        if (next.matches.isComplete) continue;
        this.#sealed = next;
        return;
      }
      byteCount += bytesLeft(next);
      if (this.#fresh.length > 0 && byteCount > byteLimit) return;
      this.#untaken.pop();
      this.#fresh.push(next);
    }
  }

  #noteVerdicts(verdicts: Uint8Array): void {
    let next = 0;
    for (const { matches, urlCount } of this.#fresh) {
      for (; next < verdicts.length && matches.evaluatedUrls < urlCount; next++)
        matches.addVerdict(verdicts[next] !== 0);
    }
  }
}

/** URLs of a part that are still to be looked at, at most. */
export function urlsLeft(target: ScanTarget): number {
  return isSealed(target)
    ? target.part.summary.urlCount
    : Math.max(0, target.urlCount - target.matches.evaluatedUrls);
}

/** As if its URLs were of one length. */
function bytesLeft(target: FreshTarget): number {
  const { byteCount, count } = target.part.urls;
  return (urlsLeft(target) * byteCount) / count;
}

function isUnmatched({ matches, urlCount }: FreshTarget): boolean {
  return matches.evaluatedUrls < urlCount;
}

function isSealed(target: ScanTarget): target is SealedTarget {
  return target.part.kind === 'sealed';
}
