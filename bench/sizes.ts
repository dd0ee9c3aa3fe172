/** How much the bench does: what people run, and what the test suite runs. */

export interface BenchSizes {
  /** Entries loaded. */
  readonly edge: number;
  readonly relay: number;
  /** Entries a second, half edge and half relay, that arrive while the endpoints are asked. */
  readonly rate: number;
  /** How long each endpoint is asked, open and closed loop each. */
  readonly seconds: number;
  readonly projects: number;
  readonly seed: number;
}

export const LARGE_SIZES: BenchSizes = {
  edge: 1_000_000,
  relay: 1_000_000,
  rate: 5_000,
  seconds: 15,
  projects: 200,
  seed: 1,
};

export const SMALL_SIZES: BenchSizes = {
  edge: 4_000,
  relay: 4_000,
  rate: 500,
  seconds: 1,
  projects: 20,
  seed: 1,
};
