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
 * After how long an expression that found too many others under way may be asked again: about what one takes.
 */
export const EXPRESSION_RETRY_SECONDS = 1;

/**
 * A pooled body: a hundred rows of `logs.all` of the usual size. Bigger: memory for little; smaller: usual
 * answers are allocated again.
 */
export const POOLED_BODY_BYTES = 512 * 1024;

/** Pooled bodies kept while nobody needs them. Bigger: memory that idles; smaller: bursts allocate. */
export const BODY_POOL_COUNT = 16;
