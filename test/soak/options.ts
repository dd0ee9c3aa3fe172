/** What a soak is told: how long, how much, how often something is killed. */

export interface SoakOptions {
  /** Where everything lies that a stopped soak goes on with: brokers, store, ledger, samples. */
  readonly directory: string;
  readonly seconds: number;
  /** Half of them edge, half relay. */
  readonly entriesPerSecond: number;
  readonly queriesPerSecond: number;
  /** Between two SIGKILLs of the service; 0: never. */
  readonly killSeconds: number;
  /** Between two restarts of a broker, one after another; 0: never. */
  readonly restartSeconds: number;
  readonly sampleSeconds: number;
  /** Of the mass of entries; the probes come on top. */
  readonly projects: number;
  /** So many that the store has more files than it holds open. */
  readonly edgePartitions: number;
  readonly relayPartitions: number;
  /**
   * So much live traffic lies in the topics at the start, so that what is held for an hour or two is full from the
   * beginning.
   */
  readonly pastSeconds: number;
  readonly budgetMb: number;
  readonly seed: number;
}

/** What is bounded fills up in the first quarter; what counts after it has room for two ends of an hour of the clock. */
export const USUAL: Omit<SoakOptions, 'directory'> = {
  seconds: 6_300,
  entriesPerSecond: 3_000,
  queriesPerSecond: 200,
  killSeconds: 180,
  restartSeconds: 240,
  sampleSeconds: 15,
  projects: 200,
  edgePartitions: 12,
  relayPartitions: 12,
  pastSeconds: 7_200,
  budgetMb: 512,
  seed: 1,
};
