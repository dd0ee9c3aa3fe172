/** Entries of the function relay log: every field in every form that producers send. */

import { expect, test } from 'vitest';
import { CONTEXT, decodeRelayRecord, NOW_US, RECORD_MS, RELAY_KEY, record, relayEntry } from './fixtures.js';

test('a whole entry', () => {
  const metadata =
    '{"project_ref":"p","function_id":"f","execution_time_ms":9.5,"response":{"status_code":404,"headers":{}}}';
  expect(relayEntry(`{"timestamp":${NOW_US},"project":"ignored","metadata":${metadata}}`)).toEqual({
    timestampUs: NOW_US,
    project: 'p',
    functionId: 'f',
    statusCode: 404,
    executionTimeMs: 9.5,
  });
});

test('nothing but a project', () => {
  expect(relayEntry('{"metadata":[{"project_ref":"p"}]}')).toEqual({
    timestampUs: RECORD_MS * 1000,
    project: 'p',
    functionId: null,
    statusCode: 0,
    executionTimeMs: Number.NaN,
  });
});

/** The members are the metadata's, besides the project. */
function check(members: string, expected: Partial<ReturnType<typeof relayEntry>>): void {
  expect(relayEntry(`{"metadata":{"project_ref":"p",${members}}}`), members).toMatchObject(expected);
}

test('function_id', () => {
  check('"function_id":"f"', { functionId: 'f' });
  check('"function_id":""', { functionId: null });
  check('"function_id":null', { functionId: null });
  check('"function_id":7', { functionId: null });
  check('"function_id":"f\\udc00"', { functionId: 'f\ufffd' });
});

test('execution_time_ms', () => {
  check('"execution_time_ms":0', { executionTimeMs: 0 });
  check('"execution_time_ms":-1.25e2', { executionTimeMs: -125 });
  for (const json of ['null', '"9"', '[9]', 'true', '{}', '1e400', '-1e400']) {
    check(`"execution_time_ms":${json}`, { executionTimeMs: Number.NaN });
  }
});

test('status_code', () => {
  check('"response":{"status_code":200}', { statusCode: 200 });
  check('"response":[{"status_code":500},{"status_code":200}]', { statusCode: 500 });
  check('"response":{"status_code":4e2}', { statusCode: 400 });
  check('"response":{"status_code":-1}', { statusCode: -1 });
  for (const json of ['null', '200.5', '1e400', '1e300', '[200]', 'true']) {
    check(`"response":{"status_code":${json}}`, { statusCode: 0 });
  }
  for (const json of ['null', '[]', '7', '"x"', '[[]]']) check(`"response":${json}`, { statusCode: 0 });
});

test('a status may be the decimal string of a safe integer, and nothing else that Number would take', () => {
  check('"response":{"status_code":"200"}', { statusCode: 200 });
  check('"response":{"status_code":"\\u0034\\u0030\\u0034"}', { statusCode: 404 });
  check('"response":{"status_code":"-1"}', { statusCode: -1 });
  check('"response":{"status_code":"9007199254740991"}', { statusCode: Number.MAX_SAFE_INTEGER });
  for (const text of [
    '',
    ' ',
    ' 200',
    '200 ',
    '+200',
    '0200',
    '2e2',
    '0xc8',
    '200.0',
    '-0',
    'OK',
    '9007199254740992',
  ]) {
    check(`"response":{"status_code":${JSON.stringify(text)}}`, { statusCode: 0 });
  }
});

test('project: of the metadata, nowhere else', () => {
  for (const value of [
    '{"project":"p"}',
    '{"project":"p","metadata":null}',
    '{"project_ref":"p"}',
    '{"metadata":{}}',
    '{"metadata":[]}',
    '{"metadata":{"project_ref":""}}',
    '{"metadata":{"project_ref":7}}',
    '{"metadata":[{},{"project_ref":"p"}]}',
  ]) {
    const { entries, letters } = decodeRelayRecord(RELAY_KEY, record(value), CONTEXT);
    expect([entries.length, letters.map(({ reason }) => reason)], value).toEqual([0, ['missing-project']]);
  }
});

test('the time is the first present of timestamp, date, @timestamp and time', () => {
  const us = NOW_US - 1_000_000;
  const timeOf = (members: string) => relayEntry(`{"metadata":{"project_ref":"p"},${members}}`).timestampUs;
  expect(timeOf(`"time":"x","date":${us}`)).toBe(us);
  expect(timeOf(`"@timestamp":${us},"timestamp":null`)).toBe(us);
  expect(timeOf(`"time":${us}`)).toBe(us);
});
