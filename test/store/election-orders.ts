/**
 * Plays an election in every order of its steps, over a directory in memory, and finds those in which two
 * hold or nobody does. Listing is not done at once, as readdir isn't: what came or went meanwhile is there or
 * isn't.
 */

import type { LockStep } from '../../src/store/directory/lock-election.js';

export type Candidate = (own: string) => Generator<LockStep, boolean, readonly string[]>;

export interface Orders {
  /** One process each. */
  readonly names: readonly string[];
  /** What stands in the directory and is dead. */
  readonly stale: readonly string[];
  /** So many processes are killed, or leave once they hold. */
  readonly endings: number;
}

type Fate = 'new' | 'trying' | 'holds' | 'gone';

interface Process {
  readonly fate: Fate;
  /** What its steps have found. */
  readonly found: readonly (readonly string[])[];
  /** What stood there when it began to list, and since; null when it does not. */
  readonly listing: { readonly throughout: readonly string[]; readonly ever: readonly string[] } | null;
}

interface World {
  readonly directory: readonly string[];
  readonly processes: readonly Process[];
  readonly endingsLeft: number;
  readonly hasEnded: boolean;
}

export function explored(candidate: Candidate, orders: Orders): { problems: string[]; stateCount: number } {
  const exploration = new Exploration(candidate, orders);
  const seen = new Set<string>();
  const problems = new Set<string>();
  const start: World = {
    directory: [...orders.stale],
    processes: orders.names.map(() => ({ fate: 'new', found: [], listing: null })),
    endingsLeft: orders.endings,
    hasEnded: false,
  };
  const open = [start];
  for (let world = open.pop(); world !== undefined; world = open.pop()) {
    const key = JSON.stringify(world);
    if (seen.has(key)) continue;
    seen.add(key);
    const next = exploration.next(world);
    const holders = world.processes.filter(({ fate }) => fate === 'holds').length;
    if (holders > 1) problems.add(`two hold: ${key}`);
    if (next.length === 0 && holders === 0 && !world.hasEnded) problems.add(`nobody holds: ${key}`);
    open.push(...next);
  }
  return { problems: [...problems].slice(0, 3), stateCount: seen.size };
}

class Exploration {
  readonly #candidate: Candidate;
  readonly #names: readonly string[];

  constructor(candidate: Candidate, { names }: Orders) {
    this.#candidate = candidate;
    this.#names = names;
  }

  /** All that can come next. */
  next(world: World): World[] {
    return world.processes.flatMap((process, i) => [
      ...this.#steps(world, process, i),
      ...(world.endingsLeft > 0 ? this.#endings(world, process, i) : []),
    ]);
  }

  #endings(world: World, { fate }: Process, i: number): World[] {
    if (fate === 'new' || fate === 'gone') return [];
    const ended = { ...world, endingsLeft: world.endingsLeft - 1, hasEnded: true };
    const killed = this.#with(ended, i, { fate: 'gone' });
    return fate === 'holds' ? [killed, this.#without(killed, this.#names[i])] : [killed];
  }

  #steps(world: World, process: Process, i: number): World[] {
    if (process.fate === 'gone') return [];
    const steps = this.#candidate(this.#names[i]);
    let step = steps.next();
    for (const found of process.found) step = steps.next(found);
    if (step.done === true) return [];
    const after = (found: readonly string[], change: Partial<Process> = {}, from = world): World =>
      this.#with(from, i, { found: [...process.found, found], ...change });
    const own = this.#names[i];
    switch (step.value.do) {
      case 'publish':
        return [after([], { fate: 'trying' }, this.#plus(world, own))];
      case 'list': {
        const now = world.directory;
        if (process.listing === null)
          return [this.#with(world, i, { listing: { throughout: now, ever: now } })];
        const { throughout, ever } = process.listing;
        return [throughout, ever].map((found) => after(found, { listing: null }));
      }
      case 'look':
        return [after(this.#alive(world, step.value.name))];
      case 'wait': {
        const { name } = step.value;
        const found = this.#alive(world, name);
        const isTrying = world.processes[this.#names.indexOf(name)]?.fate === 'trying';
        return found.length > 0 && isTrying ? [] : [after(found)];
      }
      case 'hold':
        return [after([], { fate: 'holds' })];
      case 'withdraw':
        return [after([], { fate: 'gone' }, this.#without(world, own))];
      case 'remove':
        return [after([], {}, this.#without(world, step.value.name))];
    }
  }

  #alive({ directory, processes }: World, name: string): string[] {
    const fate = processes[this.#names.indexOf(name)]?.fate;
    return directory.includes(name) && (fate === 'trying' || fate === 'holds') ? [name] : [];
  }

  #with(world: World, i: number, change: Partial<Process>): World {
    const processes = world.processes.map((process, k) => (k === i ? { ...process, ...change } : process));
    return { ...world, processes };
  }

  #plus(world: World, name: string): World {
    const directory = [...world.directory, name].sort();
    const processes = world.processes.map((process) =>
      process.listing === null
        ? process
        : { ...process, listing: { ...process.listing, ever: [...process.listing.ever, name] } },
    );
    return { ...world, directory, processes };
  }

  #without(world: World, name: string): World {
    const directory = world.directory.filter((other) => other !== name);
    const processes = world.processes.map((process) =>
      process.listing === null
        ? process
        : {
            ...process,
            listing: {
              ...process.listing,
              throughout: process.listing.throughout.filter((other) => other !== name),
            },
          },
    );
    return { ...world, directory, processes };
  }
}
