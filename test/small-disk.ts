/**
 * A disk that a test can fill: a tmpfs of its own, and a ballast file on it. Where none can be mounted (it
 * takes root, on Linux) such tests are skipped with a line that says so; where the environment says CI that
 * is a failure.
 */

import { execFileSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'vitest';

const BALLAST_PIECE = Buffer.alloc(16 * 1024, 1);

export class SmallDisk {
  readonly directory = mkdtempSync(join(tmpdir(), 'logring-disk-'));
  readonly #ballast = join(this.directory, 'ballast');

  constructor(megabytes: number) {
    try {
      execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', this.directory], {
        stdio: 'pipe',
      });
    } catch (error) {
      rmSync(this.directory, { recursive: true });
      throw error;
    }
  }

  get freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.directory);
    return bavail * bsize;
  }

  /** Takes up all but so many bytes, nearly. */
  fill(leaveBytes: number): void {
    const ballast = openSync(this.#ballast, 'a');
    while (this.freeBytes >= leaveBytes + BALLAST_PIECE.length) writeSync(ballast, BALLAST_PIECE);
    closeSync(ballast);
  }

  /** Takes the ballast away. */
  release(): void {
    rmSync(this.#ballast, { force: true });
  }

  unmount(): void {
    execFileSync('umount', ['-l', this.directory]);
    rmSync(this.directory, { recursive: true });
  }
}

function whyNone(): string | null {
  try {
    new SmallDisk(1).unmount();
    return null;
  } catch (error) {
    return `no small disk can be mounted here: ${error instanceof Error ? error.message.split('\n')[0] : String(error)}`;
  }
}

export function describeSmallDisk(name: string, body: () => void): void {
  const unavailable = whyNone();
  if (unavailable === null) {
    describe(name, body);
  } else if (process.env.CI === undefined || process.env.CI === '') {
    describe(name, () => test.skip(`skipped: ${unavailable}`));
  } else {
    describe(name, () =>
      test('a small disk can be mounted', () => {
        throw new Error(`${unavailable}: CI must be able to`);
      }),
    );
  }
}
