/**
 * Metrics that are read when they are scraped, so that what nobody scrapes costs nothing and series of what
 * is gone are gone.
 */

import { Counter, Gauge, type Registry } from 'prom-client';

type Add<Label extends string> = (labels: Partial<Record<Label, string | number>>, value: number) => void;

export class Readings {
  readonly #registry: Registry;
  readonly #preparations: (() => void)[] = [];

  constructor(registry: Registry) {
    this.#registry = registry;
  }

  /** What several readings take from is counted before each scrape. */
  before(prepare: () => void): void {
    this.#preparations.push(prepare);
  }

  /** To be called before each scrape. */
  prepare(): void {
    for (const prepare of this.#preparations) prepare();
  }

  /** Readings of one label set add up. A name that ends with _total is a counter, any other a gauge. */
  read<Label extends string>(
    name: string,
    help: string,
    labelNames: Label[],
    collect: (add: Add<Label>) => void,
  ): void {
    const Kind = name.endsWith('_total') ? Counter<Label> : Gauge<Label>;
    const metric = new Kind({
      name,
      help,
      labelNames,
      registers: [this.#registry],
      collect: () => {
        metric.reset();
        collect((labels, value) => metric.inc(labels, value));
      },
    });
  }

  /** A metric without labels; null leaves it out. */
  one(name: string, help: string, value: () => number | null): void {
    this.read(name, help, [], (add) => {
      const reading = value();
      if (reading !== null) add({}, reading);
    });
  }
}
