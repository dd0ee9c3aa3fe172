/** A service whose event loop is watched (see watched-service.ts), and what is seen. */

import { fileURLToPath } from 'node:url';
import { type ChildService, startChildService } from '../test/child-service.js';

const WATCHED = fileURLToPath(new URL('./watched-service.js', import.meta.url));
const POLL_MS = 10;

export function startWatchedService(settings: Record<string, string>): Promise<ChildService> {
  return startChildService(settings, [WATCHED]);
}

/** How long its event loop was held up at most since this was last asked, in milliseconds. */
export async function heldUpMs(service: ChildService): Promise<number> {
  const said = () => [...service.output().matchAll(/^held up (.*)$/gm)];
  const before = said().length;
  process.kill(service.processId, 'SIGUSR2');
  while (said().length === before) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  return Number(said().at(-1)![1]);
}
