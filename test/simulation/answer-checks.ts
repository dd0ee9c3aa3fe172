/** Compares what a simulated life answers with the model; what differs comes as a sentence. */

import type { UsageView } from '../../engine/usage/usage-view.js';
import type { Shards } from '../../src/service/shards.js';
import { type DeadLetterStore, order } from '../../src/store/dead-letter-store.js';
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
export function lettersProblem(reader: ModelReader, store: DeadLetterStore, isExact: boolean): string | null {
  const letters = [...store.letters()];
  const isKept = (letter: string): boolean => {
    const [, topic, partition, offset, index, reason] = /^(.*)\/(\d+)\/(\d+)\/(\d+) (.*)$/.exec(letter)!;
    const place = { offset: Number(offset), index: Number(index) };
    return letters.some(
      (kept) =>
        kept.topic === topic &&
        kept.partition === Number(partition) &&
        (!isExact || kept.reason === reason) &&
        order(kept.first, place) <= 0 &&
        order(place, kept.last) <= 0,
    );
  };
  const missing = [...reader.letters].filter((letter) => !isKept(letter));
  if (missing.length > 0) return `there is no dead letter ${missing.join(', ')}`;
  const count = letters.reduce((sum, kept) => sum + kept.count, 0);
  if (isExact && count !== reader.letters.size)
    return `there are ${count} dead letters, expected ${reader.letters.size}`;
  return null;
}
