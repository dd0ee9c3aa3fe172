/** Every cap of the engine, each with its reason: what too big and too small would mean. */

import { US_PER_HOUR } from './time.js';

/** `logs.all` returns at most this many rows. Source: SPEC, `logs.all`, rule 3. */
export const LOG_ROW_LIMIT = 100;

/** How far ahead of now an entry may lie. Bigger: a producer's wrong clock fills rings that no query reads for
 * long; smaller: producers with a slightly fast clock lose entries to the dead letters. */
export const MAX_FUTURE_US = US_PER_HOUR;

/** Values a bucket keeps exactly before it turns to a digest. Bigger: more memory (8 bytes a value and level)
 * and slower answers; smaller: approximate percentiles where people still count by hand. */
export const EXACT_VALUE_LIMIT = 512;

/** Bytes of rows after which a block is closed. Bigger: compresses better, but one row of a sparse project costs more
 * to read back; smaller: more blocks and worse compression. */
export const BLOCK_TARGET_BYTES = 64 * 1024;

/** How long after its hour a row partition keeps its last block in memory for rows that come late. */
export const ROW_PARTITION_OPEN_US = US_PER_HOUR;
