/** Every cap on expressions, each with its reason: what too big and too small would mean. */

/**
 * Characters of an expression. Bigger: parsing and programs cost more before anything can say no; smaller:
 * alternations of a few dozen project references don't fit.
 */
export const EXPRESSION_LENGTH_LIMIT = 1_000;

/**
 * Instructions of a compiled expression. Bigger: each character of a URL may cost that many steps; smaller:
 * counted repetitions that people really write are refused.
 */
export const PROGRAM_SIZE_LIMIT = 10_000;

/**
 * States that the automaton of an expression may have: beyond them re2js searches URL by URL. Bigger: 1 KB of
 * table for each; smaller: more expressions get slow over many URLs.
 */
export const AUTOMATON_STATE_LIMIT = 2_048;

/** The same of the instructions of all states together, which re2js holds as arrays: 8 bytes each. */
export const AUTOMATON_INSTRUCTION_LIMIT = 500_000;

/**
 * Compiled expressions that the thread keeps. Bigger: each holds up to 8 MB of automaton; smaller:
 * expressions that take turns are compiled again and again.
 */
export const COMPILED_EXPRESSION_LIMIT = 8;

/**
 * Memory of the thread, beyond which the expression at work is refused. Bigger: one caller may take that
 * much; smaller: COMPILED_EXPRESSION_LIMIT ordinary automata don't fit.
 */
export const MATCH_THREAD_HEAP_MB = 256;

/**
 * How far the thread gives way to the serving thread where they share a core, as Linux counts: 0 to 19.
 * Bigger: expressions take for ever on a busy machine; smaller: an expression at work delays every request by
 * turns of the scheduler.
 */
export const MATCH_THREAD_NICENESS = 10;

/**
 * Match threads beside the first, where there are cores for them. More: each takes some 10 MB once it was
 * needed, and up to MATCH_THREAD_HEAP_MB, and keeps a core from what arrives; fewer: a never-asked expression
 * over millions of URLs takes longer.
 */
export const MATCH_HELPER_LIMIT = 1;

/**
 * URLs of an evaluation for each thread that helps. More: fewer are helped; fewer: a thread is started and
 * has to compile the expression for what the first has done by then.
 */
export const URLS_PER_HELPER = 65_536;

/**
 * Expressions in evaluation at once. Bigger: each holds its caller's connection and its matches; smaller: a
 * dashboard that asks for many at once is turned away.
 */
export const EVALUATION_LIMIT = 256;

/**
 * Thread time that an evaluation may take, on all threads together. Bigger: one evil expression takes half
 * the threads for longer; smaller: an honest one over tens of millions of URLs doesn't finish. What was
 * evaluated by then stays known.
 */
export const EVALUATION_DEADLINE_MS = 30_000;

/**
 * How long an ask waits for its evaluation. Longer: proxies before us, which often wait for 60 s, give up
 * with errors of their own; not longer than EVALUATION_DEADLINE_MS: an expression that is too expensive is
 * never told so.
 */
export const EVALUATION_WAIT_MS = 45_000;

/**
 * How often, at least, a batch under way is held against it: another thread may have begun on the same
 * evaluation. Longer: it takes more than it may by so much; shorter: timers for nothing.
 */
export const DEADLINE_CHECK_MS = 1000;

/**
 * Thread time that a piece of a sealed part takes when no other expression waits. Bigger: one that comes
 * meanwhile waits for that long; smaller: the thread idles more often, while it waits for its next piece.
 */
export const LONE_SCAN_MS = 25;

/**
 * Thread time aimed at for a batch, and that a piece of a sealed part takes when others wait. Bigger: other
 * expressions wait that long for their turn; smaller: the way to the thread and back costs more than the
 * matching.
 */
export const BATCH_TARGET_MS = 10;

/**
 * Look-ups of a scan between two looks at the clock: some tens of microseconds. Bigger: other expressions
 * wait for longer; smaller: looking costs more than the work.
 */
export const SCAN_CHECK_WORK = 20_000;

/**
 * Bytes of URLs in the first batch of an evaluation, before its cost is known. Bigger: an evil expression
 * holds the thread longer at its first turn; smaller: quick ones need more turns.
 */
export const FIRST_BATCH_BYTES = 16 * 1024;

/** Bytes of URLs in a batch. Bigger: copying one holds up the serving thread; smaller: more turns. */
export const LARGEST_BATCH_BYTES = 1024 * 1024;

/**
 * Work on the serving thread at one go, in bytes searched: about half a millisecond. Bigger: other requests
 * wait longer; smaller: a large evaluation takes more turns of the event loop.
 */
export const SLICE_BYTES = 512 * 1024;
