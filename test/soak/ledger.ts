/**
 * What was produced, as far as answers are judged by it: of a few projects, the probes, every entry; of the
 * mass, sums.
 *
 * An entry of a probe may be in an answer from when its request was sent, and must be in one from some time
 * after the brokers had acknowledged it.
 */

import { readFileSync, writeFileSync } from 'node:fs';
import type { Random } from '../../src/demo/random.js';
import { wallClockUs } from '../../src/system-clock.js';
import type { ModelEdgeEntry, ModelRelayEntry } from '../model/model.js';

/** A request to the brokers. */
export interface Request {
  readonly sentUs: number;
  /** Infinity until then. */
  ackedUs: number;
}

export interface Held<Entry> {
  readonly entry: Entry;
  readonly request: Request;
}

export interface Probe {
  readonly name: string;
  readonly edge: Held<ModelEdgeEntry>[];
  readonly relay: Held<ModelRelayEntry>[];
}

/** Requests by API area, in the order of the answer's columns. */
export type AreaCounts = [rest: number, storage: number, auth: number, realtime: number];

export class Sums {
  /** Records in the topics. */
  edgeRecords = 0;
  relayRecords = 0;
  /** Elements of records, usable or not, and those that are not. */
  entries = 0;
  unusable = 0;
  /** Of the mass, by second. */
  edgeBySecond = new Map<number, AreaCounts>();
  /** Of the mass, requests and errors by `project hour`, hours since the epoch. */
  relayByHour = new Map<string, [count: number, errors: number]>();
  /** Edge entries with a URL by hour, probes among them: what takes disk. */
  edgeByHour = new Map<number, number>();
}

/** How many of the newest probes half of the questions are about. */
const NEWEST = 4;

export class Ledger {
  readonly probes: Probe[] = [];
  readonly sums = new Sums();
  /** Seconds that the soak has run, over all its parts. */
  elapsedSeconds = 0;

  addProbe(): Probe {
    const probe = { name: `probe${String(this.probes.length).padStart(5, '0')}x`, edge: [], relay: [] };
    this.probes.push(probe);
    return probe;
  }

  drawProbe(random: Random): Probe {
    return random.pick(random.chance(0.5) ? this.probes.slice(-NEWEST) : this.probes);
  }

  /** To be called when nothing is on its way. */
  save(file: string): void {
    const { sums, elapsedSeconds } = this;
    const probes = this.probes.map(({ name, edge, relay }) => ({
      name,
      edge: edge.map(({ entry }) => ({ ...entry, row: entry.row.toString() })),
      relay: relay.map(({ entry }) => entry),
    }));
    const listed = Object.fromEntries(
      Object.entries(sums).map(([name, value]) => [name, value instanceof Map ? [...value] : value]),
    );
    writeFileSync(file, JSON.stringify({ savedUs: wallClockUs(), elapsedSeconds, sums: listed, probes }));
  }

  static load(file: string): Ledger {
    const ledger = new Ledger();
    const { savedUs, elapsedSeconds, sums, probes } = JSON.parse(readFileSync(file, 'utf8'));
    ledger.elapsedSeconds = elapsedSeconds;
    for (const [name, value] of Object.entries(sums))
      Object.assign(ledger.sums, { [name]: Array.isArray(value) ? new Map(value as []) : value });
    // All was acknowledged by then, some of it just before: an answer that says it is older need not have it.
    const request = { sentUs: 0, ackedUs: savedUs };
    for (const { name, edge, relay } of probes) {
      ledger.probes.push({
        name,
        edge: edge.map((entry: ModelEdgeEntry & { row: string }) => {
          return { entry: { ...entry, row: Buffer.from(entry.row) }, request };
        }),
        relay: relay.map((entry: ModelRelayEntry) => ({ entry, request })),
      });
    }
    return ledger;
  }
}
