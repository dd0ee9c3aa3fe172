/** Decides where a partition is read from, and whether its log still connects to what was read before. */

import type { LogIdentity, OffsetGap } from '../log-source.js';

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
 * `stored` and `nextOffset` are the sink's; both null for a partition never read.
 *
 *   nextOffset …            log that was found              then
 *   none                    any                             from its start, no gap
 *   any                     another cluster or topic id     topic-recreated, from its start
 *   before its start        the same                        log-start-moved, from its start
 *   after its end           the same                        log-truncated, from its end: what lies before was read
 *   after its end           perhaps the same (no topic id)  topic-recreated, from its start: of the two it is by far
 *                                                           the likelier, and reading twice is the smaller harm
 *   within                  the same                        from there, no gap
 */
export function findReadStart(
  stored: LogIdentity | null,
  nextOffset: number | null,
  found: FoundLog,
): ReadStart {
  const isOther = stored !== null && areOtherLogs(stored, found.identity);
  const bind = stored === null || isOther || knowsMore(found.identity, stored);
  if (nextOffset === null) return { offset: found.startOffset, gap: null, bind };
  if (isOther) return { offset: found.startOffset, gap: 'topic-recreated', bind };
  if (nextOffset < found.startOffset) return { offset: found.startOffset, gap: 'log-start-moved', bind };
  if (nextOffset > found.endOffset) {
    const sameForSure = stored !== null && stored.topicId !== '' && found.identity.topicId !== '';
    return sameForSure
      ? { offset: found.endOffset, gap: 'log-truncated', bind }
      : { offset: found.startOffset, gap: 'topic-recreated', bind: true };
  }
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
