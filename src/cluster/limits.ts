/** Every cap of answering together, each with its reason: what too big and too small would mean. */

import { assert } from '../../engine/assert.js';
import { ANSWER_BYTE_LIMIT, KEEP_ALIVE_MS } from '../http/limits.js';

/** Of the messages between members. A member asks only those that speak its own. */
export const WIRE_VERSION = 10;

/**
 * How often the others are asked what they hold. Longer: who has fallen behind, and who has come back, is known later;
 * shorter: requests, one a member each.
 */
export const HOLDINGS_POLL_MS = 1_000;

/**
 * A member that its group has no longer, and that has not answered either, is asked for so long still. Longer: requests to nobody; shorter: one that comes
 * back is found only once its group has it again, which takes seconds.
 */
export const ABSENT_MS = 600_000;

/**
 * Hashes of projects that one such request brings, 4 bytes each, and that are kept of a member, 6 to 12. More: longer
 * turns, and memory; fewer: it takes longer until it is known what a member has nothing of, or it never is.
 */
export const HASHES_AT_ONCE = 64 * 1024;
export const KEPT_HASHES = 1024 * 1024;

/** How long such a request may take. Longer: a silent member is known later; shorter: a busy one counts as silent. */
export const HOLDINGS_TIMEOUT_MS = 2_000;

/**
 * How long a member waits for a partition to come as far as it was asked for. Longer: a member that is behind is given
 * up later; shorter: one that is about to be there is passed over.
 */
export const BEHIND_WAIT_MS = 200;

/**
 * Between two looks whether it has come so far: at first, and at the most as each finds that it has not. Longer: the
 * answer comes later; shorter: the looks of many questions take up the time in which it would catch up.
 */
export const BEHIND_CHECK_MS = 5;
export const BEHIND_CHECK_MOST_MS = 50;

/**
 * Members that were not as far as they had to be are not asked again for so long, and while they are being asked. Longer:
 * the answer comes later; shorter: questions in vain take up the time in which they would catch up.
 */
export const BEHIND_KNOWN_MS = 100;

/**
 * Between two looks for a copy, at first, and at the most as they find none, where the only ones left are not as far yet as they must be. Longer: the answer
 * comes later; shorter: more questions while machines are busy.
 */
export const CATCH_UP_PAUSE_MS = 25;
export const CATCH_UP_PAUSE_MOST_MS = 200;

/**
 * A member that is silent for longer than nearly all its answers take has another one asked beside it, after this at
 * the least and at the most. Longer: a member that hangs is felt; shorter: questions are answered twice.
 */
export const HEDGE_LEAST_MS = 5;
export const HEDGE_MOST_MS = 100;

/**
 * One that takes so many times longer than another would have is late too. More: one that has just started, or is slow
 * for a while, is felt for as long as it is slow; fewer: a member on a slower machine always counts as late.
 */
export const HEDGE_PATIENCE = 2;

/** Questions that may be asked twice so, as a share of all, and in a row. More: more load where there is most. */
export const HEDGE_SHARE = 0.05;
export const HEDGE_BURST = 10;

/** Answers of a member that its usual time is computed from. More: a change shows later; fewer: it jumps. */
export const LATENCY_SAMPLES = 64;

/** A member that was silent so often in a row is asked last. More: it is felt longer; fewer: a pause counts. */
export const SILENT_TIMES = 3;

/**
 * The share of a question's time that a fresh copy is waited for where there are older ones (HEDGE_MOST_MS where its member
 * was silent before; where answers may take long, as long as it is not silent). More: too little is left to ask for the
 * older ones; less: an answer that only takes long comes from one.
 */
export const FRESH_SHARE = 0.75;

/**
 * How often an answer is begun again because what the others sent no longer belongs together. More: a caller waits
 * longer under heavy change; fewer: a 503 that one more try would have spared.
 */
export const GATHER_TRIES = 4;

/** Bytes of a question. Bigger: memory for what nobody asks; smaller: an expression does not fit. */
export const QUESTION_BYTES = 64 * 1024;

/** Requests of a connection that are answered at a time. More: memory for a member that hangs; fewer: slow ones hold others up. */
export const REQUESTS_AT_ONCE = 64;

/** Requests of a connection that are answered in one turn of the event loop. More: longer turns; fewer: more system calls. */
export const REQUESTS_A_TURN = 16;

/** Bytes that say what a member knows of another's lists: 8 a partition. Bigger: memory; smaller: a limit to partitions. */
export const KNOWN_BYTES = 1024 * 1024;

/** Bytes of a reply. Bigger: memory that one reply may take; smaller: large rows can't be sent. */
export const REPLY_BYTES = 256 * 1024 * 1024;

/** Bytes of replies that are not counted among the large answers. Bigger: uncounted memory; smaller: more book-keeping. */
export const UNCOUNTED_REPLY_BYTES = 1024 * 1024;

/** Questions of others that may be under way. More: memory and time of the serving thread; fewer: 503 between members. */
export const QUESTIONS_AT_ONCE = 512;

/** The farthest time from the epoch that there is, µs: that of dates. */
export const MOST_TIME_US = 8.64e18;

/** Kept for so long without a question. Longer: it is closed under one; shorter: connections are made again and again. */
export const PEER_IDLE_MS = 5_000;

/** Bytes that are read from any member at a time. Bigger: memory; smaller: more system calls. */
export const PEER_READ_BYTES = 64 * 1024;

/**
 * Bytes of replies that wait for a member to take them before no more of its requests are read. More: memory for one that hangs;
 * fewer: one that is only slow waits for each reply.
 */
export const UNSENT_REPLY_BYTES = 4 * 1024 * 1024;

/** Bytes of a key. Bigger: memory for strangers; smaller: long keys are refused. */
export const KEY_BYTES = 1024;

/** Bytes that a copy of a partition is fetched by. Bigger: turns of the serving thread last longer; smaller: more requests. */
export const PIECE_BYTES = 256 * 1024;

/** Bytes of a piece that a member may ask for: builds of before 2026-11-27 ask for so many. Bigger: memory, and longer turns. */
export const PIECE_LIMIT_BYTES = 1024 * 1024;

/**
 * Pieces of a file that are on their way at a time. More: memory; fewer: the disk and the network wait for each other, and
 * a long line is idle.
 */
export const PIECES_AT_ONCE = 4;

/** How long a piece may take to come. Longer: a member that hangs is given up later; shorter: one that gives to many is. */
export const PIECE_TIMEOUT_MS = 30_000;

/** Partitions that are copied at a time, from this member and to it. More: each takes longer, and files are held; fewer: all take longer. */
export const COPIES_GIVEN_AT_ONCE = 4;
export const COPIES_TAKEN_AT_ONCE = 2;

/** Files that no member fetches any more are let go of. Longer: disk for nobody; shorter: a copy that is held up begins again. */
export const COPY_IDLE_MS = 120_000;

/**
 * Between two tries to copy a partition, at first, and at the most as they fail. Longer: it is read later; shorter:
 * requests in vain.
 */
export const COPY_RETRY_MS = 1_000;
export const COPY_RETRY_MOST_MS = 30_000;

/**
 * Between two tries where the giver has others to serve. Longer: members that ask more often are served first; shorter:
 * requests in vain.
 */
export const COPY_BUSY_MS = 1_000;

/**
 * Once a try has fetched so many bytes, failures are counted from zero again. More: a copy over a line that breaks often is
 * given up; fewer: one that always fails at the same place never is.
 */
export const COPY_PROGRESS_BYTES = 64 * 1024 * 1024;

/**
 * Copies of a partition that have had this share of the entries of the one that has had most are as whole as that one. More:
 * one that is seconds behind is not asked; less: one is that began later, and lacks what was before.
 */
export const COPY_WHOLE_SHARE = 0.99;

/** How often a copy from one member is tried. More: the topic is read later where none succeeds; fewer: what passes is not waited for. */
export const COPY_TRIES = 16;

/**
 * How long members that may have a copy and can't be asked are waited for before the topic is read. Longer: a member
 * that is set up wrongly holds the others up; shorter: one that restarts is not waited for, and older entries are lost.
 */
export const COPY_WAIT_MS = 600_000;

/**
 * How often parts of copies are removed that nobody goes on with. Less often: they take up disk for longer; more often:
 * what a restarted member would go on with, once it is assigned partitions, is fetched again.
 */
export const COPY_LEFTOVERS_MS = 3_600_000;

/** Bytes of the disk that copies leave free. More: a disk that would do is refused; fewer: commits find it full. */
export const COPY_RESERVE_BYTES = 1024 * 1024 * 1024;

/** Names that a member tells another at once. More: longer lists than anybody reads; fewer: the console offers less than it may. */
export const NAMES_AT_ONCE = 1_000;

/** A caller whose question finds no copy comes again after this, seconds. */
export const NO_COPY_RETRY_SECONDS = 1;

/** Partitions and problems that an error names. More: an error nobody reads; fewer: the one that matters is missing. */
export const NAMED_PROBLEMS = 8;

assert(PIECE_TIMEOUT_MS < COPY_IDLE_MS, 'a copy outlives a piece that is given up');
assert(HEDGE_LEAST_MS <= HEDGE_MOST_MS, 'hedges have a range');
assert(BEHIND_CHECK_MS < BEHIND_WAIT_MS, 'who waits looks more than once');
assert(UNCOUNTED_REPLY_BYTES < ANSWER_BYTE_LIMIT, 'what is not counted is small');
assert(PEER_IDLE_MS < KEEP_ALIVE_MS, 'the one who asks closes an idle connection before the other does');
