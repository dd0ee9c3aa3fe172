/** Every cap of the endpoints, each with its reason: what too big and too small would mean. */

/**
 * Bytes of rows of `logs.all` up to which an answer is read and put together in one turn of the event loop.
 * Bigger: others wait for it, some 5 ms a MiB; smaller: usual answers (a quarter of a MiB) take several
 * turns.
 */
export const LOGS_STEP_BYTES = 1024 * 1024;

/**
 * After how long a large answer for which there is no room may be asked for again: about what sending one
 * takes.
 */
export const ANSWER_RETRY_SECONDS = 5;

/**
 * Retry-After of a query whose partitions changed while it was answered. Longer: callers wait for nothing.
 * Shorter: the header counts whole seconds.
 */
export const CHANGED_RETRY_SECONDS = 1;

/**
 * After how long an expression that found too many others under way may be asked again: about what one takes.
 */
export const EXPRESSION_RETRY_SECONDS = 1;

/**
 * A pooled body: a hundred rows of `logs.all` of the usual size. Bigger: memory for little; smaller: usual
 * answers are allocated again.
 */
export const POOLED_BODY_BYTES = 512 * 1024;

/** Smaller bodies are not pooled. Bigger: more garbage; smaller: small ones take up what large ones need. */
export const SMALL_BODY_BYTES = 16 * 1024;

/** Pooled bodies kept while nobody needs them. Bigger: memory that idles; smaller: bursts allocate. */
export const BODY_POOL_COUNT = 16;

/**
 * Questions to `logs.all` of which is remembered what they were answered from. More: memory, some 300 bytes
 * each; fewer: dashboards in use push each other out.
 */
export const LOGS_MEMO_ASKED_COUNT = 10_000;

/**
 * An answer of `logs.all` that was asked for so long ago makes room for others. Longer: what nobody asks for any
 * more stays; shorter: more questions in turn than there is room for push each other out, and none is kept.
 */
export const LOGS_MEMO_IDLE_US = 60_000_000;

/** Of a remembered question beside its text and its numbers, as measured. */
export const LOGS_MEMO_OVERHEAD_BYTES = 400;

/** Of a kept answer beside that and its body, as measured. */
export const LOGS_MEMO_KEPT_BYTES = 650;

/** Of the memory of the memo of `logs.all`, the share of answers; the rest is for what questions depend on. */
export const LOGS_MEMO_KEPT_SHARE = 7 / 8;

/**
 * What the memo of `logs.all` may take, as a share of what may be remembered for statistics, and beside that.
 * Bigger: memory for what is seldom asked for again; smaller: fewer dashboards find their answer kept.
 */
export const LOGS_MEMO_SHARE = 1 / 4;

/** The same of what is written of statistics for other members. */
export const STATS_WRITTEN_SHARE = 1 / 4;
