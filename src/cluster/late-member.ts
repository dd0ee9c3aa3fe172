/**
 * What a member is asked for, and what others are asked for beside it when it is late: the first complete outcome counts.
 *
 *   asked ──► complete ──► done
 *         ├─► late: the others are asked too, as often as there is budget, and again while they are not as far yet
 *         ╰─► most of the time is gone, and there are older copies: what there is so far
 */

import type { HedgeBudget } from './hedge-budget.js';
import { CATCH_UP_PAUSE_MOST_MS, CATCH_UP_PAUSE_MS, FRESH_SHARE, HEDGE_MOST_MS } from './limits.js';
import type { Peer } from './peer.js';
import type { Outcome } from './peer-requests.js';

export interface LateMemberPorts {
  readonly hedges: HedgeBudget;
  readonly monotonicUs: () => number;
  /** Runs a task later; returns what cancels it. */
  readonly after: (delayMs: number, task: () => void) => () => void;
  /** Of the question, milliseconds. */
  readonly remainingMs: () => number;
  /** After how long a member is late, milliseconds; null: when nearly all its answers have come sooner. */
  readonly lateMs: number | null;
}

export interface AskedMember {
  readonly peer: Peer;
  readonly partitions: readonly number[];
  /** After how long the others are asked too, milliseconds; null: there are none for all of the partitions. */
  readonly hedgeMs: number | null;
  readonly askOthers: () => Promise<Outcome>;
  /** Whether copies of all of these are only not as far yet as they must be. */
  readonly isComing: (lacking: readonly number[]) => boolean;
  /** Whether a partition has an older copy that may be used if no fresh one answers. */
  readonly hasOld: (partition: number) => boolean;
}

/** `first`: the outcome of the member's own request. */
export function firstComplete(
  first: Promise<Outcome>,
  { peer, partitions, hedgeMs, askOthers, isComing, hasOld }: AskedMember,
  { hedges, monotonicUs, after, remainingMs, lateMs }: LateMemberPorts,
): Promise<Outcome> {
  const askedUs = monotonicUs();
  const never = () => undefined;
  return new Promise((resolve) => {
    let best: Outcome = { pieces: [], lacking: partitions };
    let underWayCount = 1;
    let pauseMs = CATCH_UP_PAUSE_MS;
    let isEnded = false;
    const end = (): void => {
      isEnded = true;
      cancel();
      cancelMissed();
      cancelWait();
      resolve(best);
    };
    const take = (outcome: Outcome): void => {
      if (outcome.lacking.length < best.lacking.length) best = outcome;
      underWayCount--;
      if (outcome.lacking.length === 0 || underWayCount === 0) end();
    };
    const look = (): void => {
      const mayAsk = hedges.take(peer.isSilent);
      // Once it is known to be silent, nothing is spared any more.
      if (mayAsk) void ask();
      else cancel = after(hedgeMs!, look);
    };
    const ask = async (): Promise<void> => {
      underWayCount++;
      const outcome = await askOthers();
      if (isEnded) return;
      const isLast = underWayCount === 1;
      take(outcome);
      // They may only not have come as far yet as the late one was.
      if (isLast || !isComing(outcome.lacking)) return;
      cancel = after(pauseMs, ask);
      pauseMs = Math.min(2 * pauseMs, CATCH_UP_PAUSE_MOST_MS);
    };
    const waitMs = () => lateMs ?? FRESH_SHARE * remainingMs();
    // One that hangs leaves time to ask for older copies. Where answers may take long, one that is only slow does not hang.
    const giveUp = (): void => {
      const mayEnd = lateMs === null || peer.isSilent;
      if (mayEnd && best.lacking.every(hasOld)) end();
      else if (remainingMs() > CATCH_UP_PAUSE_MS) cancelWait = after(waitMs(), giveUp);
    };
    let cancel = hedgeMs === null ? never : after(hedgeMs, look);
    let cancelWait = after(peer.isSilent ? HEDGE_MOST_MS : waitMs(), giveUp);
    const cancelMissed =
      hedgeMs === null || lateMs !== null
        ? never
        : after(peer.hedgeMs, () => peer.missed(askedUs, monotonicUs()));
    void first.then((outcome) => {
      if (!isEnded) take(outcome);
    });
  });
}
