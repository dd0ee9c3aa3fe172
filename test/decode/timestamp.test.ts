/**
 * Timestamps of entries: units by magnitude, exactness beyond doubles, and what is too old or too far ahead.
 */

import { expect, test } from 'vitest';
import { numericTimestampUs } from '../../ingest/decode/timestamp.js';
import { edgeEntry, NOW_US, outcome, RECORD_MS, rowText } from './fixtures.js';

const DAY_US = 86_400_000_000;
const HOUR_US = 3_600_000_000;

/** `json` is the timestamp member's JSON, or nothing for an entry without one; `expected` µs or a reason. */
function check(json: string, expected: number | string): void {
  const member = json === '' ? '' : `"timestamp":${json},`;
  const value = `{${member}"project":"p"}`;
  if (typeof expected === 'string') {
    expect(outcome(value), json).toBe(expected);
    return;
  }
  expect(edgeEntry(value).timestampUs, json).toBe(expected);
  expect(rowText(value)).toContain(`"timestamp":${expected},`);
}

test('the unit follows from the magnitude', () => {
  check('1795262399', 1_795_262_399_000_000);
  check('1795262399123', 1_795_262_399_123_000);
  check('1795262399123456', 1_795_262_399_123_456);
  check('1795262399123456789', 1_795_262_399_123_456);
  check('"1795262399"', 1_795_262_399_000_000);
  check('"1795262399123"', 1_795_262_399_123_000);
  check('"1795262399123456"', 1_795_262_399_123_456);
  check('"1795262399123456789"', 1_795_262_399_123_456);
});

test('nanoseconds are cut by their digits: the double next to them is off by up to 128 ns', () => {
  // As doubles these two are …457000 and …456000-ish multiples of 256: going through one would round up.
  check('1795262399123456999', 1_795_262_399_123_456);
  check('1795262399123457000', 1_795_262_399_123_457);
  check('"1795262399123456999"', 1_795_262_399_123_456);
  // Of a member given twice the last one counts, in whatever spelling.
  check('1,"timestamp":1795262399123456999', 1_795_262_399_123_456);
  check('1,"t\\u0069mestamp":1795262399123456999', 1_795_262_399_123_456);
});

test('fractions and exponents, exact and cut', () => {
  check('1795262399.5', 1_795_262_399_500_000);
  check('1795262399.123456', 1_795_262_399_123_456);
  check('1795262399.1234569', 1_795_262_399_123_456);
  check('1795262399.123456999999', 1_795_262_399_123_456);
  check('1795262399123.9999', 1_795_262_399_123_999);
  check('1795262399123456.9', 1_795_262_399_123_456);
  check('1.795262399123456E9', 1_795_262_399_123_456);
  check('1.795262399123e12', 1_795_262_399_123_000);
  check('"1.795262399123e+12"', 1_795_262_399_123_000);
  check('17952623990000e-4', 1_795_262_399_000_000);
  check('1795262399.0', 1_795_262_399_000_000);
});

test('ISO 8601', () => {
  check('"2026-11-21T11:00:00Z"', NOW_US - HOUR_US);
  check('"2026-11-21T12:00:00+01:00"', NOW_US - HOUR_US);
  check('"2026-11-21T11:00:00.123456789"', NOW_US - HOUR_US + 123_456);
  check('"2026-11-21"', NOW_US - 12 * HOUR_US);
});

test("absent or null: the record's own", () => {
  check('', RECORD_MS * 1000);
  check('null', RECORD_MS * 1000);
  expect(outcome('{"project":"p"}', { timestampMs: -1 })).toBe('invalid-timestamp');
  expect(outcome('{"project":"p"}', { timestampMs: 0 })).toBe('too-old');
});

test('unusable', () => {
  for (const json of [
    'true',
    '[]',
    '{}',
    '""',
    '" "',
    '"soon"',
    '"0x10"',
    '"1_000"',
    '"NaN"',
    '"1e"',
    '"+5"',
    '" 5"',
  ]) {
    check(json, 'invalid-timestamp');
  }
  check('"2026-02-30T00:00:00Z"', 'invalid-timestamp');
});

test('the longest retention and an hour ahead are the bounds, both inclusive', () => {
  check(String(NOW_US - 90 * DAY_US), NOW_US - 90 * DAY_US);
  check(String(NOW_US - 90 * DAY_US - 1), 'too-old');
  check(String(NOW_US + HOUR_US), NOW_US + HOUR_US);
  check(String(NOW_US + HOUR_US + 1), 'too-far-ahead');
  check('0', 'too-old');
  check('-1', 'too-old');
  check('-0.0', 'too-old');
  check('-1795262399123456789', 'too-old');
  check('-1e400', 'too-old');
  check('99999999999', 'too-far-ahead');
  check('99999999999999999999', 'too-far-ahead');
  check('1e400', 'too-far-ahead');
  check(`"${'9'.repeat(500)}"`, 'too-far-ahead');
});

test('numbers by their digits alone, against BigInt', () => {
  const scale = (digits: number) => (digits <= 11 ? 1_000_000n : digits <= 14 ? 1_000n : 1n);
  for (let digits = 1; digits <= 20; digits++) {
    for (const text of [
      '1'.padEnd(digits, '0'),
      '9'.repeat(digits),
      '1234567890123456789012'.slice(0, digits),
    ]) {
      const integer = BigInt(text);
      const expected = digits <= 17 ? integer * scale(digits) : integer / 1_000n;
      // Beyond 2^53 µs lies the year 2255: nothing there is accepted, and no digit matters.
      if (expected < 2n ** 53n) expect(numericTimestampUs(text), text).toBe(Number(expected));
      else expect(numericTimestampUs(text), text).toBeGreaterThan(2 ** 53 - 1);
    }
  }
  expect(numericTimestampUs('0')).toBe(0);
  expect(numericTimestampUs('000000000000000000000001795262399')).toBe(1_795_262_399_000_000);
  expect(numericTimestampUs('0.000001')).toBe(1);
  expect(numericTimestampUs('0.0000019')).toBe(1);
  expect(numericTimestampUs('1e-30')).toBe(0);
  expect(numericTimestampUs('0e999999999999')).toBe(0);
});
