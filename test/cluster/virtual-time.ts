/** Time that passes from one event to the next, in microseconds; what runs may wait for promises in between. */

interface Event {
  readonly atUs: number;
  readonly sequence: number;
  readonly run: () => void;
}

export class VirtualTime {
  nowUs = 0;
  #sequence = 0;
  readonly #events: Event[] = [];

  after(delayUs: number, run: () => void): () => void {
    let isCancelled = false;
    this.#push({
      atUs: this.nowUs + Math.max(0, delayUs),
      sequence: this.#sequence++,
      run: () => {
        if (!isCancelled) run();
      },
    });
    return () => {
      isCancelled = true;
    };
  }

  /** Until nothing is left before `endUs`, or the work is done. */
  async runUntil(endUs: number, isDone: () => boolean = () => false): Promise<void> {
    await settled();
    while (!isDone() && this.#events.length > 0 && this.#events[0].atUs <= endUs) {
      const event = this.#pop();
      this.nowUs = event.atUs;
      event.run();
      await settled();
    }
    if (!isDone()) this.nowUs = Math.max(this.nowUs, endUs);
  }

  #push(event: Event): void {
    const events = this.#events;
    let at = events.length;
    events.push(event);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (isBefore(events[parent], event)) break;
      events[at] = events[parent];
      at = parent;
    }
    events[at] = event;
  }

  #pop(): Event {
    const events = this.#events;
    const first = events[0];
    const last = events.pop()!;
    if (events.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= events.length) break;
      if (child + 1 < events.length && isBefore(events[child + 1], events[child])) child++;
      if (isBefore(last, events[child])) break;
      events[at] = events[child];
      at = child;
    }
    events[at] = last;
    return first;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atUs < b.atUs || (a.atUs === b.atUs && a.sequence < b.sequence);
}

/** Chains of promises are some tens long. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
