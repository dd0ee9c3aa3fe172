/**
 * The OpenAPI document: valid by a validator of others', and true: what a running service and every error
 * answer is as it says.
 */

import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Validator } from '@seriousme/openapi-schema-validator';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTraffic } from '../../bench/generator/traffic.js';
import { parseIsoTimestampUs } from '../../engine/iso-timestamp.js';
import { SegmentError } from '../../engine/segments.js';
import { US_PER_SECOND } from '../../engine/time.js';
import { ISO_TIMESTAMP_PATTERN } from '../../src/endpoints/iso-timestamp-pattern.js';
import { ENDPOINTS } from '../../src/endpoints/list.js';
import { Unavailable } from '../../src/endpoints/refusal.js';
import { KeyRing } from '../../src/http/auth.js';
import { descriptionPages } from '../../src/http/description/description-pages.js';
import type { OpenApiDocument } from '../../src/http/description/openapi-document.js';
import { REFERENCE_POLICY } from '../../src/http/description/reference-page.js';
import { CATALOGUE } from '../../src/http/errors.js';
import { RequestPaces } from '../../src/http/request-pace.js';
import type { HttpAnswer } from '../../src/http/server/server.js';
import { wallClockUs } from '../../src/system-clock.js';
import { type ChildService, startChildService, TEST_KEY } from '../child-service.js';
import { eventually } from '../eventually.js';
import { bodyOf, INGEST_KEY, KEY, LIMITED_KEY, TestService } from '../http/service.js';
import { DescribedApi, type DescribedMethod } from './described-api.js';

const MAIN = fileURLToPath(new URL('../../src/main.js', import.meta.url));
const LOGS = '/api/endpoints/query/logs.all';
const STATS = '/api/endpoints/query/functions.invocation-stats';
const USAGE = '/api/endpoints/query/usage.api-counts';
const EVENTS = '/api/endpoints/query/logs.event-counts';
const POST = '/api/logs';
const EDGE_TOPIC = 'cloudflare.logs.prod';

const directory = mkdtempSync(join(tmpdir(), 'logring-description-'));
const traffic = createTraffic({ seed: 1, projectCount: 3 });
const project = traffic.projects[0].ref;
let service: ChildService;
let api: DescribedApi;

/** Asks the running service; the answer must be as described. */
async function asked(path: string, query: Record<string, string>, init: RequestInit = {}): Promise<string> {
  const method = (init.method ?? 'GET').toLowerCase() as DescribedMethod;
  const response = await fetch(`${service.url}${path}?${new URLSearchParams(query)}`, {
    ...init,
    headers: { 'X-API-KEY': TEST_KEY, ...init.headers },
  });
  const answer = { status: response.status, headers: response.headers, body: await response.text() };
  expect(api.problemsOf(method, path, answer), `${path} ${JSON.stringify(query)}`).toEqual([]);
  return `${answer.status} ${answer.body}`;
}

beforeAll(async () => {
  service = await startChildService({ LOGRING_DATA_DIR: directory, LOGRING_CACHE_SECONDS: '900' });
  api = new DescribedApi((await (await fetch(`${service.url}/openapi.json`)).json()) as OpenApiDocument);
  const nowUs = wallClockUs();
  for (const [source, entryOf] of [
    [EDGE_TOPIC, traffic.edge],
    ['deno-relay-logs', traffic.relay],
  ] as const) {
    const lines = Array.from({ length: 300 }, (_, i) => entryOf(nowUs - i * US_PER_SECOND));
    const body = [...lines, '{"project":"bare"}', '{"metadata":{"project_ref":"bare"}}', '[]', '"x'].join(
      '\n',
    );
    const answer = await asked(POST, { source_name: source }, { method: 'POST', body });
    expect(answer).toContain('"accepted":301,"rejected":[{"index":');
  }
});
afterAll(async () => {
  await service?.kill('SIGTERM');
  rmSync(directory, { recursive: true, force: true });
});

test('the document is valid OpenAPI 3.1, and every error of the catalogue is in it', async () => {
  const result = await new Validator().validate(
    structuredClone(api.document) as unknown as Record<string, unknown>,
  );
  expect(result.errors ?? []).toEqual([]);
  expect(result.valid).toBe(true);
  const names = Object.values(CATALOGUE).map((entry) => entry.names[0]);
  expect(Object.keys(api.document.components.responses)).toEqual(names);
  expect(api.operations().map(({ operation }) => operation.operationId)).toHaveLength(25);
});

test('answers of a running service are as described, with rows in them', async () => {
  const tier = { project, project_tier: 'PRO' };
  // What stands last in the two bodies is applied last.
  await eventually(async () => (await asked(LOGS, { ...tier, project: 'bare' })).includes('"id"'));
  await eventually(async () =>
    (await asked(STATS, { project: 'bare', interval: '1hr' })).includes('"count"'),
  );
  expect(await asked(LOGS, { project: 'bare', project_tier: '' })).toMatch(
    /"event_message":null,"metadata":null/,
  );
  for (const interval of ['5min', '15min', '1hr', '1day', '7day', '']) {
    expect(await asked(STATS, { project, interval })).toContain('"p99_execution_time"');
  }
  expect(await asked(STATS, { project: 'bare', interval: '1hr' })).toContain('"min_execution_time":null');
  for (const interval of ['minutely', 'hourly', 'daily']) {
    expect(await asked(USAGE, { project, interval })).toContain('"total_rest_requests"');
    expect(await asked(EVENTS, { ...tier, interval })).toContain('"ok_count"');
  }
  for (const { path, method, operation } of api.operations()) {
    const query = { ...tier, interval: 'daily', source_name: EDGE_TOPIC, id: 'none' };
    const init = {
      method: method.toUpperCase(),
      ...(method === 'post' && path === POST ? { body: '[]' } : {}),
    };
    expect(await asked(path, query, init)).toMatch(/^200/);
    if (operation.security.length > 0)
      expect(await asked(path, query, { ...init, headers: { 'X-API-KEY': 'wrong' } })).toMatch(/^401/);
    expect(await asked(path, { ...query, long: 'x'.repeat(20_000) }, init)).toMatch(/^(400|414)/);
  }
});

test('dead letters are listed a page at a time, the newest first', async () => {
  const listed = async (query: Record<string, string>) =>
    JSON.parse((await asked('/api/dead-letters', query)).slice('200 '.length)) as {
      letters: { topic: string; reason: string; count: number; samples: { text: string }[] }[];
      next: string | null;
    };
  const all = await listed({});
  expect(all.next).toBeNull();
  expect(all.letters.map(({ topic, reason }) => `${topic} ${reason}`)).toContain(`${EDGE_TOPIC} not-json`);
  expect(all.letters.flatMap(({ samples }) => samples.map(({ text }) => text))).toContain('"x');
  const paged = [];
  for (let before: string | null = ''; before !== null; ) {
    const page = await listed(before === '' ? { limit: '1' } : { limit: '1', before });
    paged.push(...page.letters);
    before = page.next;
  }
  expect(paged).toEqual(all.letters);
  const printed = (...args: string[]) =>
    new Promise<{ status: unknown; stdout: string; stderr: string }>((resolve) => {
      const command = [MAIN, 'dead-letters', ...args];
      execFile(process.execPath, command, { env: { PATH: process.env.PATH } }, (error, stdout, stderr) =>
        resolve({ status: error === null ? 0 : (error.code ?? error.signal), stdout, stderr }),
      );
    });
  const { status, stdout, stderr } = await printed('--url', service.url, '--key', TEST_KEY);
  expect(stderr).toBe('');
  expect([
    status,
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  ]).toEqual([0, all.letters]);
  const wrong = await printed('--url', service.url, '--key', 'wrong');
  expect([wrong.status, wrong.stderr]).toEqual([1, expect.stringMatching(/^logring dead-letters: .*401 .+/)]);
  expect(await asked('/api/dead-letters', { limit: '0' })).toMatch(/^400 .*limit must be a whole number/);
});

test('a page of large dead letters has fewer, and the next ones follow', async () => {
  const line = 'x'.repeat(4096);
  for (let post = 0; post < 15; post++) {
    const init = { method: 'POST', body: `${`${line}\n`.repeat(10)}{}` };
    expect(await asked(POST, { source_name: EDGE_TOPIC }, init)).toMatch(/^200/);
  }
  const listed = async () => {
    const pages: { text: string }[][] = [];
    for (let before: string | null = ''; before !== null; ) {
      const query: Record<string, string> = { limit: '1000', ...(before === '' ? {} : { before }) };
      const { letters, next } = JSON.parse((await asked('/api/dead-letters', query)).slice('200 '.length));
      pages.push(letters.flatMap(({ samples }: { samples: { text: string }[] }) => samples));
      before = next;
    }
    return pages;
  };
  // They are written soon after a POST is answered.
  const countOf = (pages: { text: string }[][]) => pages.flat().filter(({ text }) => text === line).length;
  await eventually(async () => countOf(await listed()) === 150);
  const pages = await listed();
  expect(pages.length).toBeGreaterThan(1);
  expect(countOf(pages)).toBe(150);
  for (const page of pages)
    expect(page.reduce((sum, { text }) => sum + text.length, 0)).toBeLessThanOrEqual(512 * 1024 + 10 * 4096);
});

test('whatever the parameters are, the answer is one of those described, and 200 exactly for those that are valid', async () => {
  const text = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 12 }),
    fc.constantFrom(project, '', '1hr', 'daily', 'PRO'),
  );
  const timestamp = fc.oneof(
    text,
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString()),
    fc.constantFrom('2026-11-21', '2026-02-30', '2026-11-21T24:00:00+02'),
  );
  const query = fc.record(
    {
      project: text,
      project_tier: text,
      interval: text,
      function_id: text,
      iso_timestamp_start: timestamp,
      iso_timestamp_end: timestamp,
      other: text,
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(LOGS, STATS, USAGE), query, async (path, given) => {
      const answer = await asked(path, given as Record<string, string>);
      // Which texts are regular expressions in RE2's syntax no schema can say.
      if (path === USAGE) return;
      expect(answer.startsWith('200')).toBe(isValid(path, given as Record<string, string>));
    }),
    { numRuns: 300, seed: 6 },
  );
});

/** By the schemas of the document alone. */
function isValid(path: string, query: Record<string, string>): boolean {
  return api.document.paths[path].get!.parameters.every(({ name, required, schema }) => {
    const value = query[name];
    if (value === undefined) return !required;
    const { minLength = 0, pattern = '' } = schema as { minLength?: number; pattern?: string };
    return value.length >= minLength && new RegExp(pattern, 'u').test(value);
  });
}

test('the pattern of timestamps describes exactly what the parser takes', () => {
  const digits = (count: number) => fc.stringMatching(new RegExp(`^[0-9]{${count}}$`));
  const near = fc
    .tuple(
      fc.constantFrom('2024', '2023', '1900', '2000', '0000', '9999', '20a4'),
      fc.constantFrom('01', '02', '04', '11', '12', '13', '00'),
      fc.constantFrom('01', '28', '29', '30', '31', '32', '00'),
      fc.constantFrom('', 'T', ' ', 't', 'x'),
      fc.constantFrom('', '00:00', '23:59', '24:00', '24:01', '24:00:00.000', '24:00:00.1', '7:00'),
      fc.oneof(
        fc.constantFrom('', ':', ':59', ':60x', '.5', ':00.', ':00,1'),
        digits(2).map((ss) => `:0${ss}`),
      ),
      fc.oneof(
        fc.constantFrom('', 'Z', 'z', '+02', '-0230', '+23:59', '+24:00', '+2:00', '+02:60'),
        digits(4),
      ),
    )
    .map((parts) => parts.join(''));
  const pattern = new RegExp(ISO_TIMESTAMP_PATTERN, 'u');
  fc.assert(
    fc.property(near, (text) => {
      expect(pattern.test(text), text).toBe(text === '' || parseIsoTimestampUs(text) !== null);
    }),
    { numRuns: 5000, seed: 6 },
  );
});

test('errors that a healthy service does not give are as described, too', async () => {
  const set = new TestService({ ingest: null });
  const withIngest = new TestService();
  const described = new DescribedApi(documentOf('test'));
  const wrong = {
    status: 200,
    headers: new Headers([
      ['Content-Type', 'application/json'],
      ['X', 'y'],
    ]),
    body: '{}',
  };
  expect(described.problemsOf('get', STATS, wrong)).toHaveLength(2);
  const check = (path: string, method: 'get' | 'post', answer: HttpAnswer, expected: string) => {
    const headers = new Headers(answer.headers as [string, string][]);
    const received = { status: answer.status, headers, body: bodyOf(answer) };
    expect(described.problemsOf(method, path, received)).toEqual([]);
    const { error } = JSON.parse(received.body) as { error: { code: number; status: string } };
    expect(`${error.code} ${error.status}`).toBe(expected);
  };
  const failing = async (failure: unknown) => {
    set.queries.failure = failure;
    return set.ask(`${STATS}?project=p&interval=1hr`);
  };
  check(STATS, 'get', await failing(new SegmentError('damaged')), '500 DATA_LOSS');
  check(STATS, 'get', await failing(new Unavailable('not now', 3)), '503 UNAVAILABLE');
  const limited = { 'X-API-KEY': LIMITED_KEY };
  check(STATS, 'get', await set.ask(`${STATS}?project=p&interval=1hr`, limited), '403 PERMISSION_DENIED');
  check(POST, 'post', await set.post(POST, [Buffer.from('{}')]), '404 NOT_FOUND');
  const paced = new TestService({ keys: new KeyRing([{ key: KEY, projects: null }], new RequestPaces(1)) });
  await paced.ask(STATS);
  check(STATS, 'get', await paced.ask(STATS), '429 RESOURCE_EXHAUSTED');
  const body = [Buffer.from('[{}]')];
  const post = (headers: Record<string, string>, target = `${POST}?source_name=edge`) =>
    withIngest.post(target, body, headers);
  check(POST, 'post', await post({ 'Content-Encoding': 'br' }), '415 UNSUPPORTED_MEDIA_TYPE');
  check(POST, 'post', await post({ 'Content-Length': '20000000' }), '413 PAYLOAD_TOO_LARGE');
  check(POST, 'post', await post(limited), '403 PERMISSION_DENIED');
  check(POST, 'post', await post({}, `${POST}?source_name=x`), '400 INVALID_ARGUMENT');
  withIngest.ingest.busy = true;
  check(POST, 'post', await post({ 'X-API-KEY': INGEST_KEY }), '503 UNAVAILABLE');
});

test('the reference page loads nothing, runs nothing, and takes what it shows for text only', async () => {
  const hostile = '</code></style><script>alert(1)</script><img src=x onerror=alert(1)>"\'&';
  const pages = new Map(
    descriptionPages({
      version: hostile,
      endpoints: ENDPOINTS.map((endpoint) => ({ id: endpoint.id, endpoint })),
      sourceNames: [hostile],
    }),
  );
  const page = bodyOf((await pages.get('/reference')!.answer(null as never, 0, null)) as HttpAnswer);
  expect(page).toContain(
    '&lt;script&gt;alert(1)&lt;/script&gt;&lt;img src=x onerror=alert(1)&gt;&quot;&#39;&amp;',
  );
  expect(page).not.toMatch(
    /<script|<img|<link|<iframe|\son[a-z]+=[^&]*>.*<\/|style=|url\(|@import|javascript:/i,
  );
  expect(
    [...page.matchAll(/(?:href|src)="([^"]*)"/g)].map(([, to]) => to).filter((to) => !/^[#/]/.test(to)),
  ).toEqual([]);
  expect(REFERENCE_POLICY).toMatch(
    /^default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='; base-uri 'none'/,
  );
  const served = await fetch(`${service.url}/reference`);
  expect(served.headers.get('content-security-policy')).toBe(REFERENCE_POLICY);
  const text = await served.text();
  for (const { path } of api.operations()) expect(text).toContain(path);
});

function documentOf(version: string): OpenApiDocument {
  const pages = new Map(
    descriptionPages({
      version,
      endpoints: ENDPOINTS.map((endpoint) => ({ id: endpoint.id, endpoint })),
      sourceNames: ['edge'],
    }),
  );
  return JSON.parse(
    bodyOf(pages.get('/openapi.json')!.answer(null as never, 0, null) as HttpAnswer),
  ) as OpenApiDocument;
}
