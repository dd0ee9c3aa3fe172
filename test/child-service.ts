/**
 * The service as users run it: a child process of its own, started from the environment, ended by signals.
 */

import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

export const MAIN = fileURLToPath(new URL('../src/main.js', import.meta.url));
const READY_DEADLINE_MS = 300_000;

export const TEST_KEY = 'test-key';

/** As the image and the systemd unit set it: jemalloc where it is installed, else glibc's; and V8's young generation. */
export const MEMORY_SETTINGS = {
  LD_PRELOAD: 'libjemalloc.so.2',
  MALLOC_CONF: 'background_thread:true,narenas:2,dirty_decay_ms:250,muzzy_decay_ms:0',
  MALLOC_ARENA_MAX: '2',
  MALLOC_MMAP_THRESHOLD_: '131072',
  MALLOC_TRIM_THRESHOLD_: '131072',
  NODE_OPTIONS: '--max-semi-space-size=8',
};

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

export interface ChildService {
  readonly url: string;
  readonly processId: number;
  /** Resolves with the exit code, or null after a signal. */
  readonly exited: Promise<number | null>;
  /** Everything it wrote so far. */
  output(): string;
  kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<number | null>;
}

/** The child ended, with an exit code or null after a signal, before it was ready. */
export class EndedEarlyError extends Error {
  readonly exitCode: number | null;

  constructor(exitCode: number | null, output: string) {
    super(`the service ended with ${exitCode} before it was ready:\n${output}`);
    this.exitCode = exitCode;
  }
}

/** What it says on its way: it listens, though its answers may be 503; they are whole. */
export type Stage = 'listening' | 'ready';

/**
 * Starts `main.js`, or another script with its arguments, by another program if one is given to be around it,
 * with these LOGRING_* settings only, on a free port; resolves when it says that it is ready, or with Kafka,
 * which may keep it waiting, that it listens. Rejects with an EndedEarlyError when it ends before.
 */
export function startChildService(
  settings: Record<string, string>,
  command: readonly string[] = [MAIN],
  around: readonly string[] = [],
  until: Stage = settings.LOGRING_KAFKA_BROKERS === undefined ? 'ready' : 'listening',
): Promise<ChildService> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('LOGRING_'));
  const [program, ...args] = [...around, process.execPath, ...command];
  const child = spawn(program, args, {
    env: {
      ...Object.fromEntries(inherited),
      LOGRING_PORT: '0',
      ...(settings.LOGRING_API_KEYS_FILE === undefined ? { LOGRING_API_KEYS: TEST_KEY } : {}),
      LOGRING_CACHE_SECONDS: '0',
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  running.add(child);
  let output = '';
  const exited = new Promise<number | null>((resolve) => {
    child.once('exit', (code) => {
      running.delete(child);
      resolve(code);
    });
  });
  child.stderr.on('data', (piece) => {
    output += String(piece);
  });
  return new Promise((resolve, reject) => {
    const deadline = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`the service was not ready in time:\n${output}`));
    }, READY_DEADLINE_MS);
    exited.then((code) => {
      clearTimeout(deadline);
      reject(new EndedEarlyError(code, output));
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      output += `${line}\n`;
      const url = urlIn(line, until);
      if (url === null) return;
      clearTimeout(deadline);
      resolve({
        url,
        processId: child.pid!,
        exited,
        output: () => output,
        kill: (signal) => {
          child.kill(signal);
          return exited;
        },
      });
    });
  });
}

function urlIn(line: string, until: Stage): string | null {
  if (!line.includes(`"msg":"${until}"`)) return null;
  return (JSON.parse(line) as { url: string }).url;
}

/** A GET with the key; the parsed body, or an error that shows what came instead. */
export async function ask(url: string, path: string): Promise<{ result: Record<string, unknown>[] }> {
  const response = await fetch(`${url}${path}`, { headers: { 'X-API-KEY': TEST_KEY } });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${text}`);
  return JSON.parse(text) as { result: Record<string, unknown>[] };
}

/** Which allocator a process came to that was given MEMORY_SETTINGS. */
export function allocatorOf(processId: number): string {
  return readFileSync(`/proc/${processId}/maps`, 'utf8').includes('/libjemalloc.so')
    ? 'its allocator is jemalloc'
    : "its allocator is glibc's: with jemalloc (Debian: libjemalloc2), as the image has it, it takes less";
}
