/**
 * The match thread: compiles expressions in RE2's syntax, and searches batches of URLs and sealed parts for
 * them.
 */

import { parentPort } from 'node:worker_threads';
import { RE2JSException } from 're2js';
import { SegmentError } from '../../engine/segments.js';
import { scanUrls } from '../../engine/usage/expressions/url-scan.js';
import { type ScanResult, scanPart } from '../../engine/usage/sealed/part-scan.js';
import { watchWorkerGarbage } from '../garbage-watch.js';
import { StoredBlocks } from '../store/blocks/stored-blocks.js';
import { monotonicUs } from '../system-clock.js';
import { giveWayToServing, rest } from '../thread-priority.js';
import { CompiledExpressions } from './compiled-expressions.js';
import type { ExpressionAutomaton } from './expression-automaton.js';
import { MATCH_THREAD_NICENESS, PROGRAM_SIZE_LIMIT, SCAN_CHECK_WORK } from './limits.js';
import type { MatchReply, MatchRequest } from './match-protocol.js';

const compiled = new CompiledExpressions();

parentPort!.on('message', (request: MatchRequest) => {
  const reply = answer(request);
  if (reply.outcome !== 'matched') parentPort!.postMessage(reply);
  else if (request.kind === 'part') parentPort!.postMessage(reply, buffersOf(reply.result));
  else {
    const spent = request.bytes;
    parentPort!.postMessage({ ...reply, spent }, [...buffersOf(reply.result), spent.buffer]);
  }
});

giveWayToServing(MATCH_THREAD_NICENESS);
watchWorkerGarbage();
parentPort!.postMessage({ outcome: 'ready' } satisfies MatchReply);

function answer(request: MatchRequest): MatchReply {
  const startUs = monotonicUs();
  try {
    const { expression } = request;
    const size = compiled.pattern(expression).programSize();
    if (size > PROGRAM_SIZE_LIMIT) {
      compiled.forget(expression);
      const message = `compiles to ${size} instructions, the limit is ${PROGRAM_SIZE_LIMIT}`;
      return { outcome: 'refused', kind: 'too-complex', message };
    }
    const automaton = compiled.automaton(expression);
    const result =
      request.kind === 'urls'
        ? scanUrls(request, automaton, rest)
        : scan(request, automaton, startUs + request.targetMs * 1000);
    return { outcome: 'matched', result, elapsedMs: (monotonicUs() - startUs) / 1000 };
  } catch (error) {
    if (error instanceof RE2JSException) {
      return { outcome: 'refused', kind: 'invalid', message: invalidity(error) };
    }
    if (isFromDisk(error)) {
      return { outcome: 'failed', message: error.message, isDamage: error instanceof SegmentError };
    }
    throw error;
  }
}

function isFromDisk(error: unknown): error is Error {
  return error instanceof SegmentError || (error instanceof Error && 'syscall' in error);
}

function buffersOf(result: Uint8Array<ArrayBuffer> | ScanResult): ArrayBuffer[] {
  if (result instanceof Uint8Array) return [result.buffer];
  const { offsetsUs, areas, sums } = result.matches;
  return [offsetsUs.buffer, areas.buffer, sums.buffer];
}

function invalidity(error: RE2JSException): string {
  return `is not a regular expression in RE2's syntax: ${error.message.replace(/^error parsing regexp: /, '')}`;
}

/** The file is opened again for each piece: that takes microseconds, a piece milliseconds. */
function scan(
  request: MatchRequest & { readonly kind: 'part' },
  automaton: ExpressionAutomaton,
  endUs: number,
): ScanResult {
  const blocks = new StoredBlocks(request.located);
  try {
    const isTimeUp = () => {
      rest();
      return monotonicUs() >= endUs;
    };
    const clock = { checkWork: SCAN_CHECK_WORK, isTimeUp };
    return scanPart(request.scan, blocks, automaton, automaton.need, clock);
  } finally {
    blocks.close();
  }
}
