/**
 * The demo's entries: what a few projects' users ask for, and two incidents before the demo's start. A pure
 * function of the seed, the start and the time.
 */

import { slotIndex, US_PER_HOUR, US_PER_MINUTE } from '../../engine/time.js';
import { drawArrivals, requestsPerSecond } from './arrivals.js';
import { createClient } from './clients.js';
import { type EntryProject, edgeText, type Invocation, relayText } from './entry-text.js';
import { Random, Zipf } from './random.js';
import { drawRequest } from './requests.js';

export interface MadeUpEntry {
  readonly log: 'edge' | 'relay';
  readonly timestampUs: number;
  readonly text: string;
}

interface MadeUpFunction {
  readonly id: string;
  readonly name: string;
  readonly medianMs: number;
}

interface MadeUpProject extends EntryProject {
  /** From busy to quiet. */
  readonly functions: readonly MadeUpFunction[];
  readonly functionRanks: Zipf;
}

/** A function fails and is slow; callers try again, and the whole project feels it at the edge. */
interface Incident {
  readonly startUs: number;
  readonly endUs: number;
  readonly project: MadeUpProject;
  readonly failing: MadeUpFunction;
  /** At its worst, as are the other figures. */
  readonly errorShare: number;
  readonly slowdown: number;
  readonly retriesPerSecond: number;
  readonly edgeErrorShare: number;
}

const FUNCTION_SKEW = 0.7;
/** From busy to quiet. */
export const PROJECTS: readonly MadeUpProject[] = [
  project('corner-bakery', 'PRO', { search: 38, checkout: 140, 'send-mail': 260, webhook: 24, resize: 480 }),
  project('bike-rental', 'PRO', { availability: 52, webhook: 30, report: 620 }),
  project('book-club', 'PAYG', { recommend: 180, 'send-mail': 240 }),
  project('night-market', 'ENTERPRISE', { heartbeat: 9, sync: 310 }),
];
const PROJECT_RANKS = new Zipf(PROJECTS.length, 2);
const CLIENT_COUNT = 500;
const QUERY_STRING_SHARE = 0.45;
const RELAY_SHARE = 0.45;
const EXECUTION_TIME_SPREAD = 0.45;
const ERROR_SHARE = 0.012;
const ERROR_STATUSES = [400, 401, 404, 409, 429, 500, 504];
/** The share of an incident in which it grows, and again in which it ends. */
const INCIDENT_RAMP = 0.2;

function project(ref: string, tier: string, medianMs: Readonly<Record<string, number>>): MadeUpProject {
  const functions = Object.entries(medianMs).map(([name, ms]) => ({ id: name, name, medianMs: ms }));
  return { ref, tier, functions, functionRanks: new Zipf(functions.length, FUNCTION_SKEW) };
}

export class MadeUpTraffic {
  readonly incidents: readonly Incident[];
  readonly #seed: number;
  readonly #startUs: number;
  readonly #clients;

  /** The incidents are placed before `startUs`, the time at which the demo starts. */
  constructor(seed: number, startUs: number) {
    this.#seed = seed;
    this.#startUs = startUs;
    const random = new Random(seed);
    this.#clients = Array.from({ length: CLIENT_COUNT }, () => createClient(random));
    const [bakery] = PROJECTS;
    const [search, checkout] = bakery.functions;
    this.incidents = [
      {
        startUs: startUs - 5 * US_PER_HOUR,
        endUs: startUs - 5 * US_PER_HOUR + 20 * US_PER_MINUTE,
        project: bakery,
        failing: checkout,
        errorShare: 0.85,
        slowdown: 14,
        retriesPerSecond: 0.12,
        edgeErrorShare: 0.35,
      },
      {
        startUs: startUs - 34 * US_PER_MINUTE,
        endUs: startUs - 28 * US_PER_MINUTE,
        project: bakery,
        failing: search,
        errorShare: 0.7,
        slowdown: 30,
        retriesPerSecond: 0.1,
        edgeErrorShare: 0.2,
      },
    ];
  }

  /** Entries of `[startUs, endUs)`, in order of time. */
  entries(startUs: number, endUs: number): MadeUpEntry[] {
    const entries: MadeUpEntry[] = [];
    const endMinute = slotIndex(endUs - 1, US_PER_MINUTE);
    for (let minute = slotIndex(startUs, US_PER_MINUTE); minute <= endMinute; minute += 1) {
      for (const entry of this.#entriesOfMinute(minute)) {
        if (entry.timestampUs >= startUs && entry.timestampUs < endUs) entries.push(entry);
      }
    }
    return entries;
  }

  #entriesOfMinute(minute: number): MadeUpEntry[] {
    const random = new Random(this.#seed * 2 ** 32 + minute);
    const startUs = minute * US_PER_MINUTE;
    const middleUs = startUs + US_PER_MINUTE / 2;
    const entries = drawArrivals(random, startUs, requestsPerSecond(middleUs, this.#startUs)).map(
      (timestampUs) => this.#entry(random, timestampUs),
    );
    for (const incident of this.incidents) {
      const retriesPerSecond = incident.retriesPerSecond * severityAt(incident, middleUs);
      for (const timestampUs of drawArrivals(random, startUs, retriesPerSecond)) {
        entries.push(this.#call(random, timestampUs, incident.project, incident.failing));
      }
    }
    return entries.sort((a, b) => a.timestampUs - b.timestampUs);
  }

  #entry(random: Random, timestampUs: number): MadeUpEntry {
    const project = PROJECTS[PROJECT_RANKS.draw(random)];
    if (random.chance(RELAY_SHARE)) {
      const invoked = project.functions[project.functionRanks.draw(random)];
      return this.#call(random, timestampUs, project, invoked);
    }
    const request = drawRequest(random, QUERY_STRING_SHARE, project.ref);
    const client = random.pick(this.#clients);
    let { status } = request;
    for (const incident of this.incidents) {
      if (incident.project !== project) continue;
      if (random.chance(incident.edgeErrorShare * severityAt(incident, timestampUs)))
        status = random.pick([500, 502, 503, 504]);
    }
    const text = edgeText(random, timestampUs, project, { ...request, status }, client);
    return { log: 'edge', timestampUs, text };
  }

  #call(random: Random, timestampUs: number, project: MadeUpProject, invoked: MadeUpFunction): MadeUpEntry {
    const client = random.pick(this.#clients);
    let status = random.chance(ERROR_SHARE) ? random.pick(ERROR_STATUSES) : 200;
    let executionTimeMs = invoked.medianMs * Math.exp(random.normal() * EXECUTION_TIME_SPREAD);
    for (const incident of this.incidents) {
      if (incident.failing !== invoked) continue;
      const severity = severityAt(incident, timestampUs);
      executionTimeMs *= 1 + incident.slowdown * severity;
      if (random.chance(incident.errorShare * severity)) status = 500;
    }
    const invocation: Invocation = { invoked, isPreflight: false, status, executionTimeMs };
    return { log: 'relay', timestampUs, text: relayText(random, timestampUs, project, invocation, client) };
  }
}

/** 0 outside, 1 at its worst. */
function severityAt({ startUs, endUs }: Incident, timeUs: number): number {
  const rampUs = INCIDENT_RAMP * (endUs - startUs);
  return Math.max(0, Math.min(1, (timeUs - startUs) / rampUs, (endUs - timeUs) / rampUs));
}
