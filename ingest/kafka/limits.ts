/** Every cap of the Kafka source, each with its reason: what too big and too small would mean. */

import { assert } from '../../engine/assert.js';

/**
 * Kafka's own member time-out. Bigger: a member killed with SIGKILL holds up its successor for longer;
 * smaller: a pause of the process or the network costs a rebalance.
 */
export const SESSION_TIMEOUT_MS = 8_000;

/**
 * A member learns from its next heartbeat that the group joins again. Bigger: those that know already read nothing for as
 * long; smaller: more requests for the coordinator. A member that no records come to beats after each of its fetches only.
 */
export const HEARTBEAT_INTERVAL_MS = 250;

/**
 * How long the group waits for its members to join again. Bigger: a hung member stops everybody for longer;
 * smaller: a member in the middle of a big batch is thrown out (ours cuts its batch short and comes at once).
 */
export const REBALANCE_TIMEOUT_MS = 15_000;

/**
 * How long the broker holds a fetch that finds nothing. Bigger: stopping, heartbeats and a partition just
 * sought wait for it; smaller: idle partitions cost requests. New records are answered at once whatever it
 * is.
 */
export const FETCH_WAIT_MS = 500;

/**
 * Bytes of one partition in one fetch, as compressed by the producer. Bigger: more memory while a batch is
 * applied; smaller: more round trips when catching up. A single batch above it still comes whole.
 */
export const FETCH_PARTITION_BYTES = 1024 * 1024;

/**
 * Bytes of the log that are looked at for what may be hidden behind where it is read. Bigger: more is fetched in vain from a
 * compacted topic; smaller: less than the batches before and behind it.
 */
export const ORDER_LOOK_BYTES = 3 * FETCH_PARTITION_BYTES;

/** Bytes of one fetch over all partitions of a broker: bounds what may wait for the sink. */
export const FETCH_BYTES = 8 * 1024 * 1024;

/**
 * Partitions whose batches may wait for the sink at a time. Bigger: more of one fetch in flight; smaller: one
 * slow partition holds up the others of its fetch.
 */
export const CONCURRENT_PARTITIONS = 16;

/**
 * Fetches in a row that bring a batch with a wrong checksum before the partition holds. More: a damaged log
 * shows later; fewer: a byte that the network changed on its way is taken for a damaged log.
 */
export const UNSOUND_FETCHES = 3;

/**
 * How long a partition with a damaged batch is left alone before it is fetched again: another leader may have
 * it whole. Longer: it goes on later; shorter: more fetches for nothing.
 */
export const UNSOUND_RETRY_MS = 30_000;

/**
 * Partitions whose marks are compared with their logs at a time. More: a burst of small fetches at each
 * assignment; fewer: many partitions begin to be read one after another.
 */
export const MARK_CHECKS = 8;

/**
 * How old the client's view of topics and leaders may be. Bigger: partitions added to a topic are read later;
 * smaller: more metadata requests.
 */
export const METADATA_MAX_AGE_MS = 10_000;

/**
 * How long the broker may take to answer. Bigger: a silent broker is noticed later; smaller: a broker in a
 * long pause is given up.
 */
export const REQUEST_TIMEOUT_MS = 10_000;
export const CONNECTION_TIMEOUT_MS = 3_000;

/**
 * The client's own retries of one operation before it gives up and a new consumer is made. More: a lost
 * broker is reported later; fewer: a short outage costs a new consumer, which joins the group again.
 */
export const CLIENT_RETRIES = 6;
export const CLIENT_FIRST_RETRY_MS = 100;
export const CLIENT_MAX_RETRY_MS = 2_000;

/**
 * Bytes that one compressed batch may unpack to. Bigger: a malicious batch of a megabyte fills the memory;
 * smaller: honest batches become dead letters (a broker takes 1 MiB compressed by default; logs shrink ten-
 * to thirtyfold).
 */
export const UNPACKED_BATCH_BYTES = 128 * 1024 * 1024;

/**
 * The window of a frame of zstd, as its own decoder takes it unless told otherwise. Bigger: memory; smaller: what level
 * 22 wrote is refused.
 */
export const ZSTD_WINDOW_BYTES = 128 * 1024 * 1024;

/** Frames of zstd in a batch: producers write one. More: each costs memory of its own; fewer: no harm known. */
export const ZSTD_FRAME_LIMIT = 64;

/**
 * Bytes that fzstd may move for a batch: its whole window with each block, some 10 GB a second. More: the thread stands
 * still for longer; fewer: large batches of level 22 are refused.
 */
export const ZSTD_MOVED_BYTES = 64 * 1024 ** 3;

/**
 * Bytes that may be unpacked and not applied, of all fetches together, before no further batch is unpacked.
 * Bigger: a fetch of highly compressed batches takes that memory, and a batch more; smaller: catching up
 * takes more fetches.
 */
export const UNPACKED_BYTES = 64 * 1024 * 1024;

/**
 * What a record costs as an object, beside its bytes. Smaller than it is: batches of tiny records fill the
 * memory.
 */
export const RECORD_COST_BYTES = 512;

/**
 * Records of one batch. More: kafkajs hands them over as arguments of one call, of which a thread's stack
 * takes some 120,000; fewer: honest batches become dead letters (a megabyte of compressed logs has some ten
 * thousand).
 */
export const BATCH_RECORDS = 100_000;

/**
 * How long a fetch waits for what others have unpacked to be applied. Longer: a slow sink holds up all
 * brokers; shorter: each fetch unpacks a batch above the bound.
 */
export const UNPACKED_WAIT_MS = 10_000;

/**
 * After how long what was unpacked and is not with the sink counts as lost, as of a broker that is gone.
 * Longer: it holds up the others, up to the session time-out; shorter: what a busy machine is about to hand
 * over is taken for lost, and more is unpacked.
 */
export const UNPACKED_LOST_MS = 2_000;

/**
 * How often topics, offsets and progress are looked at. Bigger: a missing topic, a recreated one and a stall
 * are noticed later; smaller: more requests (two small ones a broker).
 */
export const POLL_INTERVAL_MS = 2_000;

/**
 * Ends of a partition's log that were heard and are not reached yet, one a poll, before every second one is
 * forgotten. More: memory for each partition that is behind; fewer: the age of answers is told coarser while
 * catching up.
 */
export const HEARD_ENDS = 64;

/**
 * How long records may wait without progress, or the consumer give no sign of life, before it is restarted.
 * Bigger: a stuck client is noticed later; smaller: a slow rebalance or broker start is taken for one.
 */
export const STALL_MS = 30_000;

/**
 * Consumers restarted for the same stall before the process gives up. More: an unreadable partition goes
 * unnoticed for longer; fewer: a passing fault of the broker ends the process.
 */
export const STALL_RESTARTS = 4;

/** The wait before a consumer that failed is restarted: doubled each time, up to the second. */
export const RESTART_FIRST_MS = 200;
export const RESTART_MAX_MS = 5_000;

/**
 * How long a consumer must have lasted after one that was refused before all counts as allowed. Bigger:
 * /readyz says no for longer than need be; smaller: it says yes in between, where one of several brokers
 * answers before another refuses.
 */
export const REFUSAL_ENDS_MS = 6_000;

/**
 * How long leaving the group may take. Bigger: a shutdown beside a dead broker takes longer; smaller: the
 * group must wait for the session time-out to learn that this member is gone.
 */
export const STOP_TIMEOUT_MS = 5_000;

/**
 * How long removing the previous process's member from the group may take. Bigger: a group that does not
 * answer is joined later; smaller: the group waits for that member's session time-out.
 */
export const DISMISS_TIMEOUT_MS = 3_000;

/**
 * Partitions that members copy at a time from others of their zone, so that each has as many. More: a rebalance follows
 * fewer of them, and copies share the rate; fewer: it takes longer until a new member has its share.
 */
export const MOVES_AT_ONCE = 2;

/**
 * How often the groups of all zones are described, for who the members are. Longer: a member that has come, or whose
 * address has changed, is asked later; shorter: a request a zone more often.
 */
export const MEMBERS_POLL_MS = 5_000;

/**
 * Bytes of what a member says of itself when it joins: the coordinator keeps a group in one record of at most 1 MB, and
 * tells its leader all of it. More: large groups can't be joined; fewer: a leader knows less of who holds what.
 */
export const MEMBER_DATA_BYTES = 8 * 1024;

/** How long one mirror of the offsets may take before the next may start. */
export const COMMIT_TIMEOUT_MS = 10_000;

/**
 * The same message of the client is logged once in this time. Bigger: news comes late; smaller: a dead broker
 * fills the log.
 */
export const REPEATED_MESSAGE_MS = 10_000;

/**
 * Bytes of values in one produce request of dead letters: below the broker's default limit of a batch (1 MiB)
 * with its headers. Bigger: batches are refused and halved; smaller: more round trips.
 */
export const DEAD_LETTER_REQUEST_BYTES = 768 * 1024;

/**
 * Bytes of the value of one dead letter; the rest of a larger one is left out. More: a slow line takes longer than a request
 * may, and from 100 MiB on brokers close the connection (socket.request.max.bytes), so that it can't ever be written;
 * fewer: less to look at where the topic takes large messages.
 */
export const DEAD_LETTER_VALUE_BYTES = 16 * 1024 * 1024;

/** Letters of one produce request: bounds what many tiny or empty letters with their headers add up to. */
export const DEAD_LETTER_REQUEST_COUNT = 1_000;

/**
 * Replicas of a dead-letter topic made where the brokers' default can't be met: what Kafka advises, if there
 * are as many brokers.
 */
export const DEAD_LETTER_REPLICATION = 3;

/** The time settings that tests shorten; the values in use are the constants above. */
export const KAFKA_TIMING = {
  pollIntervalMs: POLL_INTERVAL_MS,
  stallMs: STALL_MS,
  sessionTimeoutMs: SESSION_TIMEOUT_MS,
  heartbeatIntervalMs: HEARTBEAT_INTERVAL_MS,
  metadataMaxAgeMs: METADATA_MAX_AGE_MS,
  stopTimeoutMs: STOP_TIMEOUT_MS,
  refusalEndsMs: REFUSAL_ENDS_MS,
};
export type KafkaTiming = Readonly<typeof KAFKA_TIMING>;

/**
 * What a connection to a broker reads into at a time. Bigger: memory for each connection; smaller: more
 * reads.
 */
export const SOCKET_READ_BYTES = 64 * 1024;

/**
 * The longest response that is put together in one buffer as it comes. Bigger: memory that a broken broker
 * may ask for by a length alone; smaller: full fetches are joined from pieces by kafkajs.
 */
export const JOINED_RESPONSE_BYTES = 2 * FETCH_BYTES;

assert(3 * HEARTBEAT_INTERVAL_MS <= SESSION_TIMEOUT_MS, 'two heartbeats may be lost');
assert(CLIENT_FIRST_RETRY_MS <= CLIENT_MAX_RETRY_MS && RESTART_FIRST_MS <= RESTART_MAX_MS, 'waits grow');
assert(UNPACKED_LOST_MS < UNPACKED_WAIT_MS, 'what is lost is known before others give up waiting for it');
assert(FETCH_PARTITION_BYTES <= FETCH_BYTES, 'a fetch brings one partition at least');
