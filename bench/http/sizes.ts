/** How much the bench of HTTP does: what people run, and what the test suite runs. */

export interface HttpSizes {
  /** Entries of each kind that are there, most of them of the last hour. */
  readonly entries: number;
  readonly projects: number;
  readonly rounds: number;
  /** How long each phase of a round is. */
  readonly seconds: number;
  /** Entries a second, half of each kind, that arrive from Kafka. */
  readonly ingestRate: number;
  /** Requests a second of the open loop meanwhile. */
  readonly requestRate: number;
  readonly seed: number;
}

export const LARGE_SIZES: HttpSizes = {
  entries: 50_000,
  projects: 50,
  rounds: 5,
  seconds: 4,
  ingestRate: 20_000,
  requestRate: 2_000,
  seed: 1,
};

export const SMALL_SIZES: HttpSizes = {
  entries: 2_000,
  projects: 3,
  rounds: 1,
  seconds: 0.1,
  ingestRate: 400,
  requestRate: 100,
  seed: 1,
};
