/** Packs: what comes out on the other thread is what went in. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TIER_CLASSES } from '../../engine/tier.js';
import { type AppliedRecord, packEdge, packRelay, unpackRecords } from '../../ingest/record-pack.js';

const RUNS = { seed: 1, numRuns: 200 };

const name = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 });
const timestampUs = fc.integer({ min: 0, max: 2 ** 52 });
const someBytes = fc.uint8Array({ maxLength: 40 });
const edgeEntry = fc.record({
  timestampUs,
  project: name,
  tierClass: fc.constantFrom(...TIER_CLASSES),
  idHash: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  row: someBytes,
  url: fc.option(someBytes),
  areas: fc.integer({ min: 0, max: 15 }),
});
const relayEntry = fc.record({
  timestampUs,
  project: name,
  functionId: fc.option(name),
  statusCode: fc.maxSafeInteger(),
  executionTimeMs: fc.oneof(fc.double({ noDefaultInfinity: true }), fc.constant(Number.NaN)),
});

function recordsOf<Entry>(entry: fc.Arbitrary<Entry>): fc.Arbitrary<AppliedRecord<Entry>[]> {
  const record = fc.record({
    entries: fc.array(entry, { maxLength: 6 }),
    rejectedReasons: fc.array(fc.constantFrom('not-json', 'too-old'), { maxLength: 2 }),
    nextOffset: fc.integer({ min: 1, max: 2 ** 52 }),
  });
  return fc.array(record, { maxLength: 8 });
}

/** Rows and URLs as plain arrays: two views of equal bytes are equal. */
function comparable(records: Iterable<AppliedRecord<object>>): unknown {
  return [...records].map((record) => ({
    ...record,
    entries: record.entries.map((entry) =>
      Object.fromEntries(
        Object.entries(entry).map(([key, value]) => [key, value instanceof Uint8Array ? [...value] : value]),
      ),
    ),
  }));
}

test('edge records', () => {
  fc.assert(
    fc.property(recordsOf(edgeEntry), (records) => {
      const pack = packEdge(records);
      const arrived = structuredClone(pack, { transfer: [pack.buffer] });
      expect(comparable(unpackRecords(arrived))).toEqual(comparable(records));
    }),
    RUNS,
  );
});

test('relay records', () => {
  fc.assert(
    fc.property(recordsOf(relayEntry), (records) => {
      const pack = packRelay(records);
      const arrived = structuredClone(pack, { transfer: [pack.buffer] });
      expect(comparable(unpackRecords(arrived))).toEqual(comparable(records));
    }),
    RUNS,
  );
});
