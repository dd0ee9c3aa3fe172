/**
 * Which cores processes run on. A bench has more processes than a small machine has cores: broker, producer
 * and clients share the last one, and the service may use all, so that its main thread seldom waits for one
 * of them.
 */

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';

const CORE_COUNT = cpus().length;

/** Threads a core that want to run: more than a bench has itself, so others do. */
const CROWDED_LOAD = 4;

/**
 * Keeps a process, and those that it starts from now on, to the last core. False where that can't be done.
 */
export function keepToLastCore(processId: number): boolean {
  return CORE_COUNT > 1 && pin(processId, String(CORE_COUNT - 1));
}

/** Keeps a process to the cores before the last one, those of clients. */
export function leaveLastCore(processId: number): boolean {
  return CORE_COUNT > 1 && pin(processId, `0-${CORE_COUNT - 2}`);
}

/** Lets all threads of a process run anywhere again. */
export function allowAllCores(processId: number): boolean {
  return pin(processId, `0-${CORE_COUNT - 1}`);
}

function pin(processId: number, cores: string): boolean {
  return spawnSync('taskset', ['-acp', cores, String(processId)]).status === 0;
}

/**
 * Leaves processes, with all their threads, only what others leave of their core, or ends that. In earnest a
 * broker and the producers have machines of their own: a client's latency must not be the wait until they
 * leave the core that they share here. False where that can't be done, and where others keep the machine
 * busy: there is no time left over then, and a broker without any loses its clients.
 */
export function giveWay(processIds: readonly number[], on: boolean): boolean {
  if (on && isCrowded()) return false;
  const policy = on ? '--idle' : '--other';
  return processIds.every(
    (id) => spawnSync('chrt', ['--all-tasks', policy, '--pid', '0', String(id)]).status === 0,
  );
}

function isCrowded(): boolean {
  return loadavg()[0] > CROWDED_LOAD * CORE_COUNT;
}

/** Children of this process, their children, and so on. Only on Linux. */
export function descendants(processId: number = process.pid): number[] {
  const children = childrenOf(processId);
  return children.flatMap((id) => [id, ...descendants(id)]);
}

function childrenOf(processId: number): number[] {
  try {
    const ids = readFileSync(`/proc/${processId}/task/${processId}/children`, 'utf8');
    return ids
      .split(' ')
      .filter((id) => id !== '')
      .map(Number);
  } catch {
    return [];
  }
}
