/** Told of what was taken in, for the metrics: once a batch, not once a record. */

import type { LogSink, PartitionKey } from '../../ingest/log-source.js';

export interface IngestMeter {
  /**
   * A batch of a partition is in the answers. `durationUs` from its first record on, turns of other work
   * included; `lastRecordMs` is its last record's own timestamp, null when no record of the partition came
   * yet.
   */
  applied(key: PartitionKey, durationUs: number, lastRecordMs: number | null): void;
}

/** The same sink, measured; decoding is part of it. */
export function meteredSink(sink: LogSink, meter: IngestMeter, monotonicUs: () => number): LogSink {
  return {
    nextOffset: (key) => sink.nextOffset(key),
    marks: (key) => sink.marks(key),
    identity: (key) => sink.identity(key),
    setIdentity: (key, identity) => sink.setIdentity(key, identity),
    reportGap: (gap) => sink.reportGap(gap),
    apply: async (batch, isCurrent) => {
      const startUs = monotonicUs();
      await sink.apply(batch, isCurrent);
      const last = batch.records.at(-1);
      if (last !== undefined) meter.applied(batch, monotonicUs() - startUs, last.timestampMs);
    },
  };
}
