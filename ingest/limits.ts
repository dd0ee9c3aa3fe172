/** Every cap of ingest, each with its reason: what too big and too small would mean. */

import { assert } from '../engine/assert.js';
import { LONGEST_RETENTION_US } from '../engine/tier.js';

/**
 * A record's value. Bigger: one record holds the process up for long; smaller: producers' large batches are
 * lost to the dead letters. 16 MiB is well above what brokers accept unless told otherwise.
 */
export const MAX_RECORD_BYTES = 16 * 1024 * 1024;

/**
 * One element of a record. Bigger: parsing one takes milliseconds in which no query is answered, and a
 * crafted one (nested a million deep) memory by the gigabyte; smaller: real entries are refused. It is a KiB
 * less than the largest row of `logs.all`, 1 MiB: a row is its element's own fields and at most that much
 * around them.
 */
export const MAX_ELEMENT_BYTES = 1024 * 1024 - 1024;

/**
 * Brackets within brackets in an entry's metadata, its own counted. Bigger: whatever reads a row recursively,
 * here or at a client, runs out of stack; smaller: what producers really nest is refused. Source: the
 * contract of entries.
 */
export const MAX_METADATA_DEPTH = 100;

/**
 * How deep a walk's stack may be and stay allocated. Bigger: one crafted element's stack is never freed;
 * smaller: it is allocated again for ordinary elements.
 */
export const KEPT_WALK_DEPTH = 2 * MAX_METADATA_DEPTH;

/**
 * Elements of one record. Bigger: a crafted array makes a dead letter of every third byte; smaller:
 * producers' large batches of small entries are refused.
 */
export const MAX_RECORD_ELEMENTS = 65_536;

/**
 * Brackets within brackets in an array value. Bigger: taking a crafted one apart needs memory by the hundred
 * MB; smaller: no sensible log comes near.
 */
export const MAX_NESTING_DEPTH = 10_000;

/**
 * How much is decoded and applied in one turn of the event loop, whichever comes first. Bigger: a query waits
 * for longer than a millisecond; smaller: turns cost more than the work in them.
 */
export const SLICE_ELEMENTS = 25;
export const SLICE_BYTES = 64 * 1024;

/**
 * Elements that may be held decoded while dead letters are gathered for one durable write. Bigger: more
 * memory and later visibility; smaller: a batch full of poison waits for a durable write every few records.
 */
export const HELD_ELEMENTS = 1_024;
export const HELD_BYTES = 4 * 1024 * 1024;

/**
 * Records of a partition that are looked at to see whether most are too far ahead. More: more good records
 * become dead letters when the clock goes wrong while few come; fewer: a few bad ones hold the partition. At
 * most HELD_ELEMENTS, as those are known before the first is applied.
 */
export const TIME_WINDOW_RECORDS = 100;

/**
 * After how long a partition that holds for its records' time is read again to see whether it still must.
 * Longer: it goes on later once the clock is right; shorter: the same records are fetched and decoded for
 * nothing.
 */
export const HOLD_RETRY_MS = 10_000;

/** Gaps that are kept for readiness and the console; all of them are counted. */
export const KEPT_GAPS = 100;

/**
 * Entries of one POST to the embedded log. Bigger: a crafted body makes the answer longer than itself;
 * smaller: shippers that send 64 MiB of small entries at a time are refused.
 */
export const MAX_BODY_ELEMENTS = 131_072;

/**
 * What is held of a POST beside its body: where an entry stands, where a record begins, and of a rejected entry what it
 * is answered with, and that text.
 */
export const ENTRY_PLACE_BYTES = 24;
export const RECORD_PLACE_BYTES = 32;
export const REJECTED_BYTES = 160;
export const MOST_POST_BYTES = MAX_BODY_ELEMENTS * (ENTRY_PLACE_BYTES + RECORD_PLACE_BYTES + REJECTED_BYTES);

/**
 * Bytes of a body that are taken apart in one turn of the event loop. Bigger: a query waits for longer than
 * half a millisecond; smaller: turns cost more than the work in them.
 */
export const SPLIT_BYTES = 256 * 1024;

/**
 * How many entries of a POST, and bytes of them, make one record of the embedded log. Bigger: a record, which
 * is applied in one turn, holds queries up; smaller: more records to store, read and count.
 */
export const GROUP_ELEMENTS = 64;
export const GROUP_BYTES = 256 * 1024;

/**
 * Bytes that the embedded log may hold or owe to the sink before it turns POSTs away. Bigger: what was posted
 * shows later, and takes more memory; smaller: bursts are turned away that could be taken. One body always
 * fits.
 */
export const BACKLOG_BYTES = 128 * 1024 * 1024;

/**
 * After how long a POST that was turned away may try again: about what the backlog takes to shrink visibly.
 */
export const BUSY_RETRY_SECONDS = 1;

/**
 * How long it is remembered how far an import has come, since its last chunk. Bigger: more are remembered for nothing;
 * smaller than the longest retention and what entries may be ahead: an import that is repeated counts again.
 */
export const IMPORT_MEMORY_MS = LONGEST_RETENTION_US / 1000 + 24 * 3_600_000;

/**
 * Imports that are remembered of a topic; those that have had no chunk for longest go first. Bigger: memory, disk and a
 * longer start; smaller: somebody who imports many files, and repeats that, counts some of them again (a file every five
 * minutes makes 26,000 until the first may be forgotten).
 */
export const IMPORT_MEMORY_COUNT = 50_000;

/** What one takes in memory beside its id. */
export const IMPORT_BYTES = 512;

/**
 * How long a POST with an Idempotency-Key is remembered. Bigger: more are remembered for nothing; smaller: a
 * shipper that was cut off for a night sends what counts again.
 */
export const POST_MEMORY_MS = 24 * 3_600_000;

/**
 * POSTs with one that are remembered of a topic; the oldest go first. Bigger: some 250 bytes each, in memory
 * and on disk, and read at the start; smaller: many shippers' POSTs are forgotten before their senders try
 * again (at 20 a second after 17 minutes).
 */
export const POST_MEMORY_COUNT = 20_000;

/**
 * What they may take: they list the entries that were rejected. Bigger: memory; smaller: crafted bodies push
 * others out. One POST of which every entry was rejected fits.
 */
export const POST_MEMORY_BYTES = 16 * 1024 * 1024;

/** What a rejected entry takes of it, and a quarter of a POST without one. */
export const POST_ENTRY_BYTES = 64;
assert(
  POST_MEMORY_BYTES > POST_ENTRY_BYTES * (MAX_BODY_ELEMENTS + 4),
  'a POST does not fit into the memory of them',
);

/**
 * Bytes of records that the embedded log writes as one, of POSTs that are not staged. Bigger: the copies take
 * that much memory beside the bodies, twice; smaller: many clients' POSTs wait for more syncs of the disk.
 */
export const WRITE_BYTES = 4 * 1024 * 1024;

/**
 * Bytes of a POST's records from which they are staged before they are in line. Bigger: small POSTs wait for
 * larger ones; smaller: more POSTs are written twice, the second time a few bytes.
 */
export const STAGED_FROM_BYTES = 1024 * 1024;

/**
 * What a record is taken for beside its value while it is on its way to the disk: it takes a third of that in memory, and
 * about the time of so many bytes.
 */
export const RECORD_BYTES = 512;

/**
 * Records and bytes that the embedded log hands to the sink at a time. Bigger: more memory; smaller: a POST's
 * worth of turns is spent on going back and forth.
 */
export const DELIVERY_RECORDS = 256;
export const DELIVERY_BYTES = 1024 * 1024;

/**
 * Dead letters of each reason that are kept to look at, and how much of each. Bigger: more memory, and a
 * longer page to read; smaller: what is wrong with them doesn't show.
 */
export const SAMPLES_OF_REASON = 3;
export const SAMPLE_BYTES = 2048;

/**
 * Bytes that rows and URLs are written into one behind the other. Bigger: memory that few of them use;
 * smaller: allocating costs more than filling.
 */
export const SLAB_BYTES = 128 * 1024;

/**
 * Of these, how many are kept to be used again, for each partition that is read at the same time. Bigger:
 * that memory stays; smaller: what a large batch needs is allocated again and again.
 */
export const SLAB_KEPT_BYTES = 1024 * 1024;

/**
 * The smallest buffer that records travel between threads in. Bigger: memory that few entries use; smaller:
 * more kinds of buffers, so more of them.
 */
export const SMALLEST_POOLED_BYTES = 64 * 1024;

/**
 * Bytes of such buffers that are kept to be used again. Bigger: that memory stays; smaller: they are
 * allocated again and again while much comes in.
 */
export const POOLED_BYTES = 32 * 1024 * 1024;

/**
 * Marks of a partition's records (see record-marks.ts) and how far apart they are: of three neighbours the
 * outer ones are further from the newest than this many times. Bigger: after a log was replaced more is read
 * twice; smaller: with as many marks they reach less far back. 24 at 4 reach back a hundred million records
 * and cost a kilobyte a commit.
 */
export const KEPT_MARKS = 24;
export const MARK_SPREAD = 4;

assert(
  TIME_WINDOW_RECORDS <= HELD_ELEMENTS,
  'the records that are looked at are known before the first is applied',
);
assert(
  MAX_ELEMENT_BYTES <= MAX_RECORD_BYTES &&
    GROUP_BYTES <= STAGED_FROM_BYTES &&
    STAGED_FROM_BYTES <= WRITE_BYTES,
  'what is part of another fits into it',
);
assert(
  SLAB_BYTES <= SLAB_KEPT_BYTES && SMALLEST_POOLED_BYTES <= POOLED_BYTES,
  'what is kept holds one at least',
);
