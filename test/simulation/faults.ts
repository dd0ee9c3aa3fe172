/** What goes wrong in a simulated life, and when: counted in operations on the disk. */

export const OPERATIONS = [
  'open',
  'open-read',
  'write',
  'sync',
  'sync-folder',
  'make-folder',
  'truncate',
  'remove',
  'read',
  'rename',
  'link',
] as const;
export type Operation = (typeof OPERATIONS)[number];

/** `short`: a write takes a part only, and says so. */
export type DiskError = 'EIO' | 'ENOSPC' | 'EMFILE' | 'short';

/** How a life ends: the kernel keeps what a killed process wrote; a power cut loses what is not synced. */
export type CrashKind = 'process' | 'power';

/** The life ends in the so-manieth operation from now, done in part (0 … 1); with 0 at once. */
export interface Crash {
  readonly kind: CrashKind;
  readonly atOperation: number;
  readonly part: number;
}

/** Thrown by the operation amid which the life ends, and by all that its code tries afterwards. */
export class LifeEnded extends Error {
  override name = 'LifeEnded';
}

/** An error that was asked for. */
export class ArmedError extends Error {
  override name = 'ArmedError';
}

/** Does the operation; what it should return. `part` bounds an operation that can be done in part: 0 … 1. */
type Effect<Result> = (part: number) => Result;

export class Faults {
  /** The first comes next; those after it count from there. */
  #crashes: Crash[] = [];
  #errors: { operation: Operation; error: DiskError; part: number }[] = [];
  /** How the life has ended; null while it goes on. */
  ended: CrashKind | null = null;
  /**
   * What this life has met: errors of removals, which harm nothing; all others; of these, those that don't
   * pass.
   */
  removalErrorCount = 0;
  errorCount = 0;
  lastingErrorCount = 0;
  /** Armed crashes by their operation, for figures. */
  readonly crashedAt: Partial<Record<Operation, number>> = {};

  /** In the place of crashes that have not come. */
  armCrashes(crashes: readonly Crash[]): void {
    this.#crashes = [...crashes];
    if (crashes[0].atOperation === 0) this.ended = this.#crashes.shift()!.kind;
  }

  armError(operation: Operation, error: DiskError, part: number): void {
    this.#errors.push({ operation, error, part });
  }

  disarm(): void {
    this.#crashes = [];
    this.#errors = [];
  }

  /** Another process: what is armed goes on. */
  beginLife(): void {
    this.ended = null;
    this.removalErrorCount = 0;
    this.errorCount = 0;
    this.lastingErrorCount = 0;
  }

  run<Result>(operation: Operation, effect: Effect<Result>): Result {
    if (this.ended !== null) throw new LifeEnded(operation);
    const crash = this.#crashes.shift();
    if (crash !== undefined) {
      if (crash.atOperation > 1) this.#crashes.unshift({ ...crash, atOperation: crash.atOperation - 1 });
      else {
        effect(crash.part);
        this.ended = crash.kind;
        this.crashedAt[operation] = (this.crashedAt[operation] ?? 0) + 1;
        throw new LifeEnded(operation);
      }
    }
    const at = this.#errors.findIndex((error) => error.operation === operation);
    if (at === -1) return effect(1);
    const [{ error, part }] = this.#errors.splice(at, 1);
    if (error === 'short') return effect(part);
    if (operation === 'remove') this.removalErrorCount += 1;
    else this.errorCount += 1;
    // What could not be synced is never tried again.
    const isSync = operation.startsWith('sync') && error !== 'EMFILE';
    if (operation !== 'remove' && (error === 'EIO' || isSync)) this.lastingErrorCount += 1;
    if (operation === 'write') effect(part);
    throw Object.assign(new ArmedError(`${error}: ${operation}`), { code: error });
  }
}

/** An error that a sound program does not meet. */
export function systemError(code: string, what: string): Error {
  return Object.assign(new Error(`${code}: simulated, ${what}`), { code, syscall: what });
}
