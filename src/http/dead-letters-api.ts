/**
 * `GET /api/dead-letters`: what could not be used, with its reason, the newest first; `limit` says how many
 * letters at most (1 to 1000, 100 where it is left out; fewer where they are large), `before` the key of a letter to go
 * on behind. Takes a query key that is not limited to projects.
 */

import * as z from 'zod';
import { CallParameters, nameText } from '../endpoints/call-parameters.js';
import type { StoredLetter } from '../store/dead-letter-store.js';
import type { Page } from './api.js';
import type { Grant } from './auth.js';
import { invalidArgument, jsonAnswer, notFound, permissionDenied } from './errors.js';
import { decodeQuery } from './query/query-string.js';
import type { HttpAnswer, HttpRequest } from './server/server.js';

export const DEAD_LETTERS_PATH = '/api/dead-letters';

const MOST_LETTERS = 1000;
const LETTERS = 100;
/** Of samples, in one answer. More: it is long in the making; fewer: more questions for all of them. */
const SAMPLES_BYTES = 512 * 1024;

export const deadLettersCall = new CallParameters(
  {
    limit: z
      .string()
      .regex(/^(?:[1-9][0-9]{0,2}|1000)$/, `must be a whole number from 1 to ${MOST_LETTERS}`)
      .optional()
      .meta({
        description: `How many letters at most, 1 to ${MOST_LETTERS}; ${LETTERS} where it is left out; an answer has fewer where their samples are large.`,
      }),
    before: nameText('The `next` of the answer to go on behind.').optional(),
  },
  ({ limit, before }) => ({ limit: Number(limit ?? LETTERS), before: before ?? null }),
);

export interface DeadLettersPort {
  /** The newest first; `before`: only those before the letter of that key. None may be written meanwhile. */
  letters(before: string | null): Iterable<StoredLetter>;
}

/** `port`: null when they go to a topic of Kafka, which is named then. */
export function deadLettersPage(port: DeadLettersPort | null, topic: string): Page {
  return {
    needsKey: true,
    answer: (request, _nowUs, grant) => answer(port, topic, request, grant!),
  };
}

function answer(
  port: DeadLettersPort | null,
  topic: string,
  { rawQuery }: HttpRequest,
  grant: Grant,
): HttpAnswer {
  if (grant.projects !== null)
    return permissionDenied('this key is limited to some projects, and dead letters are of all of them');
  if (port === null) return notFound(`dead letters are in Kafka's topic ${topic}`);
  const parsed = deadLettersCall.parse(decodeQuery(rawQuery));
  if (!parsed.ok) return invalidArgument(parsed.problems);
  const { limit, before } = parsed.parameters;
  const letters: object[] = [];
  let last: string | null = null;
  let hasMore = false;
  let sampleBytes = 0;
  for (const { key, timeMs, samples, ...letter } of port.letters(before)) {
    hasMore = letters.length === limit || sampleBytes >= SAMPLES_BYTES;
    if (hasMore) break;
    last = key;
    sampleBytes += samples.reduce((sum, { value }) => sum + value.length, 0);
    letters.push({
      time: new Date(timeMs).toISOString(),
      topic: letter.topic,
      partition: letter.partition,
      reason: letter.reason,
      count: letter.count,
      samples: samples.map(({ value, ...sample }) => ({ ...sample, text: new TextDecoder().decode(value) })),
    });
  }
  return jsonAnswer({ letters, next: hasMore ? last : null });
}
