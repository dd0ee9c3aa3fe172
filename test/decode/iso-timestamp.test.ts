/** ISO 8601: every accepted form against Date's own reading of it, and everything out of range refused. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseIsoTimestampUs } from '../../engine/iso-timestamp.js';

/**
 * `expected` in a form that Date reads exactly, with microseconds after a `+` where it can't; null for a
 * refusal.
 */
function check(text: string, expected: string | null): void {
  const [date, extraUs = '0'] = expected?.split(' +') ?? ['', '0'];
  const expectedUs = expected === null ? null : Date.parse(date) * 1000 + Number(extraUs);
  expect(parseIsoTimestampUs(text), text).toBe(expectedUs);
}

test('accepted forms', () => {
  check('2026-11-21T07:00:00Z', '2026-11-21T07:00:00Z');
  check('2026-11-21T07:00:00z', '2026-11-21T07:00:00Z');
  check('2026-11-21t07:00:00Z', '2026-11-21T07:00:00Z');
  check('2026-11-21 07:00:00Z', '2026-11-21T07:00:00Z');
  // Without an offset it is UTC.
  check('2026-11-21T07:00:00', '2026-11-21T07:00:00Z');
  check('2026-11-21', '2026-11-21T00:00:00Z');
  check('2026-11-21T07:00', '2026-11-21T07:00:00Z');
  check('2026-11-21T07:00Z', '2026-11-21T07:00:00Z');
  // Offsets.
  check('2026-11-21T07:00:00+01:00', '2026-11-21T06:00:00Z');
  check('2026-11-21T07:00:00+0100', '2026-11-21T06:00:00Z');
  check('2026-11-21T07:00:00+01', '2026-11-21T06:00:00Z');
  check('2026-11-21T07:00:00-05:30', '2026-11-21T12:30:00Z');
  check('2026-11-21T07:00:00-00:00', '2026-11-21T07:00:00Z');
  check('2026-11-21T23:30:00-23:59', '2026-11-22T23:29:00Z');
  check('2026-11-21T07:00+05:30', '2026-11-21T01:30:00Z');
  // Fractions: cut to microseconds, never rounded.
  check('2026-11-21T07:00:00.5Z', '2026-11-21T07:00:00.500Z');
  check('2026-11-21T07:00:00,25Z', '2026-11-21T07:00:00.250Z');
  check('2026-11-21T07:00:00.123456Z', '2026-11-21T07:00:00.123Z +456');
  check('2026-11-21T07:00:00.123456999Z', '2026-11-21T07:00:00.123Z +456');
  check('2026-11-21T07:00:00.000000999+01:00', '2026-11-21T06:00:00Z');
  // Midnight at the end of a day, and leap seconds wherever the offset puts them.
  check('2026-11-21T24:00:00Z', '2026-11-22T00:00:00Z');
  check('2026-12-31T24:00', '2027-01-01T00:00:00Z');
  check('2016-12-31T23:59:60Z', '2017-01-01T00:00:00Z');
  check('2016-12-31T23:59:60.5Z', '2017-01-01T00:00:00.500Z');
  check('2017-01-01T05:29:60+05:30', '2017-01-01T00:00:00Z');
  // The edges of the calendar.
  check('2024-02-29', '2024-02-29T00:00:00Z');
  check('2000-02-29', '2000-02-29T00:00:00Z');
  check('1969-12-31T23:59:59.999999Z', '1969-12-31T23:59:59.999Z +999');
  check('0000-03-01', '0000-03-01T00:00:00Z');
  check('9999-12-31T23:59:59Z', '9999-12-31T23:59:59Z');
});

test('refused', () => {
  for (const text of [
    '',
    'yesterday',
    '2026',
    '2026-11',
    '20261121',
    '20261121T070000Z',
    '2026-11-21T',
    '2026-11-21T07',
    '2026-11-21T07:0',
    '2026-11-21T07:00:',
    '2026-11-21T07:00:0',
    '2026-11-21T07:00:00.',
    '2026-11-21T07:00:00.1234567890Z',
    '2026-11-21T07:00:00ZZ',
    '2026-11-21T07:00:00 Z',
    '2026-11-21T07:00:00+1',
    '2026-11-21T07:00:00+010',
    '2026-11-21T07:00:00+01:0',
    '2026-11-21T07:00:00+01:000',
    '2026-11-21T07:00:00+01-00',
    '2026-11-21T07:00:00+24:00',
    '2026-11-21T07:00:00+01:60',
    // A plus sign that form decoding took for a space.
    '2026-11-21T07:00:00 01:00',
    '2026-11-21Z',
    '2026-11-21+01:00',
    '2026-11-21  07:00:00',
    ' 2026-11-21',
    '2026-11-21 ',
    '2026/11/21',
    '2026-00-21',
    '2026-13-21',
    '2026-11-00',
    '2026-11-31',
    '2026-02-29',
    '1900-02-29',
    '2026-04-31',
    '2026-01-32',
    '2026-11-21T25:00:00Z',
    '2026-11-21T24:00:01Z',
    '2026-11-21T24:01:00Z',
    '2026-11-21T24:00:00.000001Z',
    '2026-11-21T07:60:00Z',
    '2026-11-21T07:00:61Z',
    '2026-11-21T07:00:60Z',
    '2016-12-31T23:59:60+01:00',
    '+2026-11-21T07:00:00Z',
    '-2026-11-21T07:00:00Z',
    '２０２６-11-21',
  ]) {
    check(text, null);
  }
});

test('agrees with Date wherever Date is exact', () => {
  const instants = fc.date({
    min: new Date('0001-01-01T00:00:00Z'),
    max: new Date('9998-12-31T00:00:00Z'),
    noInvalidDate: true,
  });
  fc.assert(
    fc.property(instants, fc.integer({ min: -23 * 60 - 59, max: 23 * 60 + 59 }), (instant, offsetMinutes) => {
      const local = new Date(instant.getTime() + offsetMinutes * 60_000).toISOString().slice(0, -1);
      const magnitude = Math.abs(offsetMinutes);
      const pad = (value: number) => String(value).padStart(2, '0');
      const offset = `${offsetMinutes < 0 ? '-' : '+'}${pad(Math.floor(magnitude / 60))}:${pad(magnitude % 60)}`;
      fc.pre(local.length === 23);
      expect(parseIsoTimestampUs(local + offset)).toBe(instant.getTime() * 1000);
    }),
    { seed: 1, numRuns: 2_000 },
  );
});
