/** Every cap of the store, each with its reason: what too big and too small would mean. */

/** Below this a segment is stored as it is, and sealed where it stands. Bigger: the serving thread copies and
 * checksums more; smaller: going to the storage thread costs more than compressing gains. */
export const COMPRESS_FROM_BYTES = 1024;

/** Bytes of segments that go to the storage thread at a time; two such arenas take turns. Bigger: filling one holds up
 * queries for longer than a fraction of a millisecond; smaller: a commit of many segments takes more turns. */
export const ARENA_BYTES = 1024 * 1024;
