/** Keys in files: what changes there holds without a restart, and what can't be used changes nothing. */

import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { type ChildService, startChildService } from '../child-service.js';
import { eventually } from '../eventually.js';

const directory = mkdtempSync(join(tmpdir(), 'logring-keys-'));
const queryKeys = join(directory, 'query-keys');
const ingestKeys = join(directory, 'ingest-keys');
let service: ChildService;
afterAll(async () => {
  await service?.kill('SIGKILL');
  rmSync(directory, { recursive: true });
});

/** The statuses of a query for project a, one for project b and a POST. */
async function statuses(key: string): Promise<string> {
  const headers = { 'X-API-KEY': key };
  const answers = [];
  for (const project of ['a', 'b']) {
    const query = `logs.all?project=${project}&project_tier=PRO`;
    answers.push(await fetch(`${service.url}/api/endpoints/query/${query}`, { headers }));
  }
  const posted = { method: 'POST', headers, body: '[]' };
  answers.push(await fetch(`${service.url}/api/logs?source_name=cloudflare.logs.prod`, posted));
  for (const answer of answers) await answer.arrayBuffer();
  return answers.map(({ status }) => status).join(' ');
}

async function failures(): Promise<string | undefined> {
  const text = await (await fetch(`${service.url}/metrics`)).text();
  return /^logring_key_renewal_failures_total\{setting="LOGRING_API_KEYS_FILE"\} (.+)$/m.exec(text)?.[1];
}

const said = (text: string) => service.output().split(text).length - 1;

test('keys are added and removed while the service runs; a file that is not usable leaves those before', async () => {
  writeFileSync(queryKeys, 'first,c2Vjb25k==\n');
  writeFileSync(ingestKeys, 'poster');
  service = await startChildService({
    LOGRING_DATA_DIR: join(directory, 'data'),
    LOGRING_API_KEYS_FILE: queryKeys,
    LOGRING_INGEST_KEYS_FILE: ingestKeys,
  });
  expect(await statuses('first')).toBe('200 200 401');
  expect(await statuses('c2Vjb25k==')).toBe('200 200 401');
  expect(await statuses('poster')).toBe('401 401 200');
  expect(await failures()).toBe('0');

  // Removed, limited, and put in the place of the other by a rename.
  writeFileSync(queryKeys, 'c2Vjb25k===b');
  writeFileSync(`${ingestKeys}.next`, 'another-poster');
  renameSync(`${ingestKeys}.next`, ingestKeys);
  await eventually(async () => (await statuses('first')) === '401 401 401');
  await eventually(async () => (await statuses('poster')) === '401 401 401');
  expect(await statuses('c2Vjb25k==')).toBe('403 200 401');
  expect(await statuses('another-poster')).toBe('401 401 200');

  // Told once for each state of the file, and nothing of the keys.
  writeFileSync(queryKeys, 'c2Vjb25k==,sécret');
  await eventually(() => said('the keys before stay in use') === 1);
  rmSync(queryKeys);
  await eventually(() => said('the keys before stay in use') === 2);
  expect(await failures()).toBe('2');
  expect(service.output()).toMatch(/"problem":"must be a comma-separated list of key or key=projectA/);
  expect(service.output()).toMatch(/"problem":"ENOENT/);
  expect(await statuses('c2Vjb25k==')).toBe('403 200 401');

  writeFileSync(queryKeys, 'third');
  await eventually(async () => (await statuses('third')) === '200 200 401');
  expect(await statuses('c2Vjb25k==')).toBe('401 401 401');
  expect(service.output()).not.toMatch(/first|c2Vjb25k|s.cret|third|poster/);
  expect(await service.kill('SIGTERM')).toBe(0);
});
