/**
 * Decides, from a seed, in which order everything happens that a process leaves to its event loop and
 * threads.
 */

import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Random } from '../../src/demo/random.js';

type Task = () => void;

/** Tasks of one channel run in the order in which they came; which channel is next is drawn. */
export class Schedule {
  readonly #channels = new Map<string, Task[]>();
  /** Turns of the event loop so far. */
  turn = 0;

  push(channel: string, task: Task): void {
    const tasks = this.#channels.get(channel);
    if (tasks === undefined) this.#channels.set(channel, [task]);
    else tasks.push(task);
  }

  /**
   * Runs one task, if there is one, and what follows from it at once; false when nothing is left to run after
   * it.
   */
  async step(random: Random): Promise<boolean> {
    const waiting = this.#waiting();
    if (waiting.length > 0) random.pick(waiting).shift()!();
    // All promises that were settled have gone on when it resolves; nothing here waits for the world outside.
    await nextTurn();
    this.turn += 1;
    return this.#waiting().length > 0;
  }

  #waiting(): Task[][] {
    return [...this.#channels.values()].filter((tasks) => tasks.length > 0);
  }
}
