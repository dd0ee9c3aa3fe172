/** Where reading starts and what is a gap, case by case. */

import { expect, test } from 'vitest';
import { findReadStart } from '../../ingest/kafka/consumer/read-start.js';

/**
 * `cluster/topic` for an identity, '' for none; `start..end` for the log; `offset gap bind` expected. Of the
 * marks, the offset of the newest that matches, `!` behind it where a newer one differs.
 */
function check(
  stored: string,
  next: number | null,
  found: string,
  log: string,
  expected: string,
  marks = '',
): void {
  const identity = (text: string) => {
    const [clusterId, topicId] = text.split('/');
    return { clusterId, topicId };
  };
  const [startOffset, endOffset] = log.split('..').map(Number);
  const matched = /[0-9]+/.exec(marks);
  const start = findReadStart(
    stored === '' ? null : identity(stored),
    next,
    { identity: identity(found), startOffset, endOffset },
    { matchedOffset: matched === null ? null : Number(matched[0]), differs: marks.endsWith('!') },
  );
  expect([start.offset, start.gap ?? 'connects', start.bind ? 'bind' : 'bound'].join(' ')).toBe(expected);
}

test('a partition never read', () => {
  check('', null, 'c/t', '0..10', '0 connects bind');
  check('', null, 'c/t', '7..10', '7 connects bind');
  // Bound, but nothing was read of it before the topic was made again.
  check('c/t', null, 'c/u', '7..10', '7 connects bind');
});

test('an offset within the log, ends included', () => {
  check('c/t', 5, 'c/t', '0..10', '5 connects bound');
  check('c/t', 0, 'c/t', '0..10', '0 connects bound');
  check('c/t', 10, 'c/t', '0..10', '10 connects bound');
  check('', 5, 'c/t', '0..10', '5 connects bind');
});

test('a log that starts after the offset', () => {
  check('c/t', 4, 'c/t', '5..10', '5 log-start-moved bound');
  check('c/t', 5, 'c/t', '5..10', '5 connects bound');
  check('', 4, 'c/t', '5..10', '5 log-start-moved bind');
});

test('a log that ends before the offset', () => {
  check('c/t', 11, 'c/t', '0..10', '10 log-truncated bound');
  // Without topic ids a topic made again is the likelier reason.
  check('c/', 11, 'c/', '0..10', '0 topic-recreated bind');
  check('c/t', 11, 'c/', '3..10', '3 topic-recreated bind');
  check('', 11, 'c/t', '0..10', '0 topic-recreated bind');
});

test('another log, wherever the offset lies', () => {
  check('c/t', 5, 'c/u', '0..10', '0 topic-recreated bind');
  check('c/t', 11, 'c/u', '0..10', '0 topic-recreated bind');
  check('c/t', 0, 'd/t', '2..10', '2 topic-recreated bind');
});

test('a log that has other records, from where it has the same or from its start', () => {
  check('c/t', 9, 'c/t', '0..20', '9 connects bound', '8');
  check('c/t', 9, 'c/t', '0..20', '6 log-diverged bound', '5!');
  check('c/t', 9, 'c/t', '2..20', '2 log-diverged bound', '!');
  check('c/', 9, 'c/', '2..20', '2 log-diverged bound', '!');
  check('c/t', 30, 'c/t', '0..20', '16 log-truncated bound', '15');
  check('c/t', 30, 'c/t', '0..20', '16 log-truncated bound', '15!');
  check('c/t', 30, 'c/t', '2..20', '2 log-truncated bound', '!');
  check('c/', 30, 'c/', '0..20', '16 log-truncated bound', '15');
  check('c/t', 9, 'c/u', '0..20', '0 topic-recreated bind', '5!');
  check('c/t', 9, 'c/u', '0..20', '0 topic-recreated bind', '8');
  check('c/t', 1, 'c/t', '2..20', '2 log-start-moved bound');
});

test('an id that is not known is no other id, and is filled in when it becomes known', () => {
  check('c/', 5, 'c/t', '0..10', '5 connects bind');
  check('c/t', 5, 'c/', '0..10', '5 connects bound');
  check('/t', 5, 'c/t', '0..10', '5 connects bind');
});
