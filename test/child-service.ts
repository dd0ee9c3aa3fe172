/** The service as users run it: a child process of its own, started from the environment, ended by signals. */

import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const MAIN = fileURLToPath(new URL('../src/main.js', import.meta.url));
const READY_DEADLINE_MS = 60_000;

export const TEST_KEY = 'test-key';

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

/** Starts `main.js` with these LOGRING_* settings only, on a free port; resolves when it says that it is ready. */
export function startChildService(settings: Record<string, string>): Promise<ChildService> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('LOGRING_'));
  const child = spawn(process.execPath, [MAIN], {
    env: {
      ...Object.fromEntries(inherited),
      LOGRING_PORT: '0',
      LOGRING_API_KEYS: TEST_KEY,
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
    const fail = (why: string) => {
      child.kill('SIGKILL');
      reject(new Error(`the service ${why}:\n${output}`));
    };
    const deadline = setTimeout(() => fail('was not ready in time'), READY_DEADLINE_MS);
    exited.then((code) => {
      clearTimeout(deadline);
      fail(`ended with ${code} before it was ready`);
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      output += `${line}\n`;
      const url = readyUrl(line);
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

function readyUrl(line: string): string | null {
  if (!line.includes('"msg":"ready"')) return null;
  return (JSON.parse(line) as { url: string }).url;
}

/** A GET with the key; the parsed body, or an error that shows what came instead. */
export async function ask(url: string, path: string): Promise<{ result: Record<string, unknown>[] }> {
  const response = await fetch(`${url}${path}`, { headers: { 'X-API-KEY': TEST_KEY } });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${path} answered ${response.status}: ${text}`);
  return JSON.parse(text) as { result: Record<string, unknown>[] };
}
