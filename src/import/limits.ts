/** Every cap of the importer, each with its reason: what too big and too small would mean. */

/**
 * Bytes of a chunk, which is one POST and one durable write. Bigger: more memory, and more to send again
 * after a lost connection; smaller: each waits for the disk, and an import is as slow as its syncs.
 */
export const CHUNK_BYTES = 1024 * 1024;

/**
 * Lines of a chunk. Bigger: a file of tiny lines runs into what a POST may hold (MAX_BODY_ELEMENTS); smaller:
 * nothing at usual lengths, 450 of them fill a chunk.
 */
export const CHUNK_LINES = 65_536;

/**
 * Bytes of one line that are sent; of a longer one only so many, so that it is rejected as too large and its
 * beginning can be looked at in the dead letters. Bigger: memory; smaller than the largest entry: entries are
 * refused. An array of entries on one line has to fit too.
 */
export const LINE_BYTES = 4 * 1024 * 1024;

/**
 * Bytes of a file's first line that, with the topic, tell imports apart. Bigger: memory; smaller: files whose
 * long first lines begin alike are taken for one, and the second is refused.
 */
export const IDENTIFYING_BYTES = 1024 * 1024;

/** Bytes read from the file at a time. */
export const READ_BYTES = 256 * 1024;

/**
 * Packed zstd that is unpacked at a time. Bigger: a crafted file, 4 bytes of which unpack to 128 KiB, takes
 * more memory at once (4 KiB: 128 MiB); smaller: more turns.
 */
export const ZSTD_PUSH_BYTES = 4 * 1024;

/**
 * How long a service that can't be reached is tried again, unless --patience says otherwise. Bigger: a
 * mistake in the URL takes longer to tell; smaller: a restart of the service ends the import.
 */
export const PATIENCE_SECONDS = 60;

/** The first wait before a request is tried again; each is twice the one before, up to the longest. */
export const FIRST_WAIT_MS = 100;
export const LONGEST_WAIT_MS = 5_000;

/** The longest Retry-After that is heeded. Bigger: a proxy's idle word stops an import for hours. */
export const LONGEST_RETRY_AFTER_SECONDS = 60;

/**
 * How long one request may take, the wait for the disk included. Bigger: a connection that died silently is
 * waited for; smaller: a slow line's chunks never arrive.
 */
export const REQUEST_MS = 120_000;

/** How often the bar is drawn again, and how often a line is written where there is no terminal. */
export const BAR_MS = 200;
export const LINE_MS = 5_000;
