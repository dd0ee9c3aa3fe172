/** Every cap of the HTTP layer, each with its reason: what too big and too small would mean. */

import { assert } from '../../engine/assert.js';
import { MOST_POST_BYTES } from '../../ingest/limits.js';

/**
 * Length of path and query together. Bigger: more memory that a caller without a key can make us hold; smaller:
 * long regular expressions don't fit. (The uWebSockets.js of Node 20 drops a connection whose head comes in
 * several pieces and is longer than 4 KiB; nothing changes that.)
 */
export const TARGET_BYTE_LIMIT = 16 * 1024;

/**
 * Size of a whole request head. It has to be above TARGET_BYTE_LIMIT, or a long target is answered as garbage.
 */
export const HEAD_BYTE_LIMIT = 24 * 1024;

/**
 * Header lines of a request: as many as uWebSockets.js reads. Bigger: has no effect there, and the two back
 * ends differ; smaller: requests that came through several proxies are refused.
 */
export const HEADER_COUNT_LIMIT = 48;

/**
 * Digits of a Content-Length. Bigger: numbers that a double doesn't hold exactly; smaller: nothing, bodies
 * are far below.
 */
export const CONTENT_LENGTH_DIGIT_LIMIT = 15;

/**
 * Characters of an Idempotency-Key. Bigger: no sender needs it; smaller: digests and names put together don't
 * fit.
 */
export const IDEMPOTENCY_KEY_LENGTH_LIMIT = 255;

/**
 * An ingest body as it arrives. Source: DESIGN 4. Bigger: one request holds up the log for long; smaller:
 * existing shippers' batches don't fit.
 */
export const INGEST_PACKED_BYTE_LIMIT = 16 * 1024 * 1024;

/** An ingest body after gunzip. Source: DESIGN 4. A gzip bomb is stopped here. */
export const INGEST_UNPACKED_BYTE_LIMIT = 64 * 1024 * 1024;

/**
 * What is still read, and thrown away, of a body that was refused. Bigger: a refused sender costs us
 * bandwidth for longer; smaller: senders see a reset connection instead of the answer that says why.
 */
export const REFUSED_BODY_BYTE_LIMIT = 64 * 1024 * 1024;

/**
 * What all ingest bodies in progress may hold together, packed and unpacked; one that says in advance that it
 * finds no room is refused unread. Bigger: memory; smaller than one packed plus one unpacked body: a body that
 * is allowed could never be taken. Beyond it senders get 503 and come again.
 */
export const INGEST_HELD_BYTE_LIMIT = 160 * 1024 * 1024;

/**
 * From when on a body's memory is apart from the heap, and in which steps it grows. Bigger: what smaller
 * bodies leave behind waits for the collector; smaller: a system call for each of many, and reading it is a
 * little slower.
 */
export const LARGE_BODY_BYTES = 1024 * 1024;
export const BODY_STEP_BYTES = 1024 * 1024;

/**
 * Of a large body's memory, what is freed in one turn of the event loop. Bigger: a query waits for longer than a
 * millisecond; smaller: it takes more turns.
 */
export const RELEASE_STEP_BYTES = 4 * 1024 * 1024;

/**
 * Bytes of a body that node:http reads in a turn; uWebSockets.js reads up to 512 KiB by itself. Bigger: queries wait for
 * what many bodies bring at once; smaller: each takes more turns.
 */
export const READ_TURN_BYTES = 64 * 1024;

/**
 * What is unpacked at a time. Bigger: copying it holds up other requests; smaller: more turns for a large
 * body.
 */
export const GUNZIP_CHUNK_BYTES = 128 * 1024;

/**
 * The least of it, however small the memory budget: one body, packed and unpacked, or unpacked and with what is said of its
 * entries.
 */
export const INGEST_HELD_BYTE_MINIMUM =
  INGEST_UNPACKED_BYTE_LIMIT + Math.max(INGEST_PACKED_BYTE_LIMIT, MOST_POST_BYTES);

/**
 * Answers below this are not compressed: they fit in one or two packets, and gzip makes them hardly smaller.
 */
export const GZIP_MIN_BYTES = 2048;

/**
 * Compressions at a time; while so many run, answers go out uncompressed. Bigger: they occupy the four
 * threads that the store's writes need too; smaller: fewer callers get small answers under load.
 */
export const GZIP_CONCURRENCY_LIMIT = 2;

/**
 * zlib level of an answer that is sent once: level 1 packs 236 KB of log rows in about 2 ms, level 6 in about
 * 5.
 */
export const GZIP_LEVEL_ONCE = 1;

/** zlib level of an answer that is cached and sent often. */
export const GZIP_LEVEL_CACHED = 6;

/**
 * Distinct cached answers. Bigger: warming, which recomputes each every five minutes, takes a noticeable
 * share of the thread; smaller: dashboards of many projects evict each other.
 */
export const CACHE_ENTRY_LIMIT = 20_000;

/**
 * Bytes of cached answers, compressed copies and keys together. Bigger: memory; smaller: the same as above.
 * An answer of 301 buckets is about 50 KB.
 */
export const CACHE_BYTE_LIMIT = 128 * 1024 * 1024;

/** What a cache entry costs beside its bytes: two map slots, the entry, its closure. */
export const CACHE_ENTRY_OVERHEAD_BYTES = 700;

/**
 * Answers recomputed in one go of warming. Bigger: requests wait behind it (one takes up to about 0.2 ms);
 * smaller: ten batches a second don't get round CACHE_ENTRY_LIMIT answers in a warming period (20,000 in 300
 * s are 67 a second).
 */
export const WARM_BATCH_SIZE = 8;

/** How long a browser may remember a CORS preflight. Bigger: a changed configuration takes longer to arrive;
 * browsers cap it at two hours and less anyway. */
export const PREFLIGHT_MAX_AGE_SECONDS = 7200;

/** An idle connection is kept this long: what uWebSockets.js has built in, so both back ends do the same. */
export const KEEP_ALIVE_MS = 10_000;

/**
 * What answers say of it in `Keep-Alive: timeout`. Longer: uWebSockets.js counts in steps of four seconds,
 * and a client that uses a connection again just as it is closed gets an error in place of an answer;
 * shorter: more connections are made for nothing.
 */
export const KEEP_ALIVE_TOLD_SECONDS = 5;

/** A request head must be complete in this time: the same. */
export const HEAD_TIMEOUT_MS = 10_000;

/**
 * A whole request, body included, must have arrived in this time (node:http). Bigger: slow senders hold
 * memory; smaller: 16 MiB don't come through a slow line (280 KB/s at 60 s).
 */
export const REQUEST_TIMEOUT_MS = 60_000;

/**
 * A body of which nothing arrives for this long is given up: the same. ANSWER_WINDOW_US is for clients that
 * don't take an answer; those that wait for one may wait.
 */
export const BODY_IDLE_MS = 10_000;

/**
 * How often node:http looks for heads and bodies that took too long (by itself each 30 s). Bigger: they stay
 * for as much longer; smaller: looking costs more.
 */
export const CONNECTION_CHECK_MS = 1000;

/**
 * How exact the order is in which cache entries were asked for: so many steps in the time that an answer may be
 * used, 0.9 s with the usual 15 minutes. Fewer: of what was asked for just now the wrong is evicted; more: each
 * hit takes longer by a thirtieth.
 */
export const CACHE_ORDER_STEP_COUNT = 1000;

/**
 * Unasked cache entries dropped in one go. Bigger: 20,000 at once take some milliseconds; smaller: no harm.
 */
export const CACHE_DROP_BATCH_SIZE = 1000;

/**
 * Retry-After of a query that found too many files open. Longer: callers wait for longer than they must;
 * shorter: they try in vain, on connections that take descriptors too.
 */
export const DESCRIPTORS_RETRY_SECONDS = 2;

/** After how long a body that found too many others under way may be sent again: about what one takes. */
export const INGEST_RETRY_SECONDS = 1;

/**
 * Bytes of a large answer that a socket is given in one turn. Bigger: others wait for longer than a tenth of
 * a millisecond; smaller: more turns.
 */
export const SEND_PIECE_BYTES = 256 * 1024;

/**
 * What answers that clients have not taken yet may hold: usual ones, and as much again large ones. Bigger:
 * memory; smaller: clients on slow lines are cut off, and large answers refused. One of the largest (100 rows
 * of 1 MiB) is possible while the memory budget is not nearly used up.
 */
export const ANSWER_BYTE_LIMIT = 128 * 1024 * 1024;

/** The share of the memory budget that this is at most. */
export const ANSWER_BUDGET_SHARE = 1 / 8;

/**
 * What a client must take of an answer in this time, or it is cut off: ANSWER_LEAST_BYTES, and of a large one
 * so much that it is through in ANSWER_WINDOW_COUNT times that. More time, or less to take: clients that
 * don't read hold memory for longer; less time, or more: clients on slow lines are cut off. 64 KiB in 20 s
 * are 26 kbit/s.
 */
export const ANSWER_WINDOW_US = 20_000_000;
export const ANSWER_LEAST_BYTES = 64 * 1024;
export const ANSWER_WINDOW_COUNT = 15;

/** How often that is looked at, ms. Longer: slow clients stay for longer; shorter: looking costs more. */
export const ANSWER_CHECK_MS = 1000;

/**
 * Spans that the header of an incomplete answer names. More: a damaged disk makes headers that clients
 * refuse; fewer: the operator's tools have to be asked sooner.
 */
export const INCOMPLETE_SPAN_LIMIT = 8;

/**
 * How long a browser may keep the API's description. Bigger: after an upgrade it shows the earlier one for
 * longer; smaller: no harm.
 */
export const DESCRIPTION_MAX_AGE_SECONDS = 300;
/**
 * Project names that `/api/projects` gives. Too many: a long list that nobody reads. Too few: what is looked
 * for is not in it.
 */
export const LISTED_PROJECT_LIMIT = 200;
/** Function ids that `/api/functions` gives of a project, for the same reasons. */
export const LISTED_FUNCTION_LIMIT = 500;

/**
 * Characters of a method and a path in the access log. Bigger: callers without a key can make long lines;
 * smaller: paths of ours (an endpoint by its id has 58) are cut.
 */
export const LOGGED_METHOD_LENGTH_LIMIT = 20;
export const LOGGED_PATH_LENGTH_LIMIT = 200;

/**
 * Characters of a parameter in the line of a slow query. Bigger: an expression of 1,000 fills the screen;
 * smaller: expressions can't be told apart.
 */
export const SLOW_QUERY_VALUE_LENGTH_LIMIT = 200;

/**
 * Rounds (N of scrypt) of the tag that stands for a key in the access log. Bigger: the first request of each
 * key waits for longer (about 3 ms at this); smaller: short keys are guessed from their tags sooner.
 */
export const KEY_TAG_ROUND_COUNT = 1024;

/**
 * Parameters of a query string. More: who has no key has it decoded all the same, and each that is wrong takes an exception;
 * fewer: a caller that adds many of its own is refused.
 */
export const QUERY_PARAMETER_LIMIT = 64;

/**
 * Query strings that are remembered decoded, their length and their parameters at most. More: up to some KB
 * each; fewer: a dashboard's requests are decoded and checked again, 1.5 us each.
 */
export const REMEMBERED_QUERY_COUNT = 1_000;
export const REMEMBERED_QUERY_LENGTH = 500;
export const REMEMBERED_PARAMETER_COUNT = 8;

assert(HEAD_BYTE_LIMIT > TARGET_BYTE_LIMIT, 'a long target is refused by us, not by the server');
assert(INGEST_HELD_BYTE_LIMIT >= INGEST_HELD_BYTE_MINIMUM, 'the largest body fits into what bodies may hold');
assert(
  1000 * KEEP_ALIVE_TOLD_SECONDS < KEEP_ALIVE_MS,
  'clients are told of a shorter time than connections are kept',
);
assert(ANSWER_CHECK_MS * 1000 < ANSWER_WINDOW_US, 'slow clients are looked at within their time');
assert(WARM_BATCH_SIZE * 10 * 300 >= CACHE_ENTRY_LIMIT, 'all cached answers are computed again within 300 s');
