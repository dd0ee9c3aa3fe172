/** How much the bench of ingest does: what people run, and what the test suite runs. */

export interface IngestSizes {
  /** Of each topic. */
  readonly entries: number;
  readonly rounds: number;
  /** How long each endpoint is asked in a round. */
  readonly seconds: number;
  /** Each with the first number of partitions. */
  readonly projects: readonly number[];
  /** Each with the first number of projects. */
  readonly partitions: readonly number[];
  /** Entries a second, half of each kind, that arrive while it is looked when an entry shows. */
  readonly rate: number;
  readonly probes: number;
  readonly seed: number;
}

export const LARGE_SIZES: IngestSizes = {
  entries: 200_000,
  rounds: 5,
  seconds: 1,
  projects: [1_000, 10, 10_000],
  partitions: [4, 1, 16],
  rate: 20_000,
  probes: 400,
  seed: 1,
};

export const SMALL_SIZES: IngestSizes = {
  entries: 2_000,
  rounds: 1,
  seconds: 0.1,
  projects: [20],
  partitions: [3, 1],
  rate: 400,
  probes: 5,
  seed: 1,
};
