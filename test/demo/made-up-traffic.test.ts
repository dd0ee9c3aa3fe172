/** The demo's entries: one process from the past into the present, its rhythm, its incidents. */

import { expect, test } from 'vitest';
import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE } from '../../engine/time.js';
import { requestsPerSecond } from '../../src/demo/arrivals.js';
import { type MadeUpEntry, MadeUpTraffic } from '../../src/demo/made-up-traffic.js';

const START_US = Date.UTC(2026, 10, 23, 15, 34, 20) * 1000;
const traffic = new MadeUpTraffic(1, START_US);

/** Entries that the rate lets expect, from minute to minute. */
function expectedCount(startUs: number, endUs: number): number {
  let count = 0;
  for (let atUs = startUs; atUs < endUs; atUs += US_PER_MINUTE)
    count += 60 * requestsPerSecond(atUs + US_PER_MINUTE / 2, START_US);
  return count;
}

function touchesIncident(startUs: number, endUs: number): boolean {
  return traffic.incidents.some((incident) => incident.startUs < endUs && startUs < incident.endUs);
}

test('wherever time is cut, the entries are the same', () => {
  const fromUs = START_US - US_PER_HOUR;
  const untilUs = START_US + US_PER_HOUR;
  const inPieces: MadeUpEntry[] = [];
  for (let atUs = fromUs; atUs < untilUs; atUs += 7_000_001)
    inPieces.push(...traffic.entries(atUs, Math.min(untilUs, atUs + 7_000_001)));
  expect(new MadeUpTraffic(1, START_US).entries(fromUs, untilUs)).toEqual(inPieces);
  expect(inPieces.length).toBeGreaterThan(1000);
  for (const { timestampUs, text } of inPieces) expect(JSON.parse(text).timestamp).toBe(timestampUs);
});

test('every hour, of the past as of the present, has what the rate says; nights and weekends have less', () => {
  for (let hour = -7 * 24; hour < 24; hour += 1) {
    const startUs = START_US + hour * US_PER_HOUR;
    const endUs = startUs + US_PER_HOUR;
    if (touchesIncident(startUs, endUs)) continue;
    const expected = expectedCount(startUs, endUs);
    const off = Math.abs(traffic.entries(startUs, endUs).length - expected) / Math.sqrt(expected);
    expect(off, `standard deviations, hour ${hour}`).toBeLessThan(4.5);
  }
  const day = (count: number) =>
    expectedCount(START_US + count * US_PER_DAY, START_US + (count + 1) * US_PER_DAY);
  const hour = (count: number) =>
    expectedCount(START_US + count * US_PER_HOUR, START_US + (count + 1) * US_PER_HOUR);
  // From Monday afternoon on: the sixth day is mostly Sunday.
  expect(day(5)).toBeLessThan(0.8 * day(1));
  expect(hour(12)).toBeLessThan(0.6 * hour(0));
});

test('no minute has a rate far from that of the minute before: there is no cliff', () => {
  for (let minute = -7 * 1440; minute < 7 * 1440; minute += 1) {
    const atUs = START_US + minute * US_PER_MINUTE;
    const change = requestsPerSecond(atUs + US_PER_MINUTE, START_US) / requestsPerSecond(atUs, START_US);
    expect(Math.abs(change - 1)).toBeLessThan(0.01);
  }
});

test('in an incident a function fails and is slow, and the project has errors at the edge', () => {
  for (const { startUs, endUs, project, failing } of traffic.incidents) {
    const figures = (fromUs: number, untilUs: number) => {
      const entries = traffic.entries(fromUs, untilUs).map(({ text }) => JSON.parse(text));
      const calls = entries.filter(
        ({ metadata }) => metadata.project_ref === project.ref && metadata.function_id === failing.id,
      );
      const requests = entries.filter((entry) => entry.project === project.ref);
      const failed = (some: typeof entries) =>
        some.filter(({ metadata }) => metadata.response.status_code >= 500).length / some.length;
      const meanMs = calls.reduce((sum, { metadata }) => sum + metadata.execution_time_ms, 0) / calls.length;
      return { callErrors: failed(calls), edgeErrors: failed(requests), meanMs };
    };
    const during = figures(startUs, endUs);
    const before = figures(startUs - 2 * US_PER_HOUR, startUs);
    expect(during.callErrors).toBeGreaterThan(0.3);
    expect(before.callErrors).toBeLessThan(0.05);
    expect(during.edgeErrors).toBeGreaterThan(0.1);
    expect(before.edgeErrors).toBeLessThan(0.05);
    expect(during.meanMs).toBeGreaterThan(4 * before.meanMs);
  }
});
