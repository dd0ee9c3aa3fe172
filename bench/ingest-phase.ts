/** Reading a topic from its beginning: how fast a service takes it in, by the clock and by processor time. */

import { monotonicUs } from '../src/system-clock.js';
import { type ChildService, startChildService } from '../test/child-service.js';
import { allowAllCores } from './cores.js';
import { readMetrics } from './service-metrics.js';

/** A reading takes the service some milliseconds. */
const POLL_MS = 200;
/** So long without a record applied: none will come. */
const STALL_US = 60_000_000;

export interface IngestFigures {
  readonly entriesPerSecond: number;
  /** Entries a second of processor time, all threads together. */
  readonly entriesPerCoreSecond: number;
}

/** A service that may use all cores. */
export async function startService(settings: Record<string, string>): Promise<ChildService> {
  const service = await startChildService(settings);
  allowAllCores(service.processId);
  return service;
}

/** Starts a service that reads one topic of so many entries from its beginning, and goes on. */
export async function ingestTopic(
  count: number,
  topic: string,
  settings: Record<string, string>,
): Promise<{ readonly service: ChildService; readonly figures: IngestFigures }> {
  const service = await startService(settings);
  let startUs = monotonicUs();
  let cpuBefore = 0;
  // The clocks start with the first entry: finding the group's coordinator and joining is not ingest.
  await poll(async () => {
    const metrics = await readMetrics(service);
    if (metrics.sum('logring_entries_applied_total', `topic="${topic}"`) > 0) return true;
    startUs = monotonicUs();
    cpuBefore = metrics.sum('process_cpu_seconds_total');
    return false;
  });
  await untilApplied(service, topic, count);
  const seconds = (monotonicUs() - startUs) / 1e6;
  const cpuSeconds = (await readMetrics(service)).sum('process_cpu_seconds_total') - cpuBefore;
  const figures = { entriesPerSecond: count / seconds, entriesPerCoreSecond: count / cpuSeconds };
  return { service, figures };
}

/** Throws when there are more, or no more come. */
export async function untilApplied(service: ChildService, topic: string, count: number): Promise<void> {
  let last = { applied: -1, atUs: monotonicUs() };
  await poll(async () => {
    const applied = (await readMetrics(service)).sum('logring_entries_applied_total', `topic="${topic}"`);
    if (applied !== last.applied) last = { applied, atUs: monotonicUs() };
    else if (monotonicUs() - last.atUs > STALL_US)
      throw new Error(`nothing more is applied: ${await (await fetch(`${service.url}/readyz`)).text()}`);
    if (applied > count) throw new Error(`${applied} entries of ${topic} were applied, ${count} produced`);
    return applied === count;
  });
}

async function poll(done: () => Promise<boolean>): Promise<void> {
  while (!(await done())) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}
