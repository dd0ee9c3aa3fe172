/**
 * The generator of realistic traffic: the same from the same seed, and of the shape and size that benches
 * rely on.
 */

import { expect, test } from 'vitest';
import { createTraffic } from '../../bench/generator/traffic.js';
import { Random, Zipf } from '../../src/demo/random.js';

const START_US = 1_795_244_400_000_000;

function entries(seed: number, kind: 'edge' | 'relay', count: number): string[] {
  const traffic = createTraffic({ seed, projectCount: 100 });
  return Array.from({ length: count }, (_, index) => traffic[kind](START_US + index * 50));
}

test('one seed gives one stream, another seed another', () => {
  expect(entries(7, 'edge', 50)).toEqual(entries(7, 'edge', 50));
  expect(entries(7, 'relay', 50)).toEqual(entries(7, 'relay', 50));
  expect(entries(7, 'edge', 50)).not.toEqual(entries(8, 'edge', 50));
});

test('entries have the size of real ones, about 2.2 KB and 1 KB', () => {
  const meanBytes = (texts: string[]): number => Buffer.byteLength(texts.join('')) / texts.length;
  const edgeBytes = meanBytes(entries(1, 'edge', 2_000));
  const relayBytes = meanBytes(entries(1, 'relay', 2_000));
  expect(edgeBytes).toBeGreaterThan(2_100);
  expect(edgeBytes).toBeLessThan(2_400);
  expect(relayBytes).toBeGreaterThan(950);
  expect(relayBytes).toBeLessThan(1_150);
});

test('entries parse, and hold what the three queries read', () => {
  const traffic = createTraffic({
    seed: 3,
    projectCount: 20,
    tierOf: (index) => (index === 0 ? 'FREE' : null),
  });
  const refs = new Set(traffic.projects.map((project) => project.ref));
  const functionIds = new Set(traffic.projects.flatMap((project) => project.functions.map(({ id }) => id)));
  let withQuery = 0;
  let fractional = 0;
  for (let index = 0; index < 2_000; index += 1) {
    const edge = JSON.parse(traffic.edge(START_US + index));
    expect(edge.timestamp).toBe(START_US + index);
    expect(refs).toContain(edge.project);
    expect(edge.project_tier).toBe(edge.project === traffic.projects[0].ref ? 'FREE' : undefined);
    const { url, path, search } = edge.metadata.request;
    expect(url).toBe(`https://${edge.project}.supabase.co${path}${search ?? ''}`);
    if (search !== undefined) withQuery += 1;
    const { metadata } = JSON.parse(traffic.relay(START_US + index));
    expect(refs).toContain(metadata.project_ref);
    expect(functionIds).toContain(metadata.function_id);
    expect(metadata.response.status_code).toBeGreaterThan(99);
    if (!Number.isInteger(metadata.execution_time_ms)) fractional += 1;
  }
  expect(withQuery / 2_000).toBeCloseTo(0.44, 1);
  expect(fractional / 2_000).toBeCloseTo(0.3, 1);
});

test('the random source is uniform, and Zipf is not', () => {
  const random = new Random(1);
  const counts = new Array<number>(10).fill(0);
  for (let index = 0; index < 100_000; index += 1) counts[random.below(10)] += 1;
  for (const count of counts) expect(Math.abs(count - 10_000)).toBeLessThan(400);

  const zipf = new Zipf(1_000, 1);
  const draws = new Array<number>(1_000).fill(0);
  for (let index = 0; index < 100_000; index += 1) draws[zipf.draw(random)] += 1;
  expect(draws[0] / draws[9]).toBeGreaterThan(8);
  expect(draws[0] / draws[9]).toBeLessThan(12);
});
