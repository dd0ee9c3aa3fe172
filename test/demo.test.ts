/**
 * `npm run demo` as a newcomer runs it: three curl lines that answer with rows, the console's address, and
 * nothing left after Ctrl-C.
 */

import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const DEMO = fileURLToPath(new URL('../bench/demo.js', import.meta.url));
const CURL_LINE = /^curl -H '([^:]+): ([^']+)' '([^']+)'$/;

test('each curl line answers with rows, and Ctrl-C ends it cleanly', async () => {
  const temporary = mkdtempSync(join(tmpdir(), 'logring-demo-test-'));
  const demo = spawn(process.execPath, [DEMO], { env: { ...process.env, TMPDIR: temporary } });
  const exited = new Promise<number | null>((resolve) => demo.once('exit', resolve));
  let complaints = '';
  demo.stderr.on('data', (piece) => {
    complaints += String(piece);
  });
  try {
    const answers: number[] = [];
    for await (const line of createInterface({ input: demo.stdout })) {
      const curl = CURL_LINE.exec(line);
      if (curl !== null) {
        const [, header, value, url] = curl;
        const response = await fetch(url, { headers: { [header]: value } });
        expect(response.status).toBe(200);
        answers.push(((await response.json()) as { result: unknown[] }).result.length);
      }
      const page = /browser: (\S+) \(API key: demo\)$/.exec(line);
      if (page === null) continue;
      const response = await fetch(page[1]);
      expect(response.headers.get('content-type')).toMatch(/^text\/html/);
      break;
    }
    expect(answers).toHaveLength(3);
    expect(Math.min(...answers), `rows of ${answers}; ${complaints}`).toBeGreaterThan(0);
    expect(readdirSync(temporary)).toHaveLength(1);
    demo.kill('SIGINT');
    expect(await exited).toBe(0);
    expect(readdirSync(temporary)).toEqual([]);
    expect(complaints).toBe('');
  } finally {
    demo.kill('SIGKILL');
    rmSync(temporary, { recursive: true, force: true });
  }
});
