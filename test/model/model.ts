/**
 * The reference model: keeps every decoded entry in an array and answers by filter and sort. It is written
 * from the contract alone and shares no code with the engine; that is its use.
 */

const SECOND = 1_000_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export interface ModelEdgeEntry {
  readonly timestampUs: number;
  readonly project: string;
  readonly keptDays: number;
  readonly idHash: number;
  readonly row: Buffer;
  readonly url: string | null;
  readonly path: string;
  /** 0: not packed. */
  readonly statusCode: number;
}

export interface ModelRelayEntry {
  readonly timestampUs: number;
  readonly project: string;
  readonly functionId: string | null;
  readonly statusCode: number;
  readonly executionTimeMs: number | null;
}

export interface LogsQuestion {
  readonly project: string;
  readonly tier: string;
  /** As on the wire: rows are strictly later. */
  readonly afterUs: number | null;
  readonly untilUs: number | null;
}

export interface StatsQuestion {
  readonly project: string;
  readonly functionId: string | null;
  readonly interval: string;
}

export interface EventsQuestion {
  readonly project: string;
  readonly tier: string;
  readonly interval: string;
}

export interface CountsQuestion {
  /** The source of a regular expression that means the same to RE2 and to JavaScript. */
  readonly expression: string;
  readonly interval: string;
}

export interface StatsAnswer {
  readonly startUs: number;
  readonly count: number;
  readonly errorCount: number;
  readonly meanMs: number | null;
  /** All execution times, in rising order: min, max and any quantile are read off it. */
  readonly sortedMs: readonly number[];
}

export interface CountsAnswer {
  readonly startUs: number;
  readonly counts: readonly number[];
}

const LEVELS = [
  { innerUs: SECOND, keptUs: 5 * MINUTE },
  { innerUs: MINUTE, keptUs: HOUR },
  { innerUs: HOUR, keptUs: DAY },
  { innerUs: DAY, keptUs: 7 * DAY },
];

const INTERVALS: Readonly<Record<string, readonly [level: number, backUs: number]>> = {
  '5min': [0, 5 * MINUTE],
  '15min': [1, 15 * MINUTE],
  '1hr': [1, HOUR],
  '1day': [2, DAY],
  '7day': [3, 7 * DAY],
};

const WINDOWS: Readonly<Record<string, readonly [backUs: number, bucketUs: number]>> = {
  hourly: [HOUR, HOUR],
  daily: [7 * DAY, DAY],
  minutely: [60 * MINUTE, MINUTE],
};

const EVENT_LEVELS = [
  { innerUs: MINUTE, keptUs: HOUR },
  { innerUs: HOUR, keptUs: DAY },
  { innerUs: DAY, keptUs: 90 * DAY },
];
const EVENT_INTERVALS = ['minutely', 'hourly', 'daily'];

const TIER_DAYS: Readonly<Record<string, number>> = { FREE: 1, PRO: 7, PAYG: 90, ENTERPRISE: 90 };

export function daysOfTier(tier: string): number {
  return Object.hasOwn(TIER_DAYS, tier) ? TIER_DAYS[tier] : 1;
}

function truncate(timestampUs: number, unitUs: number): number {
  return timestampUs - (((timestampUs % unitUs) + unitUs) % unitUs);
}

/**
 * An entry, the log it came from, and what still holds it: rows, usage and the levels of event counts, or the
 * four levels of the statistics. Never changed.
 */
interface Held<Entry> {
  readonly entry: Entry;
  readonly log: string;
  readonly heldBy: readonly boolean[];
}

export class Model {
  #edge: Held<ModelEdgeEntry>[] = [];
  #relay: Held<ModelRelayEntry>[] = [];

  applyEdge(entry: ModelEdgeEntry, log = ''): void {
    this.#edge.push({ entry, log, heldBy: [true, entry.url !== null, true, true, true] });
  }

  applyRelay(entry: ModelRelayEntry, log = ''): void {
    this.#relay.push({ entry, log, heldBy: [true, true, true, true] });
  }

  /** Forgets the partitions that no query at nowUs or later can see. */
  expire(nowUs: number): void {
    const isKept = (timestampUs: number, { innerUs, keptUs }: (typeof LEVELS)[number]): boolean =>
      truncate(timestampUs, innerUs) >= truncate(nowUs - keptUs, innerUs);
    this.#edge = this.#edge.map(({ entry, log, heldBy: [inRows, inUsage, ...inLevels] }) => {
      const hourEnd = truncate(entry.timestampUs, HOUR) + HOUR;
      const rowsKept = hourEnd > nowUs - entry.keptDays * DAY;
      const levels = inLevels.map((held, i) => held && isKept(entry.timestampUs, EVENT_LEVELS[i]));
      return { entry, log, heldBy: [inRows && rowsKept, inUsage && hourEnd > nowUs - 7 * DAY, ...levels] };
    });
    this.#relay = this.#relay.map(({ entry, log, heldBy }) => {
      const levels = heldBy.map((held, level) => held && isKept(entry.timestampUs, LEVELS[level]));
      return { entry, log, heldBy: levels };
    });
  }

  /** Returns how to make what is held of a log again what it is now. */
  remember(log: string): () => void {
    const edge = this.#edge.filter((held) => held.log === log);
    const relay = this.#relay.filter((held) => held.log === log);
    return () => {
      this.#edge = [...this.#edge.filter((held) => held.log !== log), ...edge];
      this.#relay = [...this.#relay.filter((held) => held.log !== log), ...relay];
    };
  }

  logs({ project, tier, afterUs, untilUs }: LogsQuestion, nowUs: number, limit = 100): Buffer[] {
    return this.#edge
      .filter(({ entry, heldBy }) => entry.project === project && heldBy[0])
      .map(({ entry }) => entry)
      .filter((entry) => entry.timestampUs >= nowUs - daysOfTier(tier) * DAY)
      .filter((entry) => entry.timestampUs >= nowUs - entry.keptDays * DAY)
      .filter((entry) => afterUs === null || entry.timestampUs > afterUs)
      .filter((entry) => untilUs === null || entry.timestampUs <= untilUs)
      .sort((a, b) => b.timestampUs - a.timestampUs || a.idHash - b.idHash || Buffer.compare(a.row, b.row))
      .slice(0, limit)
      .map((entry) => entry.row);
  }

  invocationStats({ project, functionId, interval }: StatsQuestion, nowUs: number): StatsAnswer[] {
    const [level, backUs] = Object.hasOwn(INTERVALS, interval) ? INTERVALS[interval] : INTERVALS['1day'];
    const { innerUs } = LEVELS[level];
    const buckets = new Map<number, ModelRelayEntry[]>();
    for (const { entry, heldBy } of this.#relay) {
      if (entry.project !== project || !heldBy[level]) continue;
      if (functionId !== null && functionId !== '' && entry.functionId !== functionId) continue;
      const startUs = truncate(entry.timestampUs, innerUs);
      if (startUs < truncate(nowUs - backUs, innerUs) || startUs > truncate(nowUs, innerUs)) continue;
      const bucket = buckets.get(startUs) ?? [];
      bucket.push(entry);
      buckets.set(startUs, bucket);
    }
    return [...buckets]
      .sort(([a], [b]) => a - b)
      .map(([startUs, entries]) => {
        const times = entries.map((entry) => entry.executionTimeMs).filter((time) => time !== null);
        return {
          startUs,
          count: entries.length,
          errorCount: entries.filter((entry) => entry.statusCode >= 400).length,
          meanMs: times.length === 0 ? null : exactSum(times) / times.length,
          sortedMs: times.sort((a, b) => a - b),
        };
      });
  }

  /** Of each bucket the entries that were ok, warnings and errors. */
  eventCounts({ project, tier, interval }: EventsQuestion, nowUs: number): CountsAnswer[] {
    const level = EVENT_INTERVALS.indexOf(interval);
    const { innerUs } = EVENT_LEVELS[level];
    const backUs = interval === 'daily' ? daysOfTier(tier) * DAY : EVENT_LEVELS[level].keptUs;
    const buckets = new Map<number, number[]>();
    for (const { entry, heldBy } of this.#edge) {
      if (entry.project !== project || !heldBy[2 + level]) continue;
      const startUs = truncate(entry.timestampUs, innerUs);
      if (startUs < truncate(nowUs - backUs, innerUs) || startUs > truncate(nowUs, innerUs)) continue;
      const counts = buckets.get(startUs) ?? [0, 0, 0];
      buckets.set(startUs, counts);
      counts[entry.statusCode >= 500 ? 2 : entry.statusCode >= 400 ? 1 : 0] += 1;
    }
    return [...buckets].sort(([a], [b]) => a - b).map(([startUs, counts]) => ({ startUs, counts }));
  }

  apiCounts({ expression, interval }: CountsQuestion, nowUs: number): CountsAnswer[] {
    const [backUs, bucketUs] = WINDOWS[interval];
    const pattern = new RegExp(expression, 'u');
    const buckets = new Map<number, number[]>();
    for (const { entry, heldBy } of this.#edge) {
      if (!heldBy[1] || entry.timestampUs < nowUs - backUs || entry.timestampUs > nowUs) continue;
      if (!pattern.test(entry.url!)) continue;
      const startUs = truncate(entry.timestampUs, bucketUs);
      const counts = buckets.get(startUs) ?? [0, 0, 0, 0];
      buckets.set(startUs, counts);
      ['/rest', '/storage', '/auth', '/realtime'].forEach((area, column) => {
        if (entry.path.includes(area)) counts[column] += 1;
      });
    }
    return [...buckets].sort(([a], [b]) => a - b).map(([startUs, counts]) => ({ startUs, counts }));
  }
}

/** The sum as if computed with unlimited digits and rounded once: Shewchuk's non-overlapping partial sums. */
export function exactSum(values: readonly number[]): number {
  let partials: number[] = [];
  for (const value of values) {
    let rest = value;
    const next: number[] = [];
    for (const partial of partials) {
      const sum = rest + partial;
      const error = Math.abs(rest) < Math.abs(partial) ? rest - (sum - partial) : partial - (sum - rest);
      if (error !== 0) next.push(error);
      rest = sum;
    }
    next.push(rest);
    partials = next;
  }
  return roundedSum(partials);
}

/** Adds non-overlapping partials, smallest first, and settles a tie by what lies below it. */
function roundedSum(partials: number[]): number {
  let high = partials.pop() ?? 0;
  let low = 0;
  while (partials.length > 0 && low === 0) {
    const before = high;
    const partial = partials.pop()!;
    high = before + partial;
    low = partial - (high - before);
  }
  const below = partials.at(-1) ?? 0;
  if ((low < 0 && below < 0) || (low > 0 && below > 0)) {
    const doubled = 2 * low;
    const next = high + doubled;
    if (doubled === next - high) high = next;
  }
  return high;
}
