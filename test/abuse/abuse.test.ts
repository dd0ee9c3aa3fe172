/**
 * The abuse, small: the service stays alive and gives only answers that it may give; that it stops and goes
 * on.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { runAbuse, TEN_MINUTES } from './abuse.js';

test('everything that makes a service grow, all at once: only answers that may be given, and no end', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-abuse-'));
  try {
    const { isOver, progress } = await runAbuse(
      { ...TEN_MINUTES, directory, seconds: 5, clients: 4, holdSeconds: 1, restSeconds: 1 },
      () => undefined,
      new AbortController().signal,
    );
    expect(isOver).toBe(true);
    expect(progress.problems).toEqual({});
    expect(
      Object.keys(progress.politeStatuses).filter((status) => !/^(GET|POST) (200|503)$/.test(status)),
    ).toEqual([]);
    expect(progress.queriesUs.length).toBeGreaterThan(0);
    expect(progress.postsUs.length).toBeGreaterThan(0);
    expect(Object.keys(progress.attackOutcomes).length).toBeGreaterThan(0);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}, 300_000);
