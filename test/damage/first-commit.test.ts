/** The first commit of a journal without a checkpoint is damaged: what a repair leaves says what it lacks. */

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MAIN, startChildService, TEST_KEY } from '../child-service.js';

const TOPIC = 'cloudflare.logs.prod';
const QUESTIONS = [
  'logs.all?project=abc&project_tier=PRO',
  'usage.api-counts?project=abc&interval=hourly',
  'logs.event-counts?project=abc&project_tier=PRO&interval=hourly',
];

test('answers after the repair say that they are incomplete', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-first-commit-'));
  const headers = { 'X-API-KEY': TEST_KEY };
  try {
    const before = await startChildService({ LOGRING_DATA_DIR: directory });
    const url = 'https://abc.example.co/rest/v1/t';
    const body = JSON.stringify({ project: 'abc', metadata: { request: { url, path: '/rest/v1/t' } } });
    const posted = await fetch(`${before.url}/api/logs?source_name=${TOPIC}`, {
      method: 'POST',
      headers,
      body,
    });
    expect(posted.status).toBe(200);
    expect(await before.kill('SIGTERM')).toBe(0);

    const journal = join(directory, 'shards', `${TOPIC}+0`, '0.journal');
    const bytes = readFileSync(journal);
    bytes[60] ^= 0xff;
    writeFileSync(journal, bytes);
    const said = execFileSync(process.execPath, [MAIN, 'check', '--repair', directory], { encoding: 'utf8' });
    expect(said).toContain('its state is lost');
    expect(said).not.toContain('nothing is lost');

    const after = await startChildService({ LOGRING_DATA_DIR: directory });
    for (const question of QUESTIONS) {
      const answer = await fetch(`${after.url}/api/endpoints/query/${question}`, { headers });
      expect(answer.status).toBe(200);
      expect(answer.headers.get('logring-incomplete'), question).not.toBeNull();
    }
    expect(await after.kill('SIGTERM')).toBe(0);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});
