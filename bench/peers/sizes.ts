/** How much is compared: what people run, and what the test suite runs. */

import type { PeerSizes } from './run.js';

const LARGE: PeerSizes = {
  entries: 1_000_000,
  projects: 200,
  seed: 1,
  rounds: 5,
  asks: 200,
  roundMs: 200,
  quietPolls: 50,
  systems: null,
  arrivals: 100_000,
  arrivalRate: 5_000,
};

/** Two of them show how each figure grows. */
export const LARGE_SIZES: readonly PeerSizes[] = [{ ...LARGE, entries: LARGE.entries / 10 }, LARGE];

export const SMALL_SIZES: PeerSizes = {
  entries: 4_000,
  projects: 10,
  seed: 1,
  rounds: 1,
  asks: 3,
  roundMs: 10,
  quietPolls: 1,
  systems: null,
  arrivals: 300,
  arrivalRate: 5_000,
};
