/**
 * The generated entries of a comparison, in batches, as JSON text for Logring and as columns for those that
 * have tables.
 */

import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../../engine/time.js';
import { createTraffic, type Traffic } from '../generator/traffic.js';

export interface EdgeRow {
  readonly timestampUs: number;
  readonly project: string;
  readonly id: string;
  readonly message: string;
  /** As JSON text. */
  readonly metadata: string;
  readonly url: string;
  readonly rest: 0 | 1;
  readonly storage: 0 | 1;
  readonly auth: 0 | 1;
  readonly realtime: 0 | 1;
}

export interface RelayRow {
  readonly timestampUs: number;
  readonly project: string;
  readonly executionTimeMs: number;
  readonly statusCode: number;
}

export interface EntryBatch {
  readonly edgeTexts: readonly string[];
  readonly relayTexts: readonly string[];
  readonly edge: readonly EdgeRow[];
  readonly relay: readonly RelayRow[];
}

export interface EntrySizes {
  /** Of each kind. */
  readonly entries: number;
  readonly projects: number;
  readonly seed: number;
}

/**
 * 2026-11-21T07:29:43.210987Z: in the middle of every bucket. All entries lie before it, and every question
 * is asked then.
 */
export const NOW_US = 1_795_246_183_210_987;
/** A little over the seven days, so that windows cut something off. */
const SPREAD_US = 7 * US_PER_DAY + 6 * US_PER_HOUR;
/** The last of it has only entries that arrive later. */
const ARRIVALS_US = 2 * US_PER_MINUTE;
const BATCH_ENTRIES = 5_000;

export class Entries {
  readonly #sizes: EntrySizes;
  readonly #traffic: Traffic;

  constructor(sizes: EntrySizes) {
    this.#sizes = sizes;
    this.#traffic = createTraffic({ seed: sizes.seed, projectCount: sizes.projects });
  }

  /** The project with most entries. */
  get busiest(): string {
    return this.#traffic.projects[0].ref;
  }

  /** In order of time. To be read once. */
  *batches(): Generator<EntryBatch> {
    const { entries } = this.#sizes;
    const spread = { endUs: NOW_US - ARRIVALS_US, spanUs: SPREAD_US - ARRIVALS_US };
    yield* this.#spread(entries, BATCH_ENTRIES, spread);
  }

  /** So many of each kind, later than those of `batches`, which are to be read before. */
  *arrivals(count: number, batchEntries: number): Generator<EntryBatch> {
    yield* this.#spread(count, batchEntries, { endUs: NOW_US, spanUs: ARRIVALS_US });
  }

  *#spread(
    entries: number,
    batchEntries: number,
    { endUs, spanUs }: { readonly endUs: number; readonly spanUs: number },
  ): Generator<EntryBatch> {
    for (let first = 0; first < entries; first += batchEntries) {
      const count = Math.min(batchEntries, entries - first);
      const timeOf = (i: number) => endUs - Math.floor((spanUs * (entries - first - i)) / entries);
      const edgeTexts = Array.from({ length: count }, (_, i) => this.#traffic.edge(timeOf(i)));
      const relayTexts = Array.from({ length: count }, (_, i) => this.#traffic.relay(timeOf(i)));
      yield { edgeTexts, relayTexts, edge: edgeTexts.map(edgeRow), relay: relayTexts.map(relayRow) };
    }
  }
}

/** One batch of several. */
export function joined(batches: readonly EntryBatch[]): EntryBatch {
  return {
    edgeTexts: batches.flatMap(({ edgeTexts }) => edgeTexts),
    relayTexts: batches.flatMap(({ relayTexts }) => relayTexts),
    edge: batches.flatMap(({ edge }) => edge),
    relay: batches.flatMap(({ relay }) => relay),
  };
}

function edgeRow(text: string): EdgeRow {
  const { timestamp, project, id, event_message, metadata } = JSON.parse(text);
  const { url, path } = metadata.request;
  const has = (area: string) => (path.includes(area) ? 1 : 0);
  return {
    timestampUs: timestamp,
    project,
    id,
    message: event_message,
    metadata: JSON.stringify(metadata),
    url,
    rest: has('/rest'),
    storage: has('/storage'),
    auth: has('/auth'),
    realtime: has('/realtime'),
  };
}

function relayRow(text: string): RelayRow {
  const { timestamp, metadata } = JSON.parse(text);
  return {
    timestampUs: timestamp,
    project: metadata.project_ref,
    executionTimeMs: metadata.execution_time_ms,
    statusCode: metadata.response.status_code,
  };
}
