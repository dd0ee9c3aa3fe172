/** Lets a worker thread give way to the serving thread where they share a core. */

import { getPriority, setPriority } from 'node:os';

/** Of Linux' scheduler. */
const LEAST_PRIORITY = 19;

/** `niceness` is relative, 0 to 19. Only on Linux, which takes this for the calling thread alone: elsewhere it would be the whole process. */
export function giveWayToServing(niceness: number): void {
  if (process.platform === 'linux') setPriority(Math.min(LEAST_PRIORITY, getPriority() + niceness));
}
