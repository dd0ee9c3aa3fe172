/**
 * `process.nextTick` makes an object a call, which node:http does some ten times a request. When a collection
 * finds none of them alive, V8 forgets their shape, throws away the code that makes them, and after some such
 * turns optimises it no more: on Node 24 a server that has run for a while spent a tenth of its time there,
 * and answered a fifth fewer requests. So two are kept for good.
 */

import { createHook } from 'node:async_hooks';

const kept: object[] = [];

/** Once a process is enough; more calls change nothing. */
export function keepTickShape(): void {
  if (kept.length > 0) return;
  const hook = createHook({
    init: (_id, type, _trigger, resource) => {
      if (type === 'TickObject') kept.push(resource);
    },
  });
  hook.enable();
  process.nextTick(() => undefined);
  process.nextTick((_argument: unknown) => undefined, null);
  hook.disable();
}
