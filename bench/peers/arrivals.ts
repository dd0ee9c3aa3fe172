/**
 * What answers take while entries arrive: a system is fed at a fixed rate, and its peers are asked meanwhile,
 * in turn.
 */

import { performance } from 'node:perf_hooks';
import { setImmediate, setTimeout } from 'node:timers/promises';
import { Latencies } from '../percentiles.js';
import { type EntryBatch, joined } from './entries.js';
import type { Ask, Peer, System } from './peer.js';
import type { Figure } from './rounds.js';

export interface ArrivalSizes {
  /** Entries of each kind that arrive at each system. */
  readonly arrivals: number;
  /** Of both kinds a second. */
  readonly arrivalRate: number;
  /** A question is asked so often in its turn, or for so long, at least once. */
  readonly asks: number;
  readonly roundMs: number;
}

/** How often entries come, ms. */
export const ARRIVAL_MS = 50;
const REFRESH_MS = 1_000;

export interface FedFigures {
  /** Entries of both kinds that it took a second. */
  readonly perSecond: number;
  /** By the index of the ask. */
  readonly figures: readonly Figure[];
}

/**
 * Asks one peer while the system takes the batches; ends when all are in, brought up, and each question was
 * asked.
 */
export async function askWhileFed(
  system: System,
  peer: Peer,
  asks: readonly Ask[],
  batches: readonly EntryBatch[],
  sizes: ArrivalSizes,
): Promise<FedFigures> {
  const latenciesUs: number[][] = asks.map(() => []);
  let isFed = false;
  const feeding = feed(system, peer, batches).finally(() => {
    isFed = true;
  });
  const asking = async () => {
    do {
      for (let i = 0; i < asks.length; i++) await askInTurn(asks[i], latenciesUs[i], sizes);
    } while (!isFed);
  };
  const [perSecond] = await Promise.all([feeding, asking()]);
  return {
    perSecond,
    figures: latenciesUs.map((of) => {
      const latencies = new Latencies(of);
      return { p50Ms: latencies.quantileMs(0.5), p99Ms: latencies.quantileMs(0.99) };
    }),
  };
}

/**
 * Lets the feed go on between two asks; in the process of the asker the one doesn't wait for the other
 * otherwise.
 */
async function askInTurn(ask: Ask, latenciesUs: number[], { asks, roundMs }: ArrivalSizes): Promise<void> {
  const endMs = performance.now() + roundMs;
  for (let i = 0; i < asks && (i === 0 || performance.now() < endMs); i++) {
    const startMs = performance.now();
    const result = ask.run();
    if (result instanceof Promise) await result;
    latenciesUs.push((performance.now() - startMs) * 1000);
    await setImmediate();
  }
}

/** Open loop: what is late is inserted at once, and nothing is left out. */
async function feed(system: System, { refresh }: Peer, batches: readonly EntryBatch[]): Promise<number> {
  const together = Math.max(1, Math.round((system.insertEveryMs ?? ARRIVAL_MS) / ARRIVAL_MS));
  const startMs = performance.now();
  let refreshedMs = startMs;
  let taken = 0;
  for (let first = 0; first < batches.length; first += together) {
    const batch = joined(batches.slice(first, first + together));
    const waitMs = startMs + (first + together) * ARRIVAL_MS - performance.now();
    if (waitMs > 0) await setTimeout(waitMs);
    await system.insert(batch);
    taken += batch.edge.length + batch.relay.length;
    if (refresh && performance.now() >= refreshedMs + REFRESH_MS) {
      refreshedMs = performance.now();
      await refresh();
    }
  }
  const perSecond = (taken * 1000) / (performance.now() - startMs);
  await refresh?.();
  await system.caughtUp?.();
  return perSecond;
}
