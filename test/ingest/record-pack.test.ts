/** Packs: what comes out on the other thread is what went in. */

import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { EdgeEntry, RelayEntry } from '../../engine/entry.js';
import { TIER_CLASSES } from '../../engine/tier.js';
import { BufferPool } from '../../ingest/buffer-pool.js';
import { SMALLEST_POOLED_BYTES } from '../../ingest/limits.js';
import { PackBuilder, type PackedRecord, unpackRecords } from '../../ingest/record-pack.js';

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
  outcome: fc.integer({ min: 0, max: 2 }),
});
const relayEntry = fc.record({
  timestampUs,
  project: name,
  functionId: fc.option(name),
  statusCode: fc.maxSafeInteger(),
  executionTimeMs: fc.oneof(fc.double({ noDefaultInfinity: true }), fc.constant(Number.NaN)),
});

function recordsOf<Entry>(entry: fc.Arbitrary<Entry>): fc.Arbitrary<PackedRecord<Entry>[]> {
  const record = fc.record({
    entries: fc.array(entry, { maxLength: 6 }),
    rejectedReasons: fc.array(fc.constantFrom('not-json', 'too-old'), { maxLength: 2 }),
    nextOffset: fc.integer({ min: 1, max: 2 ** 52 }),
    mark: fc.option(fc.record({ offset: fc.nat(), timestampMs: fc.nat(), checksum: fc.nat() })),
  });
  return fc.array(record, { maxLength: 8 });
}

/** Rows and URLs as plain arrays: two views of equal bytes are equal. */
function comparable(records: Iterable<PackedRecord<object>>): unknown {
  return [...records].map((record) => ({
    ...record,
    entries: record.entries.map((entry) =>
      Object.fromEntries(
        Object.entries(entry).map(([key, value]) => [key, value instanceof Uint8Array ? [...value] : value]),
      ),
    ),
  }));
}

/** Packs made one after another, each sent to where it is read, and its buffer back. */
function roundTrips<Entry extends EdgeEntry | RelayEntry>(
  kind: 'edge' | 'relay',
  entry: fc.Arbitrary<Entry>,
): void {
  const packs = fc.array(recordsOf(entry), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(packs, (lists) => {
      const buffers = new BufferPool();
      const builder = new PackBuilder(kind, buffers);
      for (const records of lists) {
        for (const record of records) {
          const lent = structuredClone(record);
          builder.add(lent);
          if (record.mark !== null) builder.mark(record.mark);
          for (const { row, url } of lent.entries as readonly Partial<EdgeEntry>[]) {
            row?.fill(0xee);
            url?.fill(0xee);
          }
        }
        const pack = builder.take();
        const arrived = structuredClone(pack, { transfer: [pack.buffer] });
        expect(comparable(unpackRecords(arrived))).toEqual(comparable(records));
        buffers.give(arrived.buffer);
      }
    }),
    RUNS,
  );
}

test('edge records', () => roundTrips('edge', edgeEntry));

test('relay records', () => roundTrips('relay', relayEntry));

test('more bytes than the buffer of the pack before them, and fewer again', () => {
  const builder = new PackBuilder('edge', new BufferPool());
  const row = new Uint8Array(100_000).fill(7);
  const [entry] = fc.sample(edgeEntry, { seed: 1, numRuns: 1 });
  const record = { entries: [{ ...entry, row }], rejectedReasons: [], nextOffset: 1, mark: null };
  builder.add(record);
  builder.add({ ...record, nextOffset: 2 });
  const unpacked = [...unpackRecords(builder.take())];
  expect(comparable(unpacked)).toEqual(comparable([record, { ...record, nextOffset: 2 }]));
  // A large record must not make all that come after it large.
  const small = { ...record, entries: [entry] };
  const sizes = [small, small].map((one) => {
    builder.add(one);
    return builder.take().buffer.byteLength;
  });
  expect(sizes[1]).toBe(SMALLEST_POOLED_BYTES);
});
