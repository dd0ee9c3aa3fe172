/**
 * What shippers post unless told otherwise, byte for byte as their documents and sources have it: each entry
 * counts at its own time, or the POST is refused with what to change.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Service } from '../../src/service/service.js';
import { startClockedService } from '../clocked-service.js';
import { eventually } from '../eventually.js';

const KEY = 'key-of-the-shippers';
/** 2026-11-21T12:00:00Z */
const START_US = 1_795_262_400_000_000;
const NOW_US = START_US + 60_000_000;
const RELAY = '"metadata":{"project_ref":"default"}';

const directory = mkdtempSync(join(tmpdir(), 'logring-default-outputs-'));
let service: Service;

beforeAll(async () => {
  const clock = { nowUs: () => NOW_US, monotonicUs: () => NOW_US };
  const settings = {
    LOGRING_DATA_DIR: directory,
    LOGRING_API_KEYS: KEY,
    LOGRING_URL_FROM_PATH: 'true',
    // The queries below name none.
    LOGRING_QUERY_TIER: 'PRO',
  };
  service = await startClockedService(settings, clock);
});

afterAll(async () => {
  await service?.stop();
  rmSync(directory, { recursive: true, force: true });
});

/** `200 {…}` */
async function post(source: string, body: string | Uint8Array, contentType: string): Promise<string> {
  const response = await fetch(`${service.url}/api/logs?source_name=${source}`, {
    method: 'POST',
    headers: { 'X-API-KEY': KEY, 'Content-Type': contentType },
    body,
  });
  return `${response.status} ${await response.text()}`;
}

/** The rows of an endpoint, once all that was posted is applied. */
async function ask(call: string): Promise<Record<string, unknown>[]> {
  await eventually(async () => (await fetch(`${service.url}/readyz`)).status === 200);
  const response = await fetch(`${service.url}/api/endpoints/query/${call}`, {
    headers: { 'X-API-KEY': KEY },
  });
  return ((await response.json()) as { result: Record<string, unknown>[] }).result;
}

/** Seconds after the start, and message, of the rows that a body came to; the oldest first. */
async function check(project: string, contentType: string, body: string, expected: string[]): Promise<void> {
  expect(await post('edge', body, contentType)).toMatch(
    new RegExp(`^200 .*"accepted":${expected.length},"rejected":\\[\\]`),
  );
  const rows = await ask(`logs.all?project=${project}`);
  const shown = rows.map((row) => `${(Number(row.timestamp) - START_US) / 1e6} ${row.event_message}`);
  expect(shown.reverse(), project).toEqual(expected);
}

test("Fluent Bit's http output: its date is the entry's time in all three JSON formats", async () => {
  const two = (project: string) => [
    `{"date":1795262400.25,"project":"${project}","log":"one"}`,
    `{"date":1795262401.500001,"project":"${project}","log":"two"}`,
  ];
  const expected = ['0.25 one', '1.500001 two'];
  await check('fb-json', 'application/json', `[${two('fb-json').join(',')}]`, expected);
  await check('fb-stream', 'application/json', two('fb-stream').join(''), expected);
  await check('fb-lines', 'application/x-ndjson', `${two('fb-lines').join('\n')}\n`, expected);
});

test("Fluent Bit's MessagePack is refused with the setting to change", async () => {
  // [[1795262400, {"project": "p"}]]
  const packed = Buffer.from(
    '91 92 ce 6b 01 b9 40 81 a7 70 72 6f 6a 65 63 74 a1 70'.replaceAll(' ', ''),
    'hex',
  );
  expect(await post('edge', packed, 'application/msgpack')).toMatch(/^415 .*Fluent Bit: format json/);
});

test("Vector's http sink with the codec json: as an array, by lines, and without framing", async () => {
  const two = (project: string) => [
    `{"host":"h","message":"one","path":"/var/log/a","project":"${project}","source_type":"file","timestamp":"2026-11-21T12:00:00.250Z"}`,
    `{"host":"h","message":"two","path":"/var/log/a","project":"${project}","source_type":"file","timestamp":"2026-11-21T12:00:01.500001Z"}`,
  ];
  const expected = ['0.25 one', '1.500001 two'];
  await check('v-array', 'application/json', `[${two('v-array').join(',')}]`, expected);
  await check('v-lines', 'application/x-ndjson', `${two('v-lines').join('\n')}\n`, expected);
  await check('v-bytes', '', two('v-bytes').join(''), expected);
});

test("Logstash's http output, json and json_batch", async () => {
  const event = (project: string, time: string, message: string) =>
    `{"@timestamp":"2026-11-21T12:00:${time}Z","@version":"1","event":{"original":"${message}"},"host":{"name":"h"},"message":"${message}","project":"${project}"}`;
  await check('ls-json', 'application/json', event('ls-json', '00.250', 'one'), ['0.25 one']);
  const batch = `[${event('ls-batch', '00.250', 'one')},${event('ls-batch', '01.500001', 'two')}]`;
  await check('ls-batch', 'application/json', batch, ['0.25 one', '1.500001 two']);
});

test("Fluentd's out_http: by lines, as an array, with the time that inject adds, and without one", async () => {
  const two = (project: string) => [
    `{"message":"one","project":"${project}","time":1795262400.25}`,
    `{"message":"two","project":"${project}","time":"2026-11-21T12:00:01+00:00"}`,
  ];
  const expected = ['0.25 one', '1 two'];
  await check('fd-lines', 'application/x-ndjson', `${two('fd-lines').join('\n')}\n`, expected);
  await check('fd-array', 'application/json', `[${two('fd-array').join(',')}]`, expected);
  // Its json formatter leaves the time out: then it is that of arrival.
  const bare = '{"message":"one","project":"fd-bare"}\n';
  await check('fd-bare', 'application/x-ndjson', bare, ['60 one']);
});

test("a self-hosted stack's gateway logs a path and no URL: they count for its project", async () => {
  // As Vector's pipeline in the stack's docker/volumes/logs/vector.yml makes them.
  const entry = (second: number, path: string, status: number) =>
    `{"appname":"supabase-kong","event_message":"172.18.0.1 - - \\"GET ${path} HTTP/1.1\\" ${status} 2","metadata":{"request":{"headers":{"cf_connecting_ip":"172.18.0.1","referer":"-","user_agent":"curl"},"method":"GET","path":"${path}","protocol":"HTTP/1.1"},"response":{"status_code":${status}}},"project":"default","timestamp":"2026-11-21T12:00:0${second}Z"}`;
  const paths = ['/rest/v1/todos?select=*', '/auth/v1/token', '/storage/v1/object/a', '/rest/v1/'];
  const body = `[${paths.map((path, i) => entry(i, path, 200)).join(',')}]`;
  expect(await post('edge', body, 'application/json')).toBe(
    '200 {"message":"Logged!","accepted":4,"rejected":[]}',
  );
  expect(await ask('usage.api-counts?project=default&interval=hourly')).toMatchObject([
    { total_rest_requests: 2, total_auth_requests: 1, total_storage_requests: 1, total_realtime_requests: 0 },
  ]);
});

test('what entries lack is in the answer, also when they are sent again, and in the metrics', async () => {
  const send = async (source: string, body: string) =>
    (
      await fetch(`${service.url}/api/logs?source_name=${source}`, {
        method: 'POST',
        headers: { 'X-API-KEY': KEY, 'Idempotency-Key': 'same' },
        body,
      })
    ).text();
  const edge = '[{"project":"lacking"},{"project":"lacking","metadata":{"request":{"path":"/"}}},{}]';
  const first = await send('edge', edge);
  expect(first).toBe(
    '{"message":"Logged!","accepted":2,"rejected":[{"index":2,"reason":"missing-project"}],"missing":{"url":1}}',
  );
  expect(await send('edge', edge)).toBe(first);
  const timed = `{"metadata":{"project_ref":"default","execution_time_ms":1}}`;
  expect(await send('relay', `[{${RELAY}},${timed}]`)).toContain('"missing":{"status":2,"time":1}');
  await ask('logs.all?project=lacking');
  const metrics = await (await fetch(`${service.url}/metrics`)).text();
  const counts = [...metrics.matchAll(/^logring_entries_incomplete_total\{(.*)\} (\d+)$/gm)];
  // Of the other tests' edge entries none but the gateway's has a path.
  expect(counts.map(([, labels, count]) => (labels.includes('url') ? labels : `${labels} ${count}`))).toEqual(
    ['topic="edge",missing="url"', 'topic="relay",missing="status" 2', 'topic="relay",missing="time" 1'],
  );
});
