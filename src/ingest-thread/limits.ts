/** Every cap of the ingest thread, each with its reason: what too big and too small would mean. */

/** Elements after which a pack is sent, though its batch goes on. Bigger: more memory in flight and entries that show
 * later; smaller: more messages than work. */
export const PACK_ELEMENTS = 512;

/** How often the thread looks whether its status has changed. Longer: readiness and lag are older than they need be;
 * shorter: messages without news. */
export const STATUS_EVERY_MS = 200;

/** How long the serving thread applies entries in one turn of its event loop. Bigger: a query waits for longer; smaller:
 * turns cost more than the work in them. */
export const APPLY_SLICE_US = 300;
