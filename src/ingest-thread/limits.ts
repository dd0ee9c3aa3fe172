/** Every cap of the ingest thread, each with its reason: what too big and too small would mean. */

/**
 * Elements after which a pack is sent, though its batch goes on. Bigger: more memory in flight and entries
 * that show later; smaller: more messages than work.
 */
export const PACK_ELEMENTS = 512;

/**
 * Elements after which a record is marked (see ingest/record-marks.ts), and the serving thread may let others
 * have a turn: a commit then saves an offset together with the mark before it. Bigger: turns last longer;
 * smaller: more checksums.
 */
export const MARK_ELEMENTS = 8;

/**
 * How often the thread looks whether its status has changed. Longer: readiness and lag are older than they
 * need be; shorter: messages without news.
 */
export const STATUS_EVERY_MS = 200;

/**
 * How long the serving thread applies entries in one turn of its event loop. Bigger: a query waits for
 * longer; smaller: turns cost more than the work in them.
 */
export const APPLY_SLICE_US = 300;

/**
 * Bytes of rows after which a pack is sent. Bigger: a batch of large entries takes that memory twice;
 * smaller: more messages.
 */
export const PACK_BYTES = 1024 * 1024;

/**
 * Bytes of packs that may be on their way. Bigger: more memory when the serving thread is slow; smaller: the
 * ingest thread waits for it more often.
 */
export const IN_FLIGHT_BYTES = 16 * 1024 * 1024;

/**
 * See heap-ballast.ts. Bigger: memory for nothing else; smaller: more collections, each of some 40 ms of
 * processor time.
 */
export const HEAP_BALLAST_MB = 32;

/**
 * How far the ingest thread gives way to the serving thread where they share a core, 0 to 19. Bigger: entries
 * show later while queries keep a core busy; smaller: its work delays requests by turns of the scheduler.
 */
export const INGEST_THREAD_NICENESS = 5;
