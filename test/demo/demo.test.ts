/**
 * `logring demo` as a newcomer runs it: three curl lines that return rows, the console's address, an incident
 * to be found, and nothing left after Ctrl-C.
 */

import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { stripVTControlCharacters } from 'node:util';
import { expect, test } from 'vitest';
import { guideText } from '../../src/demo/demo-command.js';
import { MAIN } from '../child-service.js';

const CURL_LINE = /^curl -H '([^:]+): ([^']+)' '([^']+)'$/;

type Row = Readonly<Record<string, number>>;

async function rowsOf(curl: RegExpExecArray): Promise<Row[]> {
  const [, header, value, url] = curl;
  const response = await fetch(url, { headers: { [header]: value } });
  expect(response.status).toBe(200);
  return ((await response.json()) as { result: Row[] }).result;
}

test('each curl line returns rows, the incident is in the statistics, and Ctrl-C ends it cleanly', async () => {
  const temporary = mkdtempSync(join(tmpdir(), 'logring-demo-test-'));
  const demo = spawn(process.execPath, [MAIN, 'demo'], { env: { ...process.env, TMPDIR: temporary } });
  const exited = new Promise<number | null>((resolve) => demo.once('exit', resolve));
  let complaints = '';
  demo.stderr.on('data', (piece) => {
    complaints += String(piece);
  });
  try {
    const answers: Row[][] = [];
    let page = '';
    for await (const line of createInterface({ input: demo.stdout })) {
      page = /^http\S+$/.exec(line)?.[0] ?? page;
      const curl = CURL_LINE.exec(line);
      if (curl !== null) answers.push(await rowsOf(curl));
      if (line.startsWith('Ctrl-C')) break;
    }
    const [logs, stats, usage] = answers;
    expect(logs, complaints).toHaveLength(100);
    expect(usage.length).toBeGreaterThan(30);
    // Twenty minutes lie in one hour or two; the others are quiet.
    const failing = stats.filter((row) => row.error_count > 10);
    expect([1, 2]).toContain(failing.length);
    for (const { timestamp, p95_execution_time } of failing) {
      expect(Math.round((stats.at(-1)!.timestamp - timestamp) / 3_600e6)).toBeOneOf([4, 5]);
      expect(p95_execution_time).toBeGreaterThan(2 * stats[0].p95_execution_time);
    }
    const response = await fetch(page);
    expect(response.headers.get('content-type')).toMatch(/^text\/html/);
    expect(page).toMatch(/#\/overview\?project=corner-bakery$/);
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

test('in colour it says the same', () => {
  const coloured = guideText('http://127.0.0.1:4000', true);
  const plain = guideText('http://127.0.0.1:4000', false);
  expect(coloured).not.toBe(plain);
  expect(stripVTControlCharacters(coloured)).toBe(plain);
  expect(stripVTControlCharacters(plain)).toBe(plain);
});
