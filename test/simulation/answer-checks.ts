/** Compares what a simulated life answers with the model; what differs comes as a sentence. */

import type { UsageView } from '../../engine/usage/usage-view.js';
import type { Shards } from '../../src/service/shards.js';
import type { DeadLetterTable } from '../../src/store/dead-letter-table.js';
import type { Store } from '../../src/store/store.js';
import { countsText, eventsProblem, rowsProblem, statsProblem } from '../model/answers.js';
import {
  answerEvents,
  answerLogs,
  answerStats,
  beginCounts,
  type StatsMemo,
} from '../model/engine-answers.js';
import type { Question } from '../model/history.js';
import type { Model } from '../model/model.js';
import type { ModelReader } from '../model/model-reader.js';

export interface AnsweringPorts {
  readonly shards: Shards;
  readonly store: Store;
}

export function answerProblem(
  stats: StatsMemo,
  question: Question,
  model: Model,
  parts: AnsweringPorts,
  nowUs: number,
): string | null {
  const problem = differenceOf(stats, question, model, parts, nowUs);
  return problem && `${JSON.stringify(question)}: ${problem}`;
}

function differenceOf(
  stats: StatsMemo,
  question: Question,
  model: Model,
  { shards, store }: AnsweringPorts,
  nowUs: number,
): string | null {
  const { edge, relay } = shards;
  switch (question.ask) {
    case 'logs':
      return rowsProblem(model.logs(question, nowUs), answerLogs(edge, question, nowUs));
    case 'stats':
      return statsProblem(model.invocationStats(question, nowUs), answerStats(stats, relay, question, nowUs));
    case 'events':
      return eventsProblem(model.eventCounts(question, nowUs), answerEvents(edge, question, nowUs));
    case 'counts': {
      const blocksOf = (view: UsageView) => store.reader(shards.scopeOf(view));
      const rows = beginCounts(edge, question, nowUs, blocksOf)();
      const answer = countsText(rows.map(({ bucketStartUs: startUs, counts }) => ({ startUs, counts })));
      const expected = countsText(model.apiCounts(question, nowUs));
      return answer === expected ? null : `is answered\n  ${answer}\nexpected\n  ${expected}`;
    }
  }
}

export function countersProblem({ partitions }: ModelReader, shards: Shards): string | null {
  for (const { topic, partition, applied, rejected } of partitions) {
    const shard = shards.of({ topic, partition });
    const received = [...rejected.values()].reduce((sum, count) => sum + count, applied);
    if (shard.applied !== applied || shard.received !== received)
      return `${topic}/${partition} has received ${shard.received}, applied ${shard.applied}; expected ${received}, ${applied}`;
  }
  return null;
}

/**
 * Judged by the clock (then `isExact` is false), a record may have become a dead letter before a crash and be
 * taken, or judged otherwise, after it.
 */
export function lettersProblem(reader: ModelReader, table: DeadLetterTable, isExact: boolean): string | null {
  const written = new Set<string>();
  for (const { topic, partition, offset, index, reason } of table.letters())
    written.add(`${topic}/${partition}/${offset}/${index}${isExact ? ` ${reason}` : ''}`);
  const expected = new Set([...reader.letters].map((letter) => (isExact ? letter : letter.split(' ')[0])));
  const missing = [...expected].filter((letter) => !written.has(letter));
  if (missing.length > 0) return `there is no dead letter ${missing.join(', ')}`;
  if (isExact && written.size > expected.size)
    return `there are ${written.size} dead letters, expected ${expected.size}`;
  return null;
}
