/** Whether a log still has the records that were read from it. */

import type { LogSink, PartitionKey } from '../../log-source.js';
import { partitionId } from '../../partition-id.js';
import { isSameMark, type Mark } from '../../record-marks.js';
import type { ClusterState, ClusterView } from '../cluster/cluster-view.js';
import { MARK_CHECKS, ORDER_LOOK_BYTES } from '../limits.js';
import { isInPlace } from './fetch-before.js';

/** What the log says about marks. */
export interface MarkFindings {
  /** Of the newest mark whose record is still there, or null. */
  readonly matchedOffset: number | null;
  /** Whether another record is where a newer mark is. */
  readonly differs: boolean;
}

/** Nothing was marked, or the log has no records there any more. */
export const SILENT: MarkFindings = { matchedOffset: null, differs: false };

/**
 * From the newest mark back to the first that matches: usually one request. `markAt` resolves to null where
 * the log has no record at the offset (it has expired, was compacted away, or is a control record), which
 * says nothing; nor does another record say anything where `isInPlace` is false: it belongs elsewhere.
 */
async function checkMarks(
  oldestFirst: readonly Mark[],
  markAt: (offset: number) => Promise<Mark | null>,
  isInPlace: (offset: number) => Promise<boolean>,
): Promise<MarkFindings> {
  let differs = false;
  for (let i = oldestFirst.length - 1; i >= 0; i--) {
    const mark = oldestFirst[i];
    const found = await markAt(mark.offset);
    if (found === null) continue;
    if (isSameMark(found, mark)) return { matchedOffset: mark.offset, differs };
    differs ||= await isInPlace(mark.offset);
  }
  return { matchedOffset: null, differs };
}

/**
 * Of partitions of which nothing is applied meanwhile, by partitionId. Those whose logs can't be asked are
 * logged and left out.
 */
export async function checkPartitions(
  keys: readonly PartitionKey[],
  state: ClusterState,
  sink: Pick<LogSink, 'marks'>,
  view: Pick<ClusterView, 'markAt' | 'rawFetch'>,
  onFailed: (key: PartitionKey, error: unknown) => void,
): Promise<Map<string, MarkFindings>> {
  const findings = new Map<string, MarkFindings>();
  const left = [...keys];
  const checkNext = async () => {
    for (let key = left.pop(); key !== undefined; key = left.pop()) {
      const of = key;
      const bounds = state.logs.get(partitionId(key))?.bounds ?? null;
      if (bounds === null) continue;
      const { startOffset, endOffset } = bounds;
      const within = sink.marks(key).filter(({ offset }) => offset >= startOffset && offset < endOffset);
      try {
        const fetchAt = (offset: number) => view.rawFetch(of, offset, ORDER_LOOK_BYTES);
        const found = await checkMarks(
          within,
          (offset) => view.markAt(of, offset),
          (offset) => isInPlace(fetchAt, offset, offset),
        );
        findings.set(partitionId(key), found);
      } catch (error) {
        onFailed(key, error);
      }
    }
  };
  await Promise.all(Array.from({ length: MARK_CHECKS }, checkNext));
  return findings;
}
