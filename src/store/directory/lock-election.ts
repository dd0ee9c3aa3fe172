/**
 * Decides which of the processes that want a directory holds it, as steps that the caller carries out. Each
 * process has a name of its own in the directory, which is never used again, and is alive as long as it holds
 * the directory or tries to:
 *
 *   publish ── list ── look at each other name ──all gone──▶ hold, remove what the dead left
 *                       │ alive, and earlier or holding ──▶ withdraw
 *                       ╰ alive, later, still trying ──▶ wait until it withdraws, dies or holds
 *
 * Two can't hold: of two that have published before they list, the one that lists last sees the other. One of
 * several holds: a name gives way to an earlier one only, or to a holder. No live process loses its name,
 * because a name that is dead stays dead. test/store/directory-lock plays all orders of three, with kills.
 */

/** The name that versions before this one held a directory by. */
const FORMER_NAME = 'lock';
const PREFIX = 'lock-';
const UNPUBLISHED = '.new';

export type LockStep =
  /** From now on the own name is in the directory, and alive. */
  | { readonly do: 'publish' }
  /** All names that begin as such names do. */
  | { readonly do: 'list' }
  /** The name where its process is alive. */
  | { readonly do: 'look'; readonly name: string }
  /** The same, once its process holds the directory, has withdrawn or has died. */
  | { readonly do: 'wait'; readonly name: string }
  /** Tells the processes that wait. */
  | { readonly do: 'hold' }
  | { readonly do: 'withdraw' }
  | { readonly do: 'remove'; readonly name: string };

/**
 * Names sort by time, as a holder then turns others away at once; a clock that was set makes them wait for
 * its word.
 */
export function lockName(nowUs: number, unique: string): string {
  return `${PREFIX}${String(nowUs).padStart(17, '0')}-${unique}`;
}

/** What a process listens by before it publishes its name: one that listens too late would look dead. */
export function unpublished(name: string): string {
  return name + UNPUBLISHED;
}

export function isLockName(name: string): boolean {
  return name === FORMER_NAME || name.startsWith(PREFIX);
}

/** Each step gets back the names that it finds, most of them none; returns whether the directory is held. */
export function* takeDirectory(own: string): Generator<LockStep, boolean, readonly string[]> {
  yield { do: 'publish' };
  const others = (yield { do: 'list' }).filter((name) => name !== own);
  for (const name of others.filter((other) => !other.endsWith(UNPUBLISHED))) {
    if ((yield { do: 'look', name }).length === 0) continue;
    if (name > own && (yield { do: 'wait', name }).length === 0) continue;
    yield { do: 'withdraw' };
    return false;
  }
  yield { do: 'hold' };
  for (const name of others) yield { do: 'remove', name };
  return true;
}
