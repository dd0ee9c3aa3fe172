/** The dashboard over a project's data: what each panel asks and makes of the answer, with a real service. */

import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { raw as jq } from 'jq-wasm';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, type ChildService, startChildService, TEST_KEY } from '../child-service.js';
import { eventually } from '../eventually.js';

interface Target {
  readonly datasource: { readonly type: string };
  readonly parser: string;
  readonly url: string;
  readonly url_options: { readonly params: readonly { readonly key: string; readonly value: string }[] };
  readonly root_selector: string;
  readonly columns: readonly Column[];
}

interface Column {
  readonly selector: string;
  /** Its name, if not its selector. */
  readonly text: string;
  readonly type: 'number' | 'string' | 'timestamp' | 'timestamp_epoch';
}

type Value = string | number | null | undefined;

const MESSAGE = 'GET | 404 | "quoted"';
const METADATA = {
  request: { url: 'https://abc.example.co/rest/v1/t?a=1', path: '/rest/v1/t' },
  response: { status_code: 404 },
};
const timestampUs = Date.now() * 1000 + 123;
const isoOf = (ms: number) => new Date(ms).toISOString();
/** The start of its bucket of so many minutes. */
const bucket = (minutes: number) => isoOf(Math.floor(timestampUs / 60e6 / minutes) * minutes * 60e3);

let directory: string;
let service: ChildService;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'logring-grafana-'));
  service = await startChildService({ LOGRING_DATA_DIR: directory });
  const post = async (topic: string, entry: object) => {
    const answer = await fetch(`${service.url}/api/logs?source_name=${topic}`, {
      method: 'POST',
      headers: { 'X-API-KEY': TEST_KEY },
      body: JSON.stringify({ timestamp: timestampUs, ...entry }),
    });
    expect(answer.status).toBe(200);
  };
  await post('cloudflare.logs.prod', { id: 'e', project: 'abc', event_message: MESSAGE, metadata: METADATA });
  const call = { project_ref: 'abc', function_id: 'f', response: { status_code: 200 } };
  await post('deno-relay-logs', { metadata: { ...call, execution_time_ms: 7.5 } });
  const query = '/api/endpoints/query';
  await eventually(async () => {
    const logs = await ask(service.url, `${query}/logs.all?project=abc&project_tier=PRO`);
    const calls = await ask(service.url, `${query}/functions.invocation-stats?project=abc&interval=1hr`);
    return logs.result.length === 1 && calls.result.length === 1;
  });
});

afterAll(async () => {
  await service?.kill('SIGTERM');
  await rm(directory, { recursive: true, force: true });
});

/** As Infinity's columns read it. */
function cellOf(row: Record<string, Value>, { selector, type }: Column): Value {
  const value = row[selector];
  if (value === null) return value;
  if (type === 'timestamp_epoch' && typeof value === 'number') return isoOf(Math.trunc(value));
  if (type === 'timestamp' && /T.+Z$/.test(String(value))) return isoOf(Date.parse(String(value)));
  if (type === typeof value) return value;
  throw new Error(`${selector} is no ${type}: ${JSON.stringify(row)}`);
}

/** What a panel shows, with the dashboard's variables set. */
async function rowsOf(target: Target): Promise<Record<string, Value>[]> {
  const variables: Record<string, string> = {
    url: service.url,
    project: 'abc',
    tier: 'PRO',
    function: '',
    '__from:date:iso': isoOf(timestampUs / 1000 - 3_600_000),
    '__to:date:iso': isoOf(timestampUs / 1000 + 3_600_000),
  };
  const filled = (text: string) =>
    text.replace(/\$\{(.+?)\}/g, (whole, name: string) => {
      if (variables[name] === undefined) throw new Error(`no variable ${whole}`);
      return variables[name];
    });
  const query = new URLSearchParams();
  for (const { key, value } of target.url_options.params) query.append(key, filled(value));
  const answer = await ask(filled(target.url), `?${query}`);
  const lines = await jq(answer, target.root_selector, ['-c']);
  return lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const row = JSON.parse(line) as Record<string, Value>;
      return Object.fromEntries(
        target.columns.map((column) => [column.text || column.selector, cellOf(row, column)]),
      );
    });
}

const edge = (Time: string) => ({ Time, OK: 0, Warnings: 1, Errors: 0 });
const requests = (Time: string) => ({ Time, REST: 1, Storage: 0, Auth: 0, Realtime: 0 });
const calls = (Time: string) => ({ Time, Invocations: 1, Errors: 0 });
const times = (Time: string) => ({
  Time,
  Mean: 7.5,
  '95th percentile': 7.5,
  '99th percentile': 7.5,
  Maximum: 7.5,
});

test('each panel shows what was posted, at its time', async () => {
  const { panels } = JSON.parse(await readFile('deploy/grafana-project.json', 'utf8')) as {
    panels: { title: string; type: string; targets?: Target[] }[];
  };
  const shown: Record<string, unknown> = {};
  for (const { title, targets = [] } of panels)
    for (const target of targets) {
      expect([target.datasource.type, target.parser]).toEqual([
        'yesoreyeram-infinity-datasource',
        'jq-backend',
      ]);
      const [row, ...others] = await rowsOf(target);
      expect(others).toEqual([]);
      shown[title] = row;
    }
  expect(shown).toEqual({
    'Edge logs a minute': edge(bucket(1)),
    'Edge logs an hour, of a day': edge(bucket(60)),
    'API requests a minute': requests(bucket(1)),
    'API requests a day, of a week': requests(bucket(24 * 60)),
    'Function invocations a minute': calls(bucket(1)),
    'Function invocations an hour, of a day': calls(bucket(60)),
    'Execution time by the minute': times(bucket(1)),
    'Execution time by the hour, of a day': times(bucket(60)),
    'Newest edge logs': {
      timestamp: isoOf(Math.floor(timestampUs / 1000)),
      body: MESSAGE,
      id: 'e',
      metadata: JSON.stringify(METADATA),
    },
  });
});
