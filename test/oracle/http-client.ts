/** Feeds and asks a running service over HTTP, as its users do. */

import type {
  CountsQuery,
  CountsRow,
  EventsQuery,
  EventsRow,
  LogsQuery,
  LogsRow,
  StatsQuery,
  StatsRow,
} from './oracle.js';

const ENTRIES_PER_POST = 1_000;

export class ServiceClient {
  readonly #baseUrl: string;
  readonly #key: string;

  constructor(baseUrl: string, key: string) {
    this.#baseUrl = baseUrl;
    this.#key = key;
  }

  /** Posts the entries' JSON texts in NDJSON bodies; each must be taken. */
  async post(sourceName: string, texts: readonly string[]): Promise<void> {
    for (let first = 0; first < texts.length; first += ENTRIES_PER_POST) {
      const body = texts.slice(first, first + ENTRIES_PER_POST).join('\n');
      const response = await fetch(`${this.#baseUrl}/api/logs?source_name=${sourceName}`, {
        method: 'POST',
        headers: { 'X-API-KEY': this.#key, 'Content-Type': 'application/x-ndjson' },
        body,
      });
      const answer = await response.text();
      if (response.status !== 200) throw new Error(`posting logs: ${response.status} ${answer}`);
    }
  }

  logs(query: LogsQuery): Promise<LogsRow[]> {
    return this.#rows('logs.all', { ...query });
  }

  invocationStats(query: StatsQuery): Promise<StatsRow[]> {
    return this.#rows('functions.invocation-stats', { ...query });
  }

  apiCounts(query: CountsQuery): Promise<CountsRow[]> {
    return this.#rows('usage.api-counts', { ...query });
  }

  eventCounts(query: EventsQuery): Promise<EventsRow[]> {
    return this.#rows('logs.event-counts', { ...query });
  }

  async #rows<Row>(endpoint: string, parameters: Record<string, string>): Promise<Row[]> {
    const search = new URLSearchParams(parameters);
    const response = await fetch(`${this.#baseUrl}/api/endpoints/query/${endpoint}?${search}`, {
      headers: { 'X-API-KEY': this.#key, 'Content-Type': 'application/json; charset=utf-8' },
    });
    const text = await response.text();
    if (response.status !== 200) throw new Error(`${endpoint}?${search}: ${response.status} ${text}`);
    return (JSON.parse(text) as { result: Row[] }).result;
  }
}
