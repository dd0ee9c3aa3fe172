/**
 * How long requests took: a histogram in prom-client's registry. Its own class makes texts of all labels and of
 * the bound each time, which takes a twentieth of the time of a cached answer.
 */

import type { Metric, Registry } from 'prom-client';
import { entryOf } from '../../engine/entry-of.js';

const NAME = 'logring_http_request_duration_seconds';

/** Requests of one route, status and cache outcome. */
interface Series {
  readonly labels: Readonly<Record<string, string | number>>;
  /** By bucket; the last is for what is above all bounds. */
  readonly counts: Float64Array;
  sumSeconds: number;
}

interface Value {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

export class RequestSeconds {
  readonly name = NAME;
  readonly help = 'Time from a complete request to its answer; writing it is not counted';
  readonly type = 'histogram';
  readonly labelNames = ['route', 'code', 'cache'];
  readonly #bounds: readonly number[];
  readonly #series = new Map<string, Map<number, Map<string, Series>>>();

  /** The upper bounds of the buckets in seconds, ascending. */
  constructor(bounds: readonly number[], registry: Registry) {
    this.#bounds = bounds;
    // The type names the library's own classes, of which a registry calls only `get`.
    registry.registerMetric(this as unknown as Metric);
  }

  observe(route: string, code: number, cache: string, seconds: number): void {
    const series = this.#series.get(route)?.get(code)?.get(cache) ?? this.#begin(route, code, cache);
    let bucket = 0;
    while (bucket < this.#bounds.length && seconds > this.#bounds[bucket]) bucket += 1;
    series.counts[bucket] += 1;
    series.sumSeconds += seconds;
  }

  /** As prom-client asks for it. */
  get() {
    const values = [...this.#series.values()]
      .flatMap((byCode) => [...byCode.values()].flatMap((byCache) => [...byCache.values()]))
      .flatMap((series) => this.#valuesOf(series));
    const { name, help, type } = this;
    return Promise.resolve({ name, help, type, aggregator: 'sum', values });
  }

  #begin(route: string, code: number, cache: string): Series {
    const byCode = entryOf(this.#series, route, () => new Map<number, Map<string, Series>>());
    const byCache = entryOf(byCode, code, () => new Map<string, Series>());
    return entryOf(byCache, cache, () => ({
      labels: { route, code, cache },
      counts: new Float64Array(this.#bounds.length + 1),
      sumSeconds: 0,
    }));
  }

  #valuesOf({ labels, counts, sumSeconds }: Series): Value[] {
    let count = 0;
    const buckets = [...this.#bounds, '+Inf'].map((le, i): Value => {
      count += counts[i];
      return { metricName: `${NAME}_bucket`, labels: { le, ...labels }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${NAME}_sum`, labels, value: sumSeconds },
      { metricName: `${NAME}_count`, labels, value: count },
    ];
  }
}
