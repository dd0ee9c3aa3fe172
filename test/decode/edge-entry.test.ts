/** Entries of the edge request log: every field in every form that producers send. */

import { expect, test } from 'vitest';
import { ERROR, OK, WARNING } from '../../engine/event-counts/outcome.js';
import { idHash } from '../../ingest/decode/entry-id.js';
import { pathOfUrl } from '../../ingest/decode/url-path.js';
import {
  CONTEXT,
  decodeEdgeRecord,
  EDGE_KEY,
  edgeEntry,
  edgeLetters,
  NOW_US,
  outcome,
  RECORD_MS,
  record,
  rowText,
} from './fixtures.js';

function textOf(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : Buffer.from(bytes).toString();
}

test('a whole entry', () => {
  const metadata =
    '{"request":{"method":"GET","path":"/rest/v1/todos","url":"https://p.example.co/rest/v1/todos?a=1"}}';
  const value = `{"id":"a1","timestamp":${NOW_US},"event_message":"GET | 200","project":"p","metadata":${metadata}}`;
  const entry = edgeEntry(value);
  expect({ ...entry, row: textOf(entry.row), url: textOf(entry.url) }).toEqual({
    timestampUs: NOW_US,
    project: 'p',
    tierClass: '90d',
    idHash: idHash('a1'),
    row: `{"id":"a1","timestamp":${NOW_US},"event_message":"GET | 200","metadata":${metadata}}`,
    url: 'https://p.example.co/rest/v1/todos?a=1',
    areas: 1,
    outcome: 0,
  });
});

test('nothing but a project', () => {
  const entry = edgeEntry('{"project":"p"}');
  const id = 'cloudflare.logs.prod/3/41/0';
  expect({ ...entry, row: textOf(entry.row) }).toEqual({
    timestampUs: RECORD_MS * 1000,
    project: 'p',
    tierClass: '90d',
    idHash: idHash(id),
    row: `{"id":"${id}","timestamp":${RECORD_MS * 1000},"event_message":null,"metadata":null}`,
    url: null,
    areas: 0,
    outcome: 0,
  });
});

test('id', () => {
  const check = (json: string, expected: string) => {
    const value = `{"id":${json},"project":"p"}`;
    expect(rowText(value)).toContain(`{"id":${JSON.stringify(expected)},"timestamp"`);
    expect(edgeEntry(value).idHash).toBe(idHash(expected));
  };
  check('"a"', 'a');
  check('""', '');
  check('"é\\u0041\\n\\""', 'éA\n"');
  // A number's own text, not what a double makes of it.
  check('7', '7');
  check('12345678901234567890', '12345678901234567890');
  check('1.0', '1.0');
  check('1e400', '1e400');
  // Anything else is as good as none.
  check('null', 'cloudflare.logs.prod/3/41/0');
  check('true', 'cloudflare.logs.prod/3/41/0');
  check('{"a":1}', 'cloudflare.logs.prod/3/41/0');
});

test('a derived id names the place of the entry, so it is the same at every replay', () => {
  const value = '[{"project":"p"},{"project":"p"}]';
  expect(edgeLetters(value)).toEqual([]);
  expect(rowText('{"project":"p"}', { offset: 7 })).toContain(`"${EDGE_KEY.topic}/3/7/0"`);
});

test('idHash is FNV-1a over UTF-8', () => {
  expect(idHash('')).toBe(0x811c9dc5);
  expect(idHash('a')).toBe(0xe40c292c);
  expect(idHash('foobar')).toBe(0xbf9cf968);
  // é is C3 A9: two steps of the same function.
  const step = (hash: number, byte: number) => Math.imul(hash ^ byte, 0x01000193);
  expect(idHash('é')).toBe(step(step(0x811c9dc5, 0xc3), 0xa9) >>> 0);
  expect(idHash('\ud800')).toBe(idHash('\ufffd'));
});

test('event_message, else message, log or msg, else null', () => {
  const check = (members: string, expected: string) =>
    expect(rowText(`{"project":"p"${members}}`)).toContain(`"event_message":${expected},"metadata"`);
  check(',"event_message":"a","message":"b"', '"a"');
  check(',"message":"b"', '"b"');
  check(',"event_message":null,"message":"b"', '"b"');
  check(',"event_message":5,"message":"b"', '"b"');
  check(',"event_message":"","message":"b"', '""');
  check(',"event_message":{}', 'null');
  check(',"msg":"d","log":"c"', '"c"');
  check(',"msg":"d","log":7,"message":null', '"d"');
  check('', 'null');
  check(',"event_message":"<\\u0001\\ud83d\\ude00\\ud800é>"', '"<\\u0001😀\\ud800é>"');
});

test('project', () => {
  for (const members of ['', '"project":""', '"project":null', '"project":7', '"project":["p"]']) {
    expect(outcome(`{${members}}`), members).toBe('missing-project');
  }
  // The relay log's place for it is not the edge log's.
  expect(outcome('{"metadata":{"project_ref":"p"}}')).toBe('missing-project');
  expect(edgeEntry('{"project":"é\\ud800"}').project).toBe('é\ufffd');
});

test('tier: message, header, configured project, default; what says nothing is passed over', () => {
  const check = (members: string, header: string | null, expected: string) =>
    expect(edgeEntry(`{"project":"p"${members}}`, { projectTier: header }).tierClass).toBe(expected);
  check('', null, '90d');
  check('', 'PRO', '7d');
  check(',"project_tier":"FREE"', 'PRO', '1d');
  check(',"project_tier":"PAYG"', 'PRO', '90d');
  check(',"project_tier":"free"', 'PRO', '1d');
  check(',"project_tier":""', 'PRO', '7d');
  check(',"project_tier":null', 'PRO', '7d');
  check(',"project_tier":3', 'PRO', '7d');
  check('', '', '90d');
  expect(edgeEntry('{"project":"mapped"}').tierClass).toBe('7d');
  expect(edgeEntry('{"project":"mapped"}', { projectTier: 'FREE' }).tierClass).toBe('1d');
  expect(edgeEntry('{"project":"__proto__"}').tierClass).toBe('90d');
});

test('url and path, through arrays at every level', () => {
  const check = (metadata: string, url: string | null, areas: number) => {
    const entry = edgeEntry(`{"project":"p","metadata":${metadata}}`);
    expect([textOf(entry.url), entry.areas], metadata).toEqual([url, areas]);
  };
  const request = '{"url":"https://h/auth/v1","path":"/auth/v1"}';
  check(`{"request":${request}}`, 'https://h/auth/v1', 4);
  check(`[{"request":${request}}]`, 'https://h/auth/v1', 4);
  check(`[{"request":[${request}]}]`, 'https://h/auth/v1', 4);
  check(`{"request":[${request},{"url":"https://other"}]}`, 'https://h/auth/v1', 4);
  // The path counts, where there is one, whatever the URL says.
  check('{"request":{"url":"https://h/rest","path":"/storage/x"}}', 'https://h/rest', 2);
  check('{"request":{"url":"https://h/rest","path":""}}', 'https://h/rest', 0);
  check('{"request":{"url":"https://h/rest?x=/auth"}}', 'https://h/rest?x=/auth', 1);
  check('{"request":{"url":"https://h/rest","path":null}}', 'https://h/rest', 1);
  check(
    '{"request":{"url":"https://h/rest/auth/storage/realtime"}}',
    'https://h/rest/auth/storage/realtime',
    15,
  );
  check('{"request":{"path":"/rest"}}', null, 1);
  check('{"request":{"url":7,"path":"/rest"}}', null, 1);
  check('{"request":{"url":""}}', '', 0);
  check('{"request":{"url":"https://h/\\ud800x"}}', 'https://h/\ufffdx', 0);
  for (const metadata of [
    '{}',
    '[]',
    '[[]]',
    '[null]',
    'null',
    '"x"',
    '7',
    'true',
    '{"request":null}',
    '{"request":[]}',
  ]) {
    check(metadata, null, 0);
  }
});

test('an entry with odd metadata is a row all the same, the value untouched', () => {
  for (const metadata of ['null', '"x"', '7', '-0.0', 'true', '[]', '[ 1 , 2 ]', '{}', '{ }']) {
    expect(rowText(`{"project":"p","metadata": ${metadata} }`)).toMatch(/,"metadata":/);
    expect(rowText(`{"project":"p","metadata": ${metadata} }`).endsWith(`,"metadata":${metadata}}`)).toBe(
      true,
    );
  }
});

test('members called __proto__ and constructor are only members', () => {
  const metadata =
    '{"__proto__":{"request":{"url":"https://evil/rest"}},"constructor":{"prototype":{"x":1}}}';
  const entry = edgeEntry(`{"project":"p","__proto__":{"id":"evil","project":"q"},"metadata":${metadata}}`);
  expect([entry.project, entry.url]).toEqual(['p', null]);
  expect(Buffer.from(entry.row).toString()).toContain(`"metadata":${metadata}}`);
  expect(Object.hasOwn(Object.prototype, 'x')).toBe(false);
});

test('the path of URLs of every shape', () => {
  const check = (url: string, path: string) => expect(pathOfUrl(url), url).toBe(path);
  check('https://h/rest/v1?x=/auth#/storage', '/rest/v1');
  check('https://h:8443/rest', '/rest');
  check('https://user:word@h/rest', '/rest');
  check('HTTP+X.1-2://h/rest', '/rest');
  check('https://[::1]:80/rest', '/rest');
  check('https://h', '');
  check('https://h?x=/rest', '');
  check('https://h#/rest', '');
  check('//h/rest', '/rest');
  check('/rest/v1', '/rest/v1');
  check('/go?to=https://h/auth', '/go');
  check('/https://h/auth', '/https://h/auth');
  check('h.example.co/rest', 'h.example.co/rest');
  check('rest', 'rest');
  check('?/rest', '');
  check('', '');
  check('://h/rest', '://h/rest');
  check('https:/rest', 'https:/rest');
  check('http://h\n/rest', '/rest');
  check('https://h/%E0%A4%A/rest', '/%E0%A4%A/rest');
});

test('the outcome goes by the response status: a safe integer, or a string that is one, wherever it nests', () => {
  const check = (response: string, expected: number) => {
    const { outcome } = edgeEntry(`{"project":"p","metadata":{"response":${response}}}`);
    expect(outcome, response).toBe(expected);
  };
  for (const status of [
    '200',
    '399',
    '0',
    '-500',
    '"301"',
    '1e2',
    'null',
    'true',
    '{}',
    '[500]',
    '"5e2"',
    '"500 "',
  ])
    check(`{"status_code":${status}}`, OK);
  for (const status of ['"0500"', '500.5', '"500.0"', '9007199254740993', '1e400'])
    check(`{"status_code":${status}}`, OK);
  for (const status of ['400', '499', '"404"', '4.04e2']) check(`{"status_code":${status}}`, WARNING);
  for (const status of ['500', '599', '"503"', '600', '9007199254740991'])
    check(`{"status_code":${status}}`, ERROR);
  check('[{"status_code":404},{"status_code":200}]', WARNING);
  check('[{"status_code":"503"}]', ERROR);
  check('[]', OK);
  check('"500"', OK);
  expect(edgeEntry('{"project":"p","metadata":[{"response":[{"status_code":500}]}]}').outcome).toBe(ERROR);
  expect(edgeEntry('{"project":"p"}').outcome).toBe(OK);
});

test('the time is the first present of timestamp, date, @timestamp and time', () => {
  const check = (members: string, expectedUs: number) =>
    expect(edgeEntry(`{"project":"p",${members}}`).timestampUs, members).toBe(expectedUs);
  const us = NOW_US - 1_000_000;
  check(`"time":"x","@timestamp":"y","date":"z","timestamp":${us}`, us);
  check(`"time":"x","@timestamp":"y","timestamp":null,"date":${us / 1e6}.25`, us + 250_000);
  check(`"time":"x","@timestamp":"${new Date(us / 1_000).toISOString()}"`, us);
  check(`"time":${us}`, us);
  check('"time":null,"at":7', RECORD_MS * 1_000);
  expect(outcome(`{"project":"p","date":"yesterday","time":${us}}`)).toBe('invalid-timestamp');
});

test('a URL of project and path, where the setting asks for one and the entry has none', () => {
  const urlOf = (request: string, urlFromPath = true) => {
    const value = `{"project":"p\\u00e9","metadata":{"request":${request}}}`;
    const { entries } = decodeEdgeRecord(EDGE_KEY, record(value), { ...CONTEXT, urlFromPath });
    return textOf(entries[0].url);
  };
  expect(urlOf('{"path":"/rest/v1/t?a=\\ud800\\u00e9"}')).toBe('https://pé/rest/v1/t?a=\ufffdé');
  expect(urlOf('{"path":"/rest/v1/t"}', false)).toBe(null);
  expect(urlOf('{"path":"/rest","url":"https://u"}')).toBe('https://u');
  expect(urlOf('{"path":".evil.example/rest"}')).toBe('https://pé/.evil.example/rest');
  expect(urlOf('{"path":7}')).toBe(null);
});
