/** The match thread: compiles expressions of RE2's dialect and searches batches of URLs for them. */

import { isAscii } from 'node:buffer';
import { parentPort } from 'node:worker_threads';
import { RE2JS, RE2JSException } from 're2js';
import { monotonicUs } from '../system-clock.js';
import { giveWayToServing } from '../thread-priority.js';
import { COMPILED_EXPRESSION_LIMIT, MATCH_THREAD_NICENESS, PROGRAM_SIZE_LIMIT } from './limits.js';
import type { MatchReply, MatchRequest } from './match-protocol.js';

/** In order of use, the latest at the end. */
const compiled = new Map<string, RE2JS>();

parentPort!.on('message', (request: MatchRequest) => {
  const reply = answer(request);
  parentPort!.postMessage(reply, reply.outcome === 'matched' ? [reply.verdicts.buffer] : []);
});

giveWayToServing(MATCH_THREAD_NICENESS);
parentPort!.postMessage({ outcome: 'ready' } satisfies MatchReply);

function answer({ expression, bytes, ends }: MatchRequest): MatchReply {
  const startUs = monotonicUs();
  try {
    const pattern = compile(expression);
    if (pattern.programSize() > PROGRAM_SIZE_LIMIT) {
      compiled.delete(expression);
      const message = `compiles to ${pattern.programSize()} instructions, the limit is ${PROGRAM_SIZE_LIMIT}`;
      return { outcome: 'refused', kind: 'too-complex', message };
    }
    const verdicts = matchBatch(pattern, bytes, ends);
    return { outcome: 'matched', verdicts, elapsedMs: (monotonicUs() - startUs) / 1000 };
  } catch (error) {
    if (error instanceof RE2JSException) {
      return { outcome: 'refused', kind: 'invalid', message: invalidity(error) };
    }
    // re2js nests calls as deep as the expression nests.
    if (error instanceof RangeError) {
      return { outcome: 'refused', kind: 'too-complex', message: `nests too deeply: ${error.message}` };
    }
    throw error;
  }
}

function invalidity(error: RE2JSException): string {
  return `is no regular expression of RE2's dialect: ${error.message.replace(/^error parsing regexp: /, '')}`;
}

function compile(expression: string): RE2JS {
  const pattern = compiled.get(expression) ?? RE2JS.compile(expression);
  compiled.delete(expression);
  compiled.set(expression, pattern);
  for (const oldest of compiled.keys()) {
    if (compiled.size <= COMPILED_EXPRESSION_LIMIT) break;
    compiled.delete(oldest);
  }
  return pattern;
}

/** Searches strings, not bytes: re2js takes half the time for them, decoding included. */
function matchBatch(pattern: RE2JS, bytes: Uint8Array, ends: Uint32Array): Uint8Array<ArrayBuffer> {
  const verdicts = new Uint8Array(ends.length);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const encoding = isAscii(bytes) ? 'latin1' : 'utf8';
  let start = 0;
  for (let i = 0; i < ends.length; i++) {
    if (pattern.test(buffer.toString(encoding, start, ends[i]))) verdicts[i] = 1;
    start = ends[i];
  }
  return verdicts;
}
