/**
 * A running service against the same queries in SQL, row by row: all tiers, intervals and kinds of
 * expression.
 */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTraffic } from '../../bench/generator/traffic.js';
import { Random } from '../../src/demo/random.js';
import { percentileProblem } from '../model/quantiles.js';
import { type FixedService, startFixedService } from './fixed-service.js';
import type { ServiceClient } from './http-client.js';
import { createOracle, type Oracle, type OracleStatsRow, type StatsRow } from './oracle.js';
import { countsQueries, edgesUs, eventsQueries, logsQueries, statsQueries } from './questions.js';

const SEED = 20_261_121;
const ENTRY_COUNT = 20_000;
/** 2026-11-21T07:29:43.210987Z: in the middle of every bucket. */
const NOW_US = 1_795_246_183_210_987;
/** Scales of the entries' ages, so that every window holds many: from a second to the longest retention. */
const AGE_SCALES_US = [30e6, 600e6, 3_600e6, 12 * 3_600e6, 3 * 86_400e6, 25 * 86_400e6];
const TIERS = [null, 'FREE', 'PRO', 'PAYG', 'ENTERPRISE', null];

const traffic = createTraffic({ seed: SEED, projectCount: 12, tierOf: (index) => TIERS[index % 6] });
const projects = traffic.projects.map((project) => project.ref);
const random = new Random(SEED);

function drawTimesUs(): number[] {
  // Each edge is drawn often enough that most projects have an entry exactly there.
  const times = edgesUs(NOW_US).flatMap((edge) => new Array<number>(25).fill(edge));
  while (times.length < ENTRY_COUNT) {
    const ageUs = Math.floor(-Math.log(1 - random.float()) * random.pick(AGE_SCALES_US));
    if (ageUs < 90 * 86_400e6) times.push(NOW_US - ageUs);
  }
  for (let last = times.length - 1; last > 0; last -= 1) {
    const other = random.below(last + 1);
    [times[last], times[other]] = [times[other], times[last]];
  }
  return times;
}

const edgeTimesUs = drawTimesUs();
const relayTimesUs = drawTimesUs();
let oracle: Oracle;
let fixed: FixedService;
let client: ServiceClient;

beforeAll(async () => {
  const edgeTexts = edgeTimesUs.map((timeUs) => traffic.edge(timeUs));
  const relayTexts = relayTimesUs.map((timeUs) => traffic.relay(timeUs));
  oracle = await createOracle(edgeTexts, relayTexts);
  fixed = await startFixedService(NOW_US);
  client = fixed.client;
  await client.post(fixed.edgeTopic, edgeTexts);
  await client.post(fixed.relayTopic, relayTexts);
  await fixed.caughtUp();
});

afterAll(async () => {
  await fixed?.stop();
  oracle?.close();
});

test('logs.all answers as SQL does', async () => {
  const edges = [...new Set(edgeTimesUs)].filter((timeUs) => edgesUs(NOW_US).includes(timeUs));
  const boundsUs = [...edges, ...edgeTimesUs.slice(0, 2 * edges.length)];
  let rowCount = 0;
  for (const query of logsQueries(random, projects, boundsUs)) {
    const expected = await oracle.logs(query, NOW_US);
    expect(await client.logs(query), JSON.stringify(query)).toEqual(expected);
    rowCount += expected.length;
  }
  expect(rowCount).toBeGreaterThan(10_000);
});

test('functions.invocation-stats answers as SQL does', async () => {
  let digestCount = 0;
  let rowCount = 0;
  for (const query of statsQueries(traffic, [0, 1, 2, 5, 11])) {
    const expected = await oracle.invocationStats(query, NOW_US);
    const answered = await client.invocationStats(query);
    expect(answered.map(exactColumns), JSON.stringify(query)).toEqual(expected.map(exactColumns));
    answered.forEach((row, index) => {
      expect(approximateColumnsProblem(expected[index], row), JSON.stringify(query)).toBeNull();
    });
    rowCount += expected.length;
    digestCount += expected.filter((row) => row.sortedTimesMs.length > 512).length;
  }
  expect(rowCount).toBeGreaterThan(3_000);
  expect(digestCount).toBeGreaterThan(10);
});

test('usage.api-counts answers as SQL does', async () => {
  let rowCount = 0;
  for (const query of countsQueries(projects)) {
    const expected = await oracle.apiCounts(query, NOW_US);
    expect(await client.apiCounts(query), JSON.stringify(query)).toEqual(expected);
    rowCount += expected.length;
  }
  expect(rowCount).toBeGreaterThan(1_000);
});

test('logs.event-counts answers as SQL does', async () => {
  let rowCount = 0;
  let warningCount = 0;
  for (const query of eventsQueries(projects)) {
    const expected = await oracle.eventCounts(query, NOW_US);
    expect(await client.eventCounts(query), JSON.stringify(query)).toEqual(expected);
    rowCount += expected.length;
    warningCount += expected.filter((row) => row.warning_count > 0 && row.error_count > 0).length;
  }
  expect(rowCount).toBeGreaterThan(1_500);
  expect(warningCount).toBeGreaterThan(100);
});

/** The column names in their order are part of what is compared. */
function exactColumns(row: StatsRow | OracleStatsRow): unknown {
  const { timestamp, min_execution_time, max_execution_time, count, error_count } = row;
  const names = Object.keys(row).filter((name) => name !== 'sortedTimesMs');
  return [names.join(), timestamp, min_execution_time, max_execution_time, count, error_count];
}

function approximateColumnsProblem(expected: OracleStatsRow, answered: StatsRow): string | null {
  const meanMs = expected.avg_execution_time;
  const answeredMs = answered.avg_execution_time;
  if (meanMs === null || answeredMs === null) {
    if (meanMs !== answeredMs) return `mean is ${answeredMs}, expected ${meanMs}`;
  } else if (Math.abs(answeredMs - meanMs) > 1e-12 * meanMs) {
    // SQL's sum depends on order in its last digits; that ours is exact is the model's to test.
    return `mean is ${answeredMs}, expected ${meanMs}`;
  }
  return (
    percentileProblem(expected.sortedTimesMs, 95, answered.p95_execution_time) ??
    percentileProblem(expected.sortedTimesMs, 99, answered.p99_execution_time)
  );
}
