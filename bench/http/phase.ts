/** One phase of the bench of HTTP: a client asks for a while, and what the server's process spent on it. */

import { readFileSync } from 'node:fs';
import { TEST_KEY } from '../../test/child-service.js';
import { reportOf, startChild } from '../child-process.js';
import type { LoadOrder, LoadReport } from '../load-client.js';
import { Latencies } from '../percentiles.js';

/** Linux counts processor time in these. */
const TICKS_PER_SECOND = 100;

export interface PhaseReport {
  readonly requestsPerSecond: number;
  /** Of the server's process, all its threads; NaN where the system doesn't tell. */
  readonly requestsPerCoreSecond: number;
  readonly latencies: Latencies;
  readonly answerBytes: number;
}

export interface Served {
  readonly port: number;
  readonly processId: number;
}

export async function ask(server: Served, order: Omit<LoadOrder, 'port' | 'key'>): Promise<PhaseReport> {
  const client = startChild('./load-client.js');
  const before = processorSeconds(server.processId);
  client.send({ ...order, port: server.port, key: TEST_KEY } satisfies LoadOrder);
  const { latenciesUs: byPath, failures, elapsedUs, answerBytes } = await reportOf<LoadReport>(client);
  if (failures > 0) throw new Error(`${failures} requests were not answered with 200`);
  const latenciesUs = byPath.flat();
  const spent = processorSeconds(server.processId) - before;
  return {
    requestsPerSecond: latenciesUs.length / (elapsedUs / 1e6),
    requestsPerCoreSecond: latenciesUs.length / spent,
    latencies: new Latencies(latenciesUs),
    answerBytes,
  };
}

/** User and system time of all threads. NaN where there is no /proc. */
function processorSeconds(processId: number): number {
  try {
    const stat = readFileSync(`/proc/${processId}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  } catch {
    return Number.NaN;
  }
}
