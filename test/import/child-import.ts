/**
 * `logring import` as users run it, the files it is given, and whether each entry of them stands exactly
 * once.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { ask, TEST_KEY } from '../child-service.js';
import { eventually } from '../eventually.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
/** So many entries of a project that `logs.all` shows them all. */
const ENTRIES_PER_PROJECT = 90;
const US_PER_DAY = 86_400_000_000;

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export interface ImportResult {
  /** null after a signal. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ChildImport {
  readonly ended: Promise<ImportResult>;
  readonly stdin: NonNullable<ChildProcess['stdin']>;
  kill(signal: 'SIGKILL' | 'SIGTERM' | 'SIGINT'): void;
}

/** Starts it with these LOGRING_* settings only. Standard input stays open unless `stdin` gives it. */
export function startImport(
  args: readonly string[],
  settings: Record<string, string> = { LOGRING_API_KEYS: TEST_KEY },
  stdin: Buffer | Readable | null = Buffer.alloc(0),
): ChildImport {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('LOGRING_'));
  const child = spawn(process.execPath, [MAIN, 'import', ...args], {
    env: { ...Object.fromEntries(inherited), ...settings },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
  running.add(child);
  const output = { stdout: '', stderr: '' };
  child.stdout.on('data', (piece) => {
    output.stdout += String(piece);
  });
  child.stderr.on('data', (piece) => {
    output.stderr += String(piece);
  });
  // A child that ends before it has read everything breaks the pipe, which is what some tests are about.
  child.stdin.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
  });
  if (Buffer.isBuffer(stdin)) child.stdin.end(stdin);
  else stdin?.pipe(child.stdin);
  const ended = new Promise<ImportResult>((resolve) => {
    child.once('close', (code) => {
      running.delete(child);
      resolve({ code, ...output });
    });
  });
  return { ended, stdin: child.stdin, kill: (signal) => child.kill(signal) };
}

export interface PastEntry {
  readonly id: string;
  readonly project: string;
  readonly line: string;
}

/** Entries of the last six days, oldest first. `prefix` keeps files and their projects apart. */
export function pastEntries(prefix: string, count: number, messageBytes: number): PastEntry[] {
  const endUs = Date.now() * 1000;
  return Array.from({ length: count }, (_, i) => {
    const id = `${prefix}-${i}`;
    const project = `${prefix}${Math.floor(i / ENTRIES_PER_PROJECT)}`;
    const line = JSON.stringify({
      id,
      timestamp: endUs - Math.floor((6 * US_PER_DAY * (count - i)) / count),
      project,
      event_message: `${id} ${'x'.repeat(messageBytes)}`,
      metadata: { request: { url: `https://${project}.example.co/rest/v1/t`, path: '/rest/v1/t' } },
    });
    return { id, project, line };
  });
}

export function linesOf(entries: readonly PastEntry[]): Buffer {
  return Buffer.from(entries.map(({ line }) => `${line}\n`).join(''));
}

/**
 * The service has these entries and no other, each once: by the rows of every project and by the count of
 * all.
 */
export async function expectExactly(url: string, entries: readonly PastEntry[]): Promise<void> {
  await eventually(async () => (await fetch(`${url}/readyz`)).status === 200);
  const idsByProject = new Map<string, string[]>();
  for (const { id, project } of entries) {
    const ids = idsByProject.get(project) ?? [];
    ids.push(id);
    idsByProject.set(project, ids);
  }
  for (const [project, ids] of idsByProject) {
    const { result } = await ask(
      url,
      `/api/endpoints/query/logs.all?project=${project}&project_tier=ENTERPRISE`,
    );
    expect(result.map((row) => row.id)).toEqual(ids.reverse());
  }
  const counts = await ask(url, '/api/endpoints/query/usage.api-counts?project=example&interval=daily');
  const counted = counts.result.reduce((sum, row) => sum + Number(row.total_rest_requests), 0);
  expect(counted).toBe(entries.length);
}
