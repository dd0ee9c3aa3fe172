/** Every cap of the store, each with its reason: what too big and too small would mean. */

/**
 * Below this a segment is stored as it is, and wrapped where it stands. Bigger: the serving thread copies and
 * checksums more; smaller: going to the storage thread costs more than compressing gains.
 */
export const COMPRESS_FROM_BYTES = 1024;

/**
 * Bytes that go to the storage thread at a time; two such arenas take turns. Bigger: filling one holds up
 * queries for longer than some tens of microseconds; smaller: a commit of many blocks takes more turns.
 */
export const ARENA_BYTES = 256 * 1024;

/**
 * How hard is compressed what is soon written again: blocks of the last hours, segments. Higher: 3 takes
 * twice the time for 1 % less; lower: -1 leaves a third more bytes for little less time.
 */
export const QUICK_ZSTD_LEVEL = 1;

/**
 * Bytes that are compressed at a time, in a millisecond or two. Bigger: a POST waits for longer than a slice; smaller:
 * what repeats across pieces is stored again.
 */
export const COMPRESS_PIECE_BYTES = 512 * 1024;

/**
 * How hard blocks are compressed that live for months. Higher: from 5 on every block pays for the dictionary,
 * four times the time for 4 % fewer bytes; lower: 1 saves a fifth of the time for 1 % more.
 */
export const SORTED_ZSTD_LEVEL = 3;

/**
 * Bytes that compression knows of a file before its first block, stored in a tenth of them. Bigger: 96 KB
 * save 1 % of a row for a quarter more time, and what reads one block from a cold disk reads them first;
 * smaller: 48 and 32 KB cost 1 and 4 % and save a sixth and a quarter of the time.
 */
export const DICTIONARY_BYTES = 64 * 1024;

/**
 * Dictionaries that a thread keeps at hand for compression. More: 64 KB each; fewer: a day's compaction,
 * which reads one of each hour, copies them again and again.
 */
export const WASM_DICTIONARY_COUNT = 32;

/**
 * How long the storage thread goes on with a compaction before it looks for a commit, and with that before it looks for
 * a POST, ms. Longer: they wait; shorter: looking costs more than the work.
 */
export const STORAGE_SLICE_MS = 2;

/**
 * Bytes that are read at a time, up to the end of the block that is asked for: what comes before it is asked
 * for next. Bigger: a query for few rows reads more than it needs; smaller: a hundred rows take more reads,
 * each of which a cold disk lets wait. A hundred rows have about 34 KB.
 */
export const READ_WINDOW_BYTES = 48 * 1024;

/**
 * Row files that a commit has open at a time; more are synced and closed on the way. Bigger: a backfill of
 * many hours runs out of file descriptors; smaller: files are opened again within a commit.
 */
export const APPEND_FILE_LIMIT = 64;

/**
 * Bytes of one file that are synced on the storage thread itself. More: a POST waits until a commit's are on the disk;
 * fewer: a small POST waits for another thread to take the call and to answer.
 */
export const INLINE_SYNC_BYTES = 256 * 1024;

/**
 * Row files that are held open for reading. Bigger: file descriptors, of which a process often has 1024;
 * smaller: queries open files again and again.
 */
export const OPEN_FILE_LIMIT = 256;

/**
 * With fewer frames the last record of a file is written again with the next ones: a file that grows for an hour would
 * have thousands. Bigger: each commit writes more of the record again; smaller: more keys.
 */
export const RECORD_FRAMES = 16;

/**
 * Bytes that a thread reads of a file at a time whose blocks it goes through. Bigger: more than it gets to in
 * its turn; smaller: more reads.
 */
export const STRETCH_BYTES = 256 * 1024;

/**
 * Free bytes from which a disk that was full is written to again. Bigger: a small disk is never used up;
 * smaller: writes fail again at once.
 */
export const DISK_ROOM_BYTES = 4 * 1024 * 1024;

/**
 * How often a full disk is looked at, ms. Longer: ingest stays paused for longer than it must; shorter: no
 * harm.
 */
export const DISK_CHECK_MS = 250;

/**
 * Looks after which a write is tried although no room was seen. More: a quota that was raised is noticed
 * later; fewer: tries in vain.
 */
export const DISK_TRY_ANYWAY_CHECKS = 40;

/**
 * Bytes of no use in a journal from which a checkpoint is due, however small the rest is. Bigger: a start reads
 * more that it does not need; smaller: the files of a small store are written again and again.
 */
export const CHECKPOINT_LEAST_BYTES = 4 * 1024 * 1024;

/**
 * Of what a partition has on disk so much may be of no use before a checkpoint is due. Bigger: more of the disk
 * is of no use; smaller: more is written again than comes in.
 */
export const CHECKPOINT_SHARE = 0.15;

/**
 * A checkpoint of a table is due once the bytes of no use are so many times those that are of use. Bigger: more of the
 * disk is of no use; smaller: the embedded log is written again and again while its entries are not applied.
 */
export const TABLE_CHECKPOINT_SHARE = 1;

/**
 * Bytes of a checkpoint that are written at a time. Bigger: commits wait for a frame; smaller: more frames than
 * a start needs to read.
 */
export const CHECKPOINT_FRAME_BYTES = 128 * 1024;

/**
 * Bytes of a checkpoint after which it is synced. Bigger: a commit's sync waits until the system has written
 * them; smaller: syncs are most of the work.
 */
export const CHECKPOINT_SYNC_BYTES = 4 * 1024 * 1024;

/**
 * Files of journals that are held open for reading. Bigger: file descriptors; smaller: loading a partition
 * whose journal has several opens them again and again.
 */
export const OPEN_JOURNAL_LIMIT = 8;

/**
 * Bytes of a journal that are read at least at a time. Bigger: values that are not next to each other are read
 * with much between; smaller: more reads for those that are.
 */
export const JOURNAL_STRETCH_BYTES = 16 * 1024;

/**
 * How far the storage thread gives way to the serving thread where they share a core, 0 to 19. Bigger: commits and POSTs
 * take longer on a busy machine (beside 20 attacking clients the slowest hundredth of POSTs took 21 ms with 5, 19 with
 * 2); smaller: a compaction delays requests by turns of the scheduler.
 */
export const STORAGE_THREAD_NICENESS = 2;

/**
 * Bytes of a Unix socket's path, by the system that has the fewest (macOS, one for the end). More: systems
 * cut it off or refuse it; fewer: paths that would do go a detour.
 */
export const SOCKET_PATH_BYTES = 103;

/**
 * How long a process that starts waits for another to say whether it holds the directory, ms; one that says
 * nothing then does. Longer: a start beside a stopped process says so later; shorter: on a busy machine two
 * that start at once may both give way.
 */
export const LOCK_WAIT_MS = 5000;

/**
 * Bytes of what is written that are copied and checksummed in one turn of the event loop. Bigger: a query
 * waits for longer than half a millisecond; smaller: turns cost more than the work in them.
 */
export const WRAP_BYTES = 512 * 1024;

/**
 * Bytes of posted records, and records, that the embedded log keeps as one. More: damage takes more of them
 * with it, and one that is read takes more memory; fewer: each takes more of the disk and of memory, and glibc
 * does not give back to the system what is below its MALLOC_MMAP_THRESHOLD_.
 */
export const LOG_CHUNK_BYTES = 128 * 1024;
export const LOG_CHUNK_RECORDS = 4096;

/**
 * Bytes of records that are staged in one write. Bigger: small POSTs wait for longer; smaller: a large one
 * waits for more syncs of the disk.
 */
export const STAGE_BYTES = 128 * 1024;

/**
 * Files that are synced or removed at a time. More: with Node's four threads a packed answer waits for all of them;
 * fewer: a commit of many partitions takes longer where a sync does.
 */
export const DISK_LANES = 3;

/** Bytes of a file that a backup copies, or a start in one checks, at a time. More: more memory; fewer: more calls. */
export const BACKUP_STRETCH_BYTES = 1024 * 1024;

/**
 * How much later it is noted which commits the journals had, µs. Longer: damage to the end of a journal of a
 * store that was not closed is taken for a crash; shorter: a copy that takes as long is refused.
 */
export const HEADS_DELAY_US = 60_000_000;

/**
 * Dead letters that are kept without Kafka: their bytes, and for how long, ms. More: a sender of bad entries
 * fills the disk; fewer: what was wrong last week is gone.
 */
export const LETTERS_BYTES = 64 * 1024 * 1024;
export const LETTER_LIFE_MS = 30 * 24 * 3600 * 1000;

/** Elements that a dead letter shows, and bytes of each. More: a bad POST takes more of what all may; fewer: what is wrong doesn't show. */
export const LETTER_SAMPLES = 10;
export const LETTER_SAMPLE_BYTES = 4096;

/**
 * How long elements are added to a letter that has more than it shows, ms. Longer: different bad POSTs share a
 * letter; shorter: a POST of a hundred thousand bad elements, which are applied a part at a time, has several.
 */
export const LETTER_GROUP_MS = 60_000;
