/**
 * The table of what the contract leaves open (DESIGN 1), as far as it concerns HTTP: one test a row, without
 * sockets.
 */

import { expect, test } from 'vitest';
import { UsageView } from '../../engine/usage/usage-view.js';
import { Unavailable } from '../../src/endpoints/refusal.js';
import { ApiCountsEvaluator } from '../../src/match-thread/api-counts-evaluator.js';
import { ExpressionError } from '../../src/match-thread/expression-error.js';
import { evaluatedRows } from '../queries.js';
import {
  bodyOf,
  headerOf,
  KEY,
  LIMITED_KEY,
  NOW_US,
  problemsOf,
  SetQueries,
  TestService,
  textOf,
} from './service.js';

const LOGS = '/api/endpoints/query/logs.all';
const STATS = '/api/endpoints/query/functions.invocation-stats';
const USAGE = '/api/endpoints/query/usage.api-counts';
const LOGS_OK = `${LOGS}?project=p&project_tier=PRO`;
const STATS_OK = `${STATS}?project=p&interval=1hr`;
const USAGE_OK = `${USAGE}?project=p&interval=daily`;

const STATS_ROW = {
  bucketStartUs: NOW_US,
  count: 3,
  errorCount: 1,
  classCounts: [0, 2, 0, 1, 0],
  minMs: 1,
  maxMs: 2.5,
  meanMs: 1.75,
  p95Ms: 2.5,
  p99Ms: 2.5,
};

function nothingSealed(): never {
  throw new Error('nothing is sealed here');
}

test('envelope: {"result":[…]} as JSON, with exactly the listed columns in the listed order', async () => {
  const service = new TestService();
  service.queries.logRows = [Buffer.from('{"id":"b"}'), Buffer.from('{"id":"é"}')];
  const noTimes = { minMs: null, maxMs: null, meanMs: null, p95Ms: null, p99Ms: null };
  service.queries.statsRows = [STATS_ROW, { ...STATS_ROW, ...noTimes }];
  service.queries.usageRows = [{ bucketStartUs: NOW_US, rest: 1, storage: 2, auth: 3, realtime: 0 }];

  const check = async (target: string, body: string) => {
    const answer = await service.ask(target);
    expect(textOf(answer)).toBe(`200 ${body}`);
    expect(headerOf(answer, 'Content-Type')).toBe('application/json; charset=utf-8');
  };
  await check(LOGS_OK, '{"result":[{"id":"b"},{"id":"é"}]}');
  await check(
    STATS_OK,
    '{"result":[' +
      '{"timestamp":1795244400000000,"min_execution_time":1,"max_execution_time":2.5,"avg_execution_time":1.75,' +
      '"p95_execution_time":2.5,"p99_execution_time":2.5,"count":3,"error_count":1},' +
      '{"timestamp":1795244400000000,"min_execution_time":null,"max_execution_time":null,"avg_execution_time":null,' +
      '"p95_execution_time":null,"p99_execution_time":null,"count":3,"error_count":1}]}',
  );
  await check(
    USAGE_OK,
    '{"result":[{"timestamp":"2026-11-21T07:00:00","total_rest_requests":1,"total_storage_requests":2,' +
      '"total_auth_requests":3,"total_realtime_requests":0}]}',
  );
});

test('buckets without entries give no row; no rows at all are an empty result', async () => {
  const service = new TestService();
  service.queries.logRows = [];
  for (const target of [LOGS_OK, STATS_OK, USAGE_OK])
    expect(textOf(await service.ask(target))).toBe('200 {"result":[]}');
});

test('metadata is returned byte for byte: the rows of logs.all are copied, not read', async () => {
  const service = new TestService();
  service.queries.logRows = [Buffer.from('{"metadata":{"b":1.50,"a":1e3,"a":"\\u0041"}}')];
  expect(bodyOf(await service.ask(LOGS_OK))).toBe(
    '{"result":[{"metadata":{"b":1.50,"a":1e3,"a":"\\u0041"}}]}',
  );
});

test('errors: one catalogue, one form, every problem in one answer', async () => {
  const service = new TestService();
  const answer = await service.ask(
    `${LOGS}?iso_timestamp_start=yesterday&iso_timestamp_end=%zz&project_tier=a&project_tier=b`,
  );
  expect(JSON.parse(bodyOf(answer))).toEqual({
    error: {
      code: 400,
      status: 'INVALID_ARGUMENT',
      message:
        'iso_timestamp_end is not percent-encoded UTF-8: the value "%zz"; project_tier is given more than once; ' +
        'project is required; ' +
        'iso_timestamp_start must be an ISO 8601 timestamp such as 2026-11-21T07:00:00Z, not "yesterday"',
      errors: [
        { parameter: 'iso_timestamp_end', message: 'is not percent-encoded UTF-8: the value "%zz"' },
        { parameter: 'project_tier', message: 'is given more than once' },
        { parameter: 'project', message: 'is required' },
        {
          parameter: 'iso_timestamp_start',
          message: 'must be an ISO 8601 timestamp such as 2026-11-21T07:00:00Z, not "yesterday"',
        },
      ],
    },
  });
  expect(headerOf(answer, 'Content-Type')).toBe('application/json; charset=utf-8');
  expect(service.queries.takeAsked()).toEqual([]);
});

test('unknown endpoint: 404; UUID (in either case) and name go through one lookup, and ids may be configured', async () => {
  const service = new TestService();
  const check = async (segment: string, asked: string[]) => {
    const answer = await service.ask(
      `/api/endpoints/query/${segment}?project=p&project_tier=PRO&interval=daily`,
    );
    expect(service.queries.takeAsked()).toEqual(asked);
    expect(answer.status).toBe(asked.length === 0 ? 404 : 200);
  };
  await check('logs.all', ['logs p 7d (null..null)']);
  await check('1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a01', ['logs p 7d (null..null)']);
  await check('1F3AC5C8-0D5E-4B0E-8A55-6F2B9D1C7A01', ['logs p 7d (null..null)']);
  await check('logs%2Eall', ['logs p 7d (null..null)']);
  await check('1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a02', ['stats p null 1day']);
  await check('1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a03', ['usage p daily']);
  for (const unknown of [
    'LOGS.ALL',
    'logs',
    'logs.all/',
    '',
    'logs%2',
    '1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a04',
  ]) {
    await check(unknown, []);
  }
  expect(problemsOf(await service.ask('/api/endpoints/query/nope'))).toBe(
    '404 NOT_FOUND no endpoint is called "nope"',
  );

  const own = new TestService({ ids: { 'logs.all': 'AAAAAAAA-0d5e-4b0e-8a55-6f2b9d1c7a01' } });
  const query = '?project=p&project_tier=PRO';
  expect((await own.ask(`/api/endpoints/query/aaaaaaaa-0D5E-4b0e-8a55-6f2b9d1c7a01${query}`)).status).toBe(
    200,
  );
  expect((await own.ask(`/api/endpoints/query/1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a01${query}`)).status).toBe(
    404,
  );
});

test('other methods: 405 with Allow; HEAD is answered like GET', async () => {
  const service = new TestService();
  const check = async (method: string, target: string, allow: string) => {
    const answer = await service.ask(target, { 'Content-Length': '0' }, method);
    expect(answer.status).toBe(405);
    expect(headerOf(answer, 'Allow')).toBe(allow);
  };
  for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'QUERY']) {
    await check(method, LOGS_OK, 'GET, HEAD, OPTIONS');
    await check(method, '/metrics', 'GET, HEAD');
  }
  const [got, head] = [await service.ask(LOGS_OK), await service.ask(LOGS_OK, {}, 'HEAD')];
  const { release: _got, ...gotten } = got;
  expect(head).toMatchObject(gotten);
});

test('OPTIONS answers CORS for configured origins, and for none by default', async () => {
  const origin = 'https://app.example.com';
  const check = async (corsOrigins: string[], sentOrigin: string, allowed: string | null) => {
    const service = new TestService({ corsOrigins });
    // Without a key: browsers send none with a preflight.
    const preflight = await service.ask(LOGS, { Origin: sentOrigin, 'X-API-KEY': '' }, 'OPTIONS');
    expect(textOf(preflight)).toBe('204 ');
    expect(headerOf(preflight, 'Allow')).toBe('GET, HEAD, OPTIONS');
    expect(headerOf(preflight, 'Access-Control-Allow-Origin')).toBe(allowed);
    expect(headerOf(preflight, 'Access-Control-Allow-Headers')?.includes('X-API-KEY') ?? false).toBe(
      allowed !== null,
    );
    for (const answer of [
      await service.ask(LOGS_OK, { Origin: sentOrigin }),
      await service.ask(LOGS_OK, { Origin: sentOrigin, 'X-API-KEY': 'wrong' }),
      await service.ask(USAGE_OK, { Origin: sentOrigin }),
    ]) {
      expect(headerOf(answer, 'Access-Control-Allow-Origin')).toBe(allowed);
      expect(headerOf(answer, 'Vary')?.includes('Origin') ?? false).toBe(corsOrigins.length > 0);
    }
    expect(
      headerOf(await service.ask('/metrics', { Origin: sentOrigin }), 'Access-Control-Allow-Origin'),
    ).toBe(null);
  };
  await check([], origin, null);
  await check([origin], origin, origin);
  await check([origin], 'https://app.example.com.evil.example', null);
  await check(['https://other.example', origin], origin, origin);
  await check(['*'], 'https://anything.example', 'https://anything.example');
});

test('missing required parameter: 400 naming it; an empty project counts as absent', async () => {
  const service = new TestService();
  const check = async (target: string, problems: string) =>
    expect(problemsOf(await service.ask(target))).toBe(`400 INVALID_ARGUMENT ${problems}`);
  await check(LOGS, 'project: is required; project_tier: is required');
  await check(`${LOGS}?project=&project_tier=`, 'project: is required');
  await check(STATS, 'project: is required; interval: is required');
  await check(`${STATS}?project=p`, 'interval: is required');
  await check(USAGE, 'project: is required; interval: is required: one of hourly, daily, minutely');
});

test('an empty or unknown project_tier is FREE, compared as it is', async () => {
  const service = new TestService();
  const check = async (tier: string, days: number) => {
    await service.ask(`${LOGS}?project=p&project_tier=${tier}`);
    expect(service.queries.takeAsked()).toEqual([`logs p ${days}d (null..null)`]);
  };
  await check('FREE', 1);
  await check('PRO', 7);
  await check('PAYG', 90);
  await check('ENTERPRISE', 90);
  for (const unknown of ['', 'free', 'pro', 'PRO%20', '+PRO', 'TEAM']) await check(unknown, 1);
});

test('an empty or unknown interval of functions.invocation-stats is 1day, compared as it is', async () => {
  const service = new TestService({ cacheSeconds: 0 });
  const check = async (interval: string, meant: string) => {
    await service.ask(`${STATS}?project=p&interval=${interval}`);
    expect(service.queries.takeAsked()).toEqual([`stats p null ${meant}`]);
  };
  for (const interval of ['5min', '15min', '1hr', '1day', '7day']) await check(interval, interval);
  for (const unknown of ['', '1HR', '1h', 'hourly', '1hr%20']) await check(unknown, '1day');
});

test('function_id: empty or absent is all functions', async () => {
  const service = new TestService({ cacheSeconds: 0 });
  for (const [query, asked] of [
    ['', 'stats p null 1hr'],
    ['&function_id=', 'stats p null 1hr'],
    ['&function_id=f-1', 'stats p f-1 1hr'],
  ]) {
    await service.ask(STATS_OK + query);
    expect(service.queries.takeAsked()).toEqual([asked]);
  }
});

test('an interval of usage.api-counts outside the three: 400, naming the three', async () => {
  const service = new TestService();
  for (const interval of ['weekly', 'Daily', '', '1day']) {
    expect(problemsOf(await service.ask(`${USAGE}?project=p&interval=${interval}`))).toBe(
      `400 INVALID_ARGUMENT interval: must be one of hourly, daily, minutely, not "${interval}"`,
    );
  }
});

test('unparsable timestamp, malformed percent-encoding, a parameter given twice: 400; unknown ones are ignored', async () => {
  const service = new TestService();
  const check = async (query: string, status: number) =>
    expect((await service.ask(LOGS_OK + query)).status).toBe(status);
  await check('&iso_timestamp_start=2026-02-30T00:00:00Z', 400);
  await check('&iso_timestamp_end=1795244400', 400);
  await check('&iso_timestamp_start=%', 400);
  await check('&iso_timestamp_start=%f', 400);
  await check('&iso_timestamp_start=%ff', 400);
  await check('&iso_timestamp_start=%c0%80', 400);
  await check('&%zz=1', 400);
  await check('&project=p', 400);
  await check('&project=other', 400);
  await check('&unknown=1&unknown=2&=&&x', 200);
});

test('a bad, over-long, too complex or too expensive regular expression: 400; too many at once, or at the end: 503', async () => {
  const service = new TestService();
  const target = `${USAGE}?project=(&interval=daily`;
  // Thrown at once, then rejected later.
  for (const gate of [null, Promise.resolve()]) {
    service.queries.gate = gate;
    for (const kind of ['invalid', 'too-long', 'too-complex', 'too-expensive'] as const) {
      service.queries.failure = new ExpressionError(kind, `is ${kind}`);
      expect(problemsOf(await service.ask(target))).toBe(`400 INVALID_ARGUMENT project: is ${kind}`);
    }
    for (const kind of ['busy', 'stopped'] as const) {
      service.queries.failure = new ExpressionError(kind, 'is not evaluated');
      const answer = await service.ask(target);
      expect(problemsOf(answer)).toBe('503 UNAVAILABLE the expression is not evaluated');
      expect(headerOf(answer, 'Retry-After')).toBe('1');
    }
  }
  // Errors are not cached.
  service.queries.failure = null;
  expect((await service.ask(target)).status).toBe(200);
  expect(service.bugs.bugs).toEqual([]);
});

test('an invalid expression and a wrong interval are told in one answer', async () => {
  const files = { locate: nothingSealed, damaged: nothingSealed };
  const evaluator = new ApiCountsEvaluator(() => [new UsageView()], { files });
  const queries = new SetQueries();
  queries.apiCounts = ({ expression, interval }, nowUs) =>
    evaluatedRows(evaluator, { expression, interval, nowUs });
  const service = new TestService({
    queries: Object.assign(queries, { checkExpression: (expression: string) => evaluator.check(expression) }),
  });
  const check = async (query: string, ...problems: RegExp[]) => {
    const answer = await service.ask(`${USAGE}?${query}`);
    const { error } = JSON.parse(bodyOf(answer));
    const found = error.errors.map(
      ({ parameter, message }: Record<string, string>) => `${parameter} ${message}`,
    );
    expect(found.length, query).toBe(problems.length);
    problems.forEach((problem, i) => {
      expect(found[i], query).toMatch(problem);
    });
    expect([answer.status, error.message]).toEqual([400, found.join('; ')]);
  };
  const [invalid, wrong] = [/^project is not a regular expression/, /^interval must be one of/];
  await check('project=(&interval=daily', invalid);
  await check('project=(&interval=weekly', invalid, wrong);
  await check('project=(', invalid, /^interval is required/);
  await check('project=a.{1000}{1000}&interval=weekly', /^project /, wrong);
  await check(`project=${'.{1000}'.repeat(100)}&interval=x`, /^project compiles to \d+ instructions/, wrong);
  await check(`project=${'a'.repeat(1001)}&interval=x`, /^project is 1001 characters long/, wrong);
  await check('project=abc&interval=weekly', wrong);
  await check('project=a.c&interval=weekly', wrong);
  await check('project=&interval=weekly', /^project is required/, wrong);
  await check('project=%ff&interval=weekly', /^project is not percent-encoded/, wrong);
  await check('project=(&project=(&interval=weekly', /^project is given more than once/, wrong);
  // Too busy to say, or at the end: then what is known is told.
  await evaluator.stop();
  await check('project=(&interval=weekly', wrong);
});

test('a project or function id over 1,024 bytes of UTF-8 is 400, as an entry with one is a dead letter', async () => {
  const service = new TestService({ cacheSeconds: 0 });
  const check = async (target: string, problems: string) =>
    expect(problemsOf(await service.ask(target))).toBe(problems);
  const [most, tooMany] = ['é'.repeat(512), `${'é'.repeat(512)}x`].map(encodeURIComponent);
  const tooLong = 'is 1025 bytes long, the limit is 1024';
  await check(
    `${LOGS}?project=${tooMany}`,
    `400 INVALID_ARGUMENT project: ${tooLong}; project_tier: is required`,
  );
  await check(
    `${STATS}?project=${tooMany}&function_id=${tooMany}&interval=1hr`,
    `400 INVALID_ARGUMENT project: ${tooLong}; function_id: ${tooLong}`,
  );
  expect((await service.ask(`${LOGS}?project=${most}&project_tier=`)).status).toBe(200);
  expect((await service.ask(`${STATS}?project=${most}&function_id=${most}&interval=`)).status).toBe(200);
});

test('ISO timestamps: UTC without offset, cut to microseconds; start is exclusive, end inclusive; empty is no bound', async () => {
  const service = new TestService();
  const check = async (start: string, end: string, asked: string) => {
    await service.ask(`${LOGS_OK}&iso_timestamp_start=${start}&iso_timestamp_end=${end}`);
    expect(service.queries.takeAsked()).toEqual([`logs p 7d (${asked})`]);
  };
  await check('', '', 'null..null');
  await check('2026-11-21T07:00:00Z', '2026-11-21T07:00:00', `${NOW_US + 1}..${NOW_US}`);
  await check(
    '2026-11-21T09:00:00%2B02:00',
    '2026-11-21T07:00:00.123456789Z',
    `${NOW_US + 1}..${NOW_US + 123456}`,
  );
});

test('start ≥ end gives no rows, not an error', async () => {
  const service = new TestService();
  service.queries.logRows = [];
  const bounds = '&iso_timestamp_start=2026-11-21T08:00:00Z&iso_timestamp_end=2026-11-21T07:00:00Z';
  expect(textOf(await service.ask(LOGS_OK + bounds))).toBe('200 {"result":[]}');
});

test('query string: form encoding, + is a space', async () => {
  const service = new TestService();
  await service.ask(`${USAGE}?project=a+b%2Bc%20%C3%A9&interval=daily`);
  expect(service.queries.takeAsked()).toEqual(['usage a b+c é daily']);
  const offset = 'iso_timestamp_start=2026-11-21T09:00:00+02:00';
  expect(problemsOf(await service.ask(`${LOGS_OK}&${offset}`))).toBe(
    '400 INVALID_ARGUMENT iso_timestamp_start: must be an ISO 8601 timestamp such as 2026-11-21T07:00:00Z, ' +
      'not "2026-11-21T09:00:00 02:00"',
  );
});

test('time: now is read once a request, and the query is asked as of it', async () => {
  let reads = 0;
  const clock = {
    nowUs: () => {
      reads += 1;
      return NOW_US + reads * 1e6;
    },
    monotonicUs: () => 0,
  };
  const service = new TestService({ clock });
  for (const target of [LOGS_OK, STATS_OK, USAGE_OK]) await service.ask(target);
  expect(service.queries.takeAsked()).toEqual([
    'logs p 7d (null..null) at +1s',
    'stats p null 1hr at +2s',
    'usage p daily at +3s',
  ]);
});

test('result cache: 900 s for the two bucketed endpoints with Age and max-age, never for logs.all', async () => {
  const service = new TestService();
  service.queries.fill();
  const check = async (target: string, asked: number, age: string | null, cacheControl: string) => {
    const answer = await service.ask(target);
    expect(service.queries.takeAsked().length).toBe(asked);
    expect(headerOf(answer, 'Age')).toBe(age);
    expect(headerOf(answer, 'Cache-Control')).toBe(cacheControl);
  };
  for (const target of [STATS_OK, USAGE_OK]) {
    service.nowUs = NOW_US;
    await check(target, 1, '0', 'private, max-age=900');
    service.nowUs += 899_999_999;
    await check(target, 0, '899', 'private, max-age=900');
    service.nowUs += 1;
    await check(target, 1, '0', 'private, max-age=900');
  }
  await check(LOGS_OK, 1, null, 'no-store');
  await check(LOGS_OK, 1, null, 'no-store');
});

test('result cache: each distinct parameter set has its own answer, equal ones share it', async () => {
  const service = new TestService();
  service.queries.fill();
  const check = async (query: string, asked: number) => {
    await service.ask(`${STATS}?${query}`);
    expect(service.queries.takeAsked().length, query).toBe(asked);
  };
  await check('project=p&interval=1day', 1);
  await check('interval=unknown&project=p&function_id=&x=y', 0);
  await check('project=p&interval=1hr', 1);
  await check('project=pf&interval=1day', 1);
  await check('project=p&function_id=f&interval=1day', 1);
  await check('project=1+p&interval=1day', 1);
  await check('project=&interval=1day', 0);
});

test('result cache: Cache-Control: no-cache gets a fresh answer, which replaces the cached one', async () => {
  const service = new TestService();
  service.queries.statsRows = [STATS_ROW];
  await service.ask(STATS_OK);
  service.queries.statsRows = [STATS_ROW, STATS_ROW];
  service.nowUs += 10e6;
  const count = (body: string) => body.split('"count"').length - 1;
  expect(count(bodyOf(await service.ask(STATS_OK)))).toBe(1);
  const fresh = await service.ask(STATS_OK, { 'Cache-Control': 'max-age=0, No-Cache' });
  expect([count(bodyOf(fresh)), headerOf(fresh, 'Age')]).toEqual([2, '0']);
  service.nowUs += 5e6;
  const cached = await service.ask(STATS_OK);
  expect([count(bodyOf(cached)), headerOf(cached, 'Age')]).toEqual([2, '5']);
});

test('result cache: durations are configuration, and 0 means live', async () => {
  const live = new TestService({ cacheSeconds: 0 });
  live.queries.fill();
  for (let i = 0; i < 2; i++) {
    const answer = await live.ask(USAGE_OK);
    expect(live.queries.takeAsked().length).toBe(1);
    expect(headerOf(answer, 'Age')).toBe(null);
    expect(headerOf(answer, 'Cache-Control')).toBe('no-store');
  }
  const short = new TestService({ cacheSeconds: 2 });
  short.queries.fill();
  expect(headerOf(await short.ask(USAGE_OK), 'Cache-Control')).toBe('private, max-age=2');
  short.nowUs += 2e6;
  expect(headerOf(await short.ask(USAGE_OK), 'Age')).toBe('0');
});

test('an answer without rows is not kept, by nobody: the first entry shows when it comes', async () => {
  const service = new TestService();
  for (const target of [STATS_OK, USAGE_OK]) {
    const empty = await service.ask(target);
    expect([textOf(empty), headerOf(empty, 'Cache-Control'), headerOf(empty, 'Age')]).toEqual([
      '200 {"result":[]}',
      'no-store',
      null,
    ]);
  }
  expect(service.queryApi.cache!.figures().entries).toBe(0);
  service.queries.fill();
  for (const target of [STATS_OK, USAGE_OK])
    expect(headerOf(await service.ask(target), 'Cache-Control')).toBe('private, max-age=900');
  // One that was kept goes when it has none any more.
  service.queries.statsRows = [];
  service.nowUs += 300e6;
  service.queryApi.cache!.warmDue(service.nowUs);
  expect(service.queryApi.cache!.figures().entries).toBe(1);
});

test('never a 200 for something that went wrong: unavailable is 503 with Retry-After, a bug is thrown on', async () => {
  const service = new TestService();
  for (const target of [LOGS_OK, STATS_OK, USAGE_OK]) {
    service.queries.failure = new Unavailable('the store is being restored', 3);
    const answer = await service.ask(target);
    expect(problemsOf(answer)).toBe('503 UNAVAILABLE the store is being restored');
    expect(headerOf(answer, 'Retry-After')).toBe('3');
    service.queries.failure = new Error('bug');
    await expect(service.ask(target)).rejects.toThrow('bug');
  }
});

test('unknown paths: 404 in the catalogue’s form; below /api/ only to those with a key', async () => {
  const service = new TestService();
  const check = async (target: string, status: number, key = KEY) =>
    expect((await service.ask(target, { 'X-API-KEY': key })).status, target).toBe(status);
  for (const path of ['/nope', '/livez/', '//', '/é', '/api']) await check(path, 404);
  await check('/nope', 404, '');
  for (const path of ['/api/', '/api/nope', '/api/endpoints/query', '/api/logs/x']) {
    await check(path, 404);
    await check(path, 401, '');
  }
});

test('an over-long target: 414', async () => {
  const service = new TestService();
  expect((await service.ask(`${LOGS_OK}&x=${'a'.repeat(16_000)}`)).status).toBe(200);
  expect((await service.ask(`${LOGS_OK}&x=${'a'.repeat(17_000)}`)).status).toBe(414);
});

test('health says what readyz says as Logflare does, without a key', async () => {
  const service = new TestService();
  const none = { 'X-API-KEY': '' };
  const node = '"proc_count":1,"this_node":"logring","nodes":["logring"],"nodes_count":1';
  expect(textOf(await service.ask('/health', none))).toBe(`200 {"status":"ok",${node}}`);
  expect((await service.ask('/health', none, 'HEAD')).status).toBe(200);
  service.operator.ready = false;
  expect(textOf(await service.ask('/health', none))).toBe(
    `503 {"status":"coming_up",${node},"reasons":["partition edge-0 lags by 5000 records"]}`,
  );
});

test('livez, readyz and metrics need no key; not ready is 503 with its reasons', async () => {
  const service = new TestService();
  const none = { 'X-API-KEY': '' };
  expect(textOf(await service.ask('/livez', none))).toBe('200 {"ok":true,"reasons":[]}');
  expect(textOf(await service.ask('/readyz', none))).toBe('200 {"ok":true,"reasons":[]}');
  expect(textOf(await service.ask('/metrics', none))).toBe('200 logring_up 1\n');
  service.operator.ready = false;
  expect(textOf(await service.ask('/readyz', none))).toBe(
    '503 {"ok":false,"reasons":["partition edge-0 lags by 5000 records"]}',
  );
});

test('pages of the composition are served by GET and HEAD, with a key where they need one', async () => {
  const page = (needsKey: boolean) => ({
    needsKey,
    answer: () => ({ status: 200, headers: [], body: 'page', close: false }),
  });
  const pages = new Map([
    ['/', page(false)],
    ['/api/status', page(true)],
  ]);
  const service = new TestService({ pages });
  expect((await service.ask('/', { 'X-API-KEY': '' })).status).toBe(200);
  expect((await service.ask('/', {}, 'POST')).status).toBe(405);
  expect((await service.ask('/api/status', { 'X-API-KEY': '' })).status).toBe(401);
  expect((await service.ask('/api/status')).status).toBe(200);
});

test('routes in the metrics are a closed set', () => {
  const { api } = new TestService({
    pages: new Map([
      [
        '/',
        {
          needsKey: false,
          answer: () => {
            throw new Error();
          },
        },
      ],
    ]),
  });
  const check = (path: string, route: string) => expect(api.routeOf(path)).toBe(route);
  check(LOGS, 'logs.all');
  check('/api/endpoints/query/1f3ac5c8-0d5e-4b0e-8a55-6f2b9d1c7a03', 'usage.api-counts');
  check('/api/endpoints/query/x', 'unknown-endpoint');
  check('/api/logs', 'ingest');
  check('/metrics', 'metrics');
  check('/health', 'health');
  check('/', 'page');
  check('/x', 'unknown-path');
});

test('a cached answer goes only to keys that may ask for its project', async () => {
  const service = new TestService();
  await service.ask(STATS_OK);
  const answer = await service.ask(STATS_OK, { 'X-API-KEY': LIMITED_KEY });
  expect(answer.status).toBe(403);
});
