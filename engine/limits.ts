/** Every cap of the engine, each with its reason: what too big and too small would mean. */

import { assert } from './assert.js';
import { US_PER_HOUR } from './time.js';

/** `logs.all` returns at most this many rows. Source: SPEC, `logs.all`, rule 3. */
export const LOG_ROW_LIMIT = 100;

/**
 * How far ahead of now an entry may lie. Bigger: a producer's wrong clock fills rings that no query reads for
 * long; smaller: producers with a slightly fast clock lose entries to the dead letters.
 */
export const MAX_FUTURE_US = US_PER_HOUR;

/**
 * UTF-8 bytes of a name: a project, a function's id. Bigger: names, which stay in memory with all that is
 * counted of them, crowd out logs; smaller: producers' ids are refused. Source: the contract of entries.
 */
export const MAX_NAME_BYTES = 1024;

/**
 * Memory of names that are shared, some 65,000 usual ones. Bigger: names that no longer come are held for
 * long; smaller: with more names than this, each hour holds its own copies.
 */
export const KNOWN_NAME_BYTES = 8 * 1024 * 1024;

/**
 * Projects of a shard that are listed, for other members to know what it has nothing of: 10 to 20 bytes each here, 6 to
 * 12 in each member that asks. Bigger: memory for lists of topics that are not keyed by project, where they are of no use; smaller:
 * a topic that is keyed needs more partitions before its members are spared questions.
 */
export const LISTED_PROJECTS = 128 * 1024;

/** Values a bucket keeps exactly before it turns to a digest. Bigger: more memory (8 bytes a value and level)
 * and slower answers; smaller: approximate percentiles where people still count by hand. */
export const EXACT_VALUE_LIMIT = 512;

/**
 * Bytes of rows after which a block of rows in order of arrival is closed. Bigger: each commit writes more of
 * the open block again, and a sparse project's row of the last hours costs more to read; smaller: more blocks
 * and worse compression, for the hours that such blocks live.
 */
export const BLOCK_TARGET_BYTES = 16 * 1024;

/**
 * Buffers of stored blocks that are kept to be filled again, 26 KB each. Bigger: memory for bursts that are
 * over; smaller: what a commit of 20,000 entries a second holds is allocated again each time.
 */
export const SPARE_BLOCK_COUNT = 1024;

/**
 * How long after its hour a run of rows in order of arrival goes on for rows that come late; also how long a
 * run that late rows began goes on. Longer: more rows cost memory for their index; shorter: more, smaller
 * runs to merge.
 */
export const ROW_PARTITION_OPEN_US = US_PER_HOUR;

/**
 * So long without a row, and a run of an hour long past that holds some memory is closed: a backfill has gone
 * on to other hours. Longer: its rows stay in order of arrival, which is slow to ask and to start with;
 * shorter: a backfill that goes back and forth makes several runs an hour.
 */
export const ROW_PARTITION_QUIET_US = 60_000_000;

/**
 * Runs that one expiry closes. Bigger: the commit after a backfill of many hours has that many files to write
 * and sync; smaller: such runs hold their index in memory for longer.
 */
export const CLOSES_AT_A_TIME = 64;

/**
 * How often runs that could not be read are tried again while rows are asked for. Longer: a disk that works again is noticed
 * late; shorter: a disk that takes seconds to fail holds up all queries with it, again and again.
 */
export const UNREADABLE_RETRY_US = 60_000_000;

/**
 * Memory of a run of rows from which it is closed early, when memory is short or a backfill is over. Bigger:
 * less can be freed; smaller: the day is made of many small runs, which are merged again and again.
 */
export const SPILLED_RUN_BYTES = 64 * 1024;

/**
 * The same of a run whose hour is not over: its further rows begin another. Bigger: a busy hour's index can't
 * leave the memory; smaller: an hour in many runs, of which a query opens each.
 */
export const SPILLED_BUSY_RUN_BYTES = 32 * 1024 * 1024;

/**
 * Bytes of rows in a block of a sorted run. Bigger: compresses a little better (16, 24, 32 KB: 327, 323, 321
 * bytes a generated row), but a sparse project's row costs more to read; smaller: more directory a row.
 */
export const SORTED_BLOCK_BYTES = 16 * 1024;

/**
 * Bytes of rows that a compaction sorts in memory at a time, at most. Bigger: more memory beside the serving
 * thread's; smaller: a busy hour goes through more spill files.
 */
export const COMPACTION_CHUNK_BYTES = 64 * 1024 * 1024;

/**
 * What a row takes while it is sorted, beside its bytes: an object, a view, its numbers. Smaller than it is:
 * chunks of small rows take several times what they may.
 */
export const COMPACTION_ROW_BYTES = 256;

/** Bytes of rows that a compaction gives the store as a sample. More than makes the store's
 * dictionary of 64 KB is not used; less: blocks compress worse. */
export const COMPACTION_SAMPLE_BYTES = 80 * 1024;

/**
 * Bytes of rows from which a sample pays. Bigger: small runs compress badly; smaller: the sample outweighs
 * them.
 */
export const COMPACTION_SAMPLE_FROM_BYTES = 128 * 1024;

/**
 * Projects that each expiry, twice a second, frees of runs that are gone. Bigger: queries wait for longer
 * than a millisecond; smaller: what is gone stays in memory for longer.
 */
export const SWEEP_PROJECTS = 2_000;

/**
 * Of so many blocks of an open hour the indexes become one segment: an hour has thousands of saves, and the store holds
 * the name of each segment. Bigger: more bytes are written twice and held until then; smaller: more names.
 */
export const INDEXES_TOGETHER = 16;

/**
 * A day's run is merged with later runs of that day once they are this share of it, or so many; the same of an hour's
 * where days are not merged. Bigger: queries look into more runs; smaller: a trickle of late rows has the day
 * compacted again and again.
 */
export const DAY_MERGE_SHARE = 1 / 4;
export const DAY_MERGE_COUNT = 16;

/**
 * Bytes a slab of fresh URLs holds. Bigger: sparse hours waste room, and a slice of a search is at least a
 * slab; smaller: more slabs, and a search is a call a slab.
 */
export const URL_SLAB_BYTES = 256 * 1024;

/**
 * URLs that a part recognises when they come again. A power of two. Bigger: 16 bytes more of table for each,
 * and a longer stall when the table grows; smaller: hours with more distinct URLs hold some of them twice.
 */
export const URL_INDEX_CAPACITY = 2 ** 18;

/**
 * Slots a search for a URL looks at before it takes the URL for a new one. Bigger: URLs made up to collide
 * cost more time; smaller: ordinary collisions make URLs be held twice.
 */
export const URL_PROBE_LIMIT = 64;

/**
 * URLs and entries of an hour, in bytes, after which they are sealed into a file and the hour goes on in
 * another part. Bigger: they take longer to sort, and more memory meanwhile; smaller: more files, and
 * neighbours share less.
 */
export const USAGE_PART_BYTES = 16 * 1024 * 1024;

/**
 * The same once the hour is over. Bigger: more hours stay in memory; smaller: more files, and expressions
 * that could be evaluated on the spot go through the match thread.
 */
export const USAGE_SEAL_FROM_BYTES = 1024 * 1024;

/** The same because memory is short. Smaller: files for next to nothing. */
export const USAGE_SPILL_FROM_BYTES = 64 * 1024;

/**
 * Memory of a shard's URLs and entries that are not sealed, beyond which the largest part is. Bigger: less is
 * left for logs; smaller: hours in many small parts.
 */
export const USAGE_FRESH_BYTES = 64 * 1024 * 1024;

/**
 * Bytes a page of a sealed part holds. Bigger: its filter rules out less; smaller: neighbours share less,
 * more filters.
 */
export const SEALED_PAGE_BYTES = 24 * 1024;

/**
 * Bytes of a page's filter, a power of two. Bigger: more to read before the first page; smaller: rules out
 * less.
 */
export const PAGE_FILTER_BYTES = 2 * 1024;

/**
 * Bytes of a phrase that a part's URLs hold as one. Bigger: unpacking needs more room; smaller: long query
 * strings that all have are no phrases. At most 255.
 */
export const PHRASE_LENGTH_LIMIT = 64;

/** URLs that a part's phrases are counted in. Bigger: sealing takes longer; smaller: phrases are missed. */
export const PHRASE_SAMPLE_COUNT = 4096;

/**
 * Entries of one URL that stand together on a page. Bigger: pages become larger than they should; smaller:
 * busy URLs come more often.
 */
export const PAGE_ENTRY_LIMIT = 4096;

/**
 * Bytes of URLs that a sort compares before it lets other work go on. Bigger: commits wait; smaller: more
 * turns.
 */
export const URL_SORT_STEP = 100_000;

/** Entries in a block of a usage part's columns. Bigger: more room left over in the last one; smaller: more
 * objects. */
export const ENTRY_BLOCK_COUNT = 2 ** 16;

/**
 * Entries in a block of a match list; at most 256, because part of a block is counted in lanes of 8 bits.
 * Bigger: a late entry moves more, and the two cut blocks of a count cost more; smaller: more overhead an
 * entry.
 */
export const MATCH_BLOCK_COUNT = 256;

/**
 * Expressions that stand, a shard. Bigger: each URL is compared with more literals, and idle ones hold
 * memory; smaller: callers with more projects than this evaluate over and over.
 */
export const STANDING_EXPRESSION_LIMIT = 4096;

/**
 * Memory for the matches of all standing expressions, a shard. Bigger: less is left for logs; smaller:
 * expressions that match much push each other out.
 */
export const STANDING_MATCH_BYTES = 256 * 1024 * 1024;

/**
 * The same while memory is short. Bigger: less is left for what can't be found again; smaller: expressions
 * are evaluated over and over.
 */
export const SPILLED_MATCH_BYTES = 32 * 1024 * 1024;

/**
 * How long an expression stands after it was last asked for. Longer: memory for what nobody asks; shorter
 * than the cache's life (900 s): every recomputation would start from nothing.
 */
export const STANDING_IDLE_US = US_PER_HOUR / 2;

/**
 * Bytes from which a chunk of usage is closed. Bigger: each save under low traffic writes more again;
 * smaller: more segments.
 */
export const USAGE_CHUNK_BYTES = 64 * 1024;

/**
 * The share of the values at or above it that one centroid of a digest may stand for. Bigger: percentiles
 * miss the rank bound (0.5 % at the 95th, 0.2 % at the 99th); smaller: digests of more than 9 KB.
 */
export const DIGEST_CENTROID_SHARE = 0.05;

/**
 * The share of all values that is added to those above a centroid, which ends the refinement towards the
 * maximum. Bigger: the 99th percentile gets coarse; smaller: centroids are spent where no percentile is asked
 * for.
 */
export const DIGEST_TAIL_SHARE = 0.004;

/**
 * Values that a digest buffers before it sorts and merges them. Bigger: more memory a digest; smaller: more
 * time a value, and more rounds of merging, each of which blurs a little.
 */
export const DIGEST_BUFFER_LENGTH = 512;

/**
 * Memory for buckets of answers that are remembered, of all series together. Bigger: less is left for logs;
 * smaller: fleets of dashboards with more series than fit have all of their buckets computed again. A bucket
 * takes some 700 bytes, the finest series has 301.
 */
export const STATS_MEMO_BYTES = 128 * 1024 * 1024;

/**
 * Bytes of bucket images that one save writes for a slot that is due to be written again. Bigger: saves that
 * stop the thread for longer; smaller: more segments live beside each other.
 */
export const STATS_IMAGE_STEP_BYTES = 256 * 1024;

/**
 * Writers of events that are kept for the next save. Bigger: memory for what a backfill once needed; smaller:
 * they are allocated again for every slot and save.
 */
export const SPARE_EVENT_WRITERS = 64;

/**
 * Bytes up to which an expired slot's arrays serve the level's next slot. Bigger: an hour's or a day's peak
 * is held for ever; smaller: each second allocates its slot again.
 */
export const SPARE_SLOT_BYTES = 1024 * 1024;

/**
 * Memory for values of a slot from which they are set aside when memory is short. Bigger: less can be freed;
 * smaller: an open file for next to nothing.
 */
export const STATS_ASIDE_FROM_BYTES = 64 * 1024;

/**
 * Bytes of values that are set aside at a time, of one shard, ten times a second. Bigger: queries wait for
 * it, some 5 ms a MiB; smaller: ingest pauses for longer after a start with more than the budget.
 */
export const STATS_ASIDE_STEP_BYTES = 512 * 1024;

/**
 * How many times what they hold scratch files may grow, by values that are brought back for late entries,
 * before what counts moves to another. Bigger: more disk; smaller: values are copied more often.
 */
export const STATS_ASIDE_GROWTH = 4;

/**
 * What a segment of events counts for, at least, when they are weighed against a slot's images. Bigger: idle
 * slots are rewritten for a few events; smaller: a start has to read many tiny segments.
 */
export const STATS_SEGMENT_COST_BYTES = 1024;

assert(
  isPowerOfTwo(URL_INDEX_CAPACITY) && isPowerOfTwo(PAGE_FILTER_BYTES),
  'tables are as large as a power of two',
);
assert(PHRASE_LENGTH_LIMIT <= 255, 'the length of a phrase is one byte');
assert(MATCH_BLOCK_COUNT <= 256, 'a part of a block of matches is counted in lanes of 8 bits');
assert(SPILLED_MATCH_BYTES < STANDING_MATCH_BYTES, 'while memory is short less is kept');
assert(
  USAGE_SPILL_FROM_BYTES <= USAGE_SEAL_FROM_BYTES && USAGE_SEAL_FROM_BYTES <= USAGE_PART_BYTES,
  'the more pressing the reason, the smaller the parts that are sealed',
);
assert(SPILLED_RUN_BYTES <= SPILLED_BUSY_RUN_BYTES, 'a run whose hour is over is closed before a busy one');

function isPowerOfTwo(count: number): boolean {
  return Number.isInteger(Math.log2(count));
}
