/** Every cap of the process as a whole, each with its reason: what too big and too small would mean. */

import { assert } from '../engine/assert.js';

/**
 * The share of the memory budget that caches row blocks, at most. Bigger: less for what must be held;
 * smaller: more blocks are read from disk.
 */
export const CACHE_SHARE = 1 / 4;

/**
 * The shares of the memory budget, without the cache, at which what can be spilled is, ingest pauses, and it
 * goes on. Pausing later: what comes in between two looks goes over the budget; earlier: less of it is used.
 * Going on later: longer pauses; earlier: it pauses again at once.
 */
export const SPILL_SHARE = 0.75;
export const PAUSE_SHARE = 0.9;
export const RESUME_SHARE = 0.85;

/**
 * The share up to which a large answer may bring it that is alone and would find no room below the pause. Bigger:
 * what comes in meanwhile goes over the budget; smaller: more large answers are refused.
 */
export const LONE_SHARE = 0.95;

/**
 * The share from which on ingest pauses also for what requests hold. Bigger: what comes in between two looks goes over the
 * budget; smaller: a large answer that is sent slowly pauses ingest.
 */
export const FULL_SHARE = 0.98;

/**
 * The share of the memory budget that a compaction may sort in memory at a time; the thread that does it
 * takes about twice that. Bigger: it counts while little else can be freed; smaller: busy hours go through
 * more spill files.
 */
export const COMPACTION_SHARE = 1 / 16;

/**
 * The share of the memory budget that matches of expressions keep while memory is short, of all shards
 * together. Bigger: less is left for what can't be found again; smaller: expressions are evaluated over and
 * over.
 */
export const SPILLED_MATCH_SHARE = 1 / 16;

/**
 * The share of the memory budget that buckets of statistics which were asked for may take, beside those that
 * are kept. Bigger: less for what must be held; smaller: dashboards of many functions have them computed
 * again.
 */
export const STATS_MEMO_SHARE = 1 / 8;

/**
 * The same near a pause of ingest, and of cached answers. Bigger: ingest pauses while there is memory that
 * nothing needs; smaller: what dashboards ask again and again is computed again.
 */
export const TRIMMED_SHARE = 1 / 128;

/**
 * How often the memory is looked at, ms. Longer: more comes in meanwhile (a core takes in some 10 MB in it);
 * shorter: counting costs noticeably.
 */
export const MEMORY_CHECK_MS = 100;

/**
 * While heap and buffers of a thread take more than they should, its garbage is collected once they have grown by
 * this share of that. Bigger: the process takes more than it is allowed; smaller: requests wait for collections of
 * garbage more often.
 */
export const COLLECT_GROWTH_SHARE = 1 / 8;

/**
 * Of a thread's time, what these collections take at most. Bigger: of a hundred requests one waits for one, as requests come
 * while it lasts; smaller: garbage stays for longer.
 */
export const COLLECT_TIME_SHARE = 1 / 400;

/**
 * The largest heap, without its buffers, whose garbage is collected so. Bigger: requests wait for longer at a time
 * (some 30 ms for 100 MB); smaller: more is left of bursts.
 */
export const COLLECTED_HEAP_BYTES = 256 * 1024 * 1024;

/**
 * What heap and buffers of a storage or match thread should take, and how often that is looked at, ms. Bigger: what
 * they have left behind stays, or for longer; smaller: they collect although they need it, or look in vain.
 */
export const WORKER_HEAP_BYTES = 32 * 1024 * 1024;
export const WORKER_HEAP_CHECK_MS = 1_000;

/**
 * Partitions that a topic can have. More: what a member says may cost memory and time without bound; fewer: somebody may
 * have them (a whole Kafka cluster has some 200,000).
 */
export const MOST_PARTITIONS = 100_000;

/**
 * After how long a POST that was turned away because ingest is paused may try again. Longer: senders wait for
 * longer than the pause; shorter: they come in vain.
 */
export const PAUSED_RETRY_SECONDS = 2;

/**
 * How long pieces of work on the bodies of small POSTs begin in one turn of the event loop. Longer: queries wait that long
 * while there are many; shorter: POSTs take more turns.
 */
export const BODIES_TURN_US = 500;

/**
 * Niceness of V8's own threads. Higher: collections of garbage take longer where other processes are busy;
 * lower: a query waits for them more often.
 */
export const HELPER_NICENESS = 10;

/**
 * How far V8's heap grows from one major collection to the next, in percent of what lives: a tenth of the memory
 * budget's MiB, within bounds. Higher: more memory; lower: a collection, which delays requests for some 40 ms, comes
 * more often. V8 by itself takes some 15, which are one in three seconds at 5,000 entries a second.
 */
export const HEAP_GROWING_PERCENT = { least: 25, most: 100, ofBudgetMb: 1 / 10 };

/**
 * How often the files of certificate and keys are read, ms; what has changed counts at the second reading.
 * Longer: a key that was removed works longer; shorter: reads for nothing.
 */
export const FILE_CHECK_MS = 5000;

/** Retry-After of a 503 because an answer would not be whole. Longer: answers come later than they
 * could; shorter: callers ask in vain. */
export const NOT_WHOLE_RETRY_SECONDS = 2;

/**
 * Partitions that a reason names; the rest is a number. More: lines too long to read; fewer: it is not said
 * which.
 */
export const LISTED_PARTITIONS = 3;

/**
 * Names that are looked at in one turn for a list of the console. Bigger: a query waits for longer; smaller:
 * turns cost more than the work in them.
 */
export const NAMES_A_TURN = 2_000;

/**
 * Lists for the console that are made at a time. Bigger: with very many functions, memory and time that
 * queries need; smaller: people who open it at the same moment have to try again.
 */
export const LISTS_AT_ONCE = 4;

/**
 * How far the clock may be off the estimated time (see trusted-time.ts) and still be trusted. Bigger: a wrong
 * clock deletes that much too early; smaller: an ordinary restart counts as a step, and what is due goes an
 * hour late.
 */
export const CLOCK_STEP_US = 60_000_000;

/**
 * So long a clock that is off has to stand, without a record that contradicts it, before it is trusted.
 * Longer: after a long absence what is due stays for longer; shorter: a clock that is wrong for a while
 * deletes what nothing brings back.
 */
export const CLOCK_TRUST_US = 3_600_000_000;

/**
 * How near to a time records must be to be its witness. Bigger: a clock that is wrong by as much is
 * confirmed; smaller: producers that batch, and clocks of theirs that differ, witness nothing.
 */
export const CLOCK_CONFIRM_US = 300_000_000;

/**
 * So many records of a partition in a row, each the last of what was applied together, are a witness. More:
 * quiet topics witness late; fewer: one producer with a wrong clock is believed.
 */
export const CLOCK_RECORD_COUNT = 3;

/** Characters of a caller's value that a message repeats. Bigger: answers as long as the request. */
export const QUOTED_CHARACTER_LIMIT = 60;

assert(
  SPILL_SHARE < RESUME_SHARE &&
    RESUME_SHARE < PAUSE_SHARE &&
    PAUSE_SHARE < LONE_SHARE &&
    LONE_SHARE < FULL_SHARE,
  'spilling comes before pausing',
);
assert(TRIMMED_SHARE < STATS_MEMO_SHARE, 'near a pause less is remembered');
assert(CLOCK_CONFIRM_US < CLOCK_TRUST_US, 'a witness is nearer than the time that a clock has to stand');
