/**
 * Asks all peers in turn, round after round, so that what else happens on the machine happens to all of them.
 */

import { performance } from 'node:perf_hooks';
import { median } from '../median.js';
import { Latencies } from '../percentiles.js';
import type { Ask } from './peer.js';

export interface RoundSizes {
  readonly rounds: number;
  /** A peer is asked so often in a round, or for so long, at least three times. */
  readonly asks: number;
  readonly roundMs: number;
}

/** Medians over the rounds, in ms. */
export interface Figure {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const LEAST_ASKS = 3;

/** A round of which nothing is kept. */
export async function warmUp(asks: readonly Ask[], sizes: RoundSizes): Promise<void> {
  for (const ask of asks) await askForAWhile(ask, sizes);
}

/** In the order of the asks. */
export async function measureRounds(asks: readonly Ask[], sizes: RoundSizes): Promise<Figure[]> {
  const rounds: Latencies[][] = asks.map(() => []);
  for (let round = 0; round < sizes.rounds; round++)
    for (let i = 0; i < asks.length; i++) rounds[i].push(await askForAWhile(asks[i], sizes));
  return rounds.map((latencies) => ({
    p50Ms: median(latencies.map((round) => round.quantileMs(0.5))),
    p99Ms: median(latencies.map((round) => round.quantileMs(0.99))),
  }));
}

async function askForAWhile(ask: Ask, { asks, roundMs }: RoundSizes): Promise<Latencies> {
  const latenciesUs: number[] = [];
  const endMs = performance.now() + roundMs;
  while (latenciesUs.length < asks && (latenciesUs.length < LEAST_ASKS || performance.now() < endMs)) {
    const startMs = performance.now();
    const result = ask.run();
    if (result instanceof Promise) await result;
    latenciesUs.push((performance.now() - startMs) * 1000);
  }
  return new Latencies(latenciesUs);
}
