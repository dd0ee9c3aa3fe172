/** Decides where a partition is read from, and whether its log still connects to what was read before. */

import type { LogIdentity, OffsetGap } from '../../log-source.js';
import { type MarkFindings, SILENT } from './mark-check.js';

export interface ReadStart {
  readonly offset: number;
  /** Why the log doesn't connect, or null when it does. */
  readonly gap: OffsetGap['reason'] | null;
  /** Whether the partition must be bound to the log that was found. */
  readonly bind: boolean;
}

/** The log that was found; offsets as in LogFound. */
interface FoundLog {
  readonly identity: LogIdentity;
  readonly startOffset: number;
  readonly endOffset: number;
}

/**
 * `stored` and `nextOffset` are the sink's; both null for a partition never read. A log that has other
 * records is read again after the newest mark that matches, or from its start where none does: some of its
 * records may be the same, and reading twice does less harm than missing some.
 *
 *   nextOffset …       log that was found              marks          then
 *   none               any                                            from its start, no gap
 *   any                another cluster or topic id    any            topic-recreated, from its start: the newest marks may
 *                                                                    be of records of it that were read before it was noticed
 *   before its start   the same                                       log-start-moved, from its start
 *   after its end      the same                        some there     log-truncated, behind the newest that matches
 *   after its end      the same                        none there     log-truncated, from its end: what lies before was read
 *   after its end      perhaps the same (no topic id)  none there     topic-recreated, from its start: by far the likelier
 *   within             the same                        one differs    log-diverged, behind the newest that matches
 *   within             the same                        none differs   from there, no gap
 */
export function findReadStart(
  stored: LogIdentity | null,
  nextOffset: number | null,
  found: FoundLog,
  marks: MarkFindings = SILENT,
): ReadStart {
  const isOther = stored !== null && areOtherLogs(stored, found.identity);
  const bind = stored === null || isOther || knowsMore(found.identity, stored);
  if (nextOffset === null) return { offset: found.startOffset, gap: null, bind };
  if (isOther) return { offset: found.startOffset, gap: 'topic-recreated', bind };
  const sameUntil = marks.matchedOffset === null ? found.startOffset : marks.matchedOffset + 1;
  if (nextOffset < found.startOffset) return { offset: found.startOffset, gap: 'log-start-moved', bind };
  if (nextOffset > found.endOffset) {
    if (marks.differs || marks.matchedOffset !== null)
      return { offset: sameUntil, gap: 'log-truncated', bind };
    const sameForSure = stored !== null && stored.topicId !== '' && found.identity.topicId !== '';
    return sameForSure
      ? { offset: found.endOffset, gap: 'log-truncated', bind }
      : { offset: found.startOffset, gap: 'topic-recreated', bind: true };
  }
  if (marks.differs) return { offset: sameUntil, gap: 'log-diverged', bind };
  return { offset: nextOffset, gap: null, bind };
}

/** Whether these are surely different logs; an id that is not known ('') tells nothing. */
export function areOtherLogs(a: LogIdentity, b: LogIdentity): boolean {
  const differ = (one: string, other: string) => one !== '' && other !== '' && one !== other;
  return differ(a.clusterId, b.clusterId) || differ(a.topicId, b.topicId);
}

function knowsMore(found: LogIdentity, stored: LogIdentity): boolean {
  return (
    (stored.clusterId === '' && found.clusterId !== '') || (stored.topicId === '' && found.topicId !== '')
  );
}
