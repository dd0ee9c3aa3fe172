/**
 * Which cores processes run on. A bench has more processes than a small machine has cores: broker, producer and clients
 * share the last one, and the service may use all, so that its main thread seldom waits for one of them.
 */

import { spawnSync } from 'node:child_process';
import { cpus } from 'node:os';

const CORE_COUNT = cpus().length;

/** Keeps a process, and those that it starts from now on, to the last core. False where that can't be done. */
export function keepToLastCore(processId: number): boolean {
  return CORE_COUNT > 1 && pin(processId, String(CORE_COUNT - 1));
}

/** Lets all threads of a process run anywhere again. */
export function allowAllCores(processId: number): boolean {
  return pin(processId, `0-${CORE_COUNT - 1}`);
}

function pin(processId: number, cores: string): boolean {
  return spawnSync('taskset', ['-acp', cores, String(processId)]).status === 0;
}
