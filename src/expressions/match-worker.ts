/** The match thread: compiles expressions of RE2's dialect, and searches batches of URLs and sealed parts for them. */

import { parentPort } from 'node:worker_threads';
import { RE2JS, RE2JSException } from 're2js';
import { SegmentError } from '../../engine/segments.js';
import { type ScanResult, scanPart } from '../../engine/usage/part-scan.js';
import { scanUrls } from '../../engine/usage/url-scan.js';
import { StoredBlocks } from '../store/stored-blocks.js';
import { monotonicUs } from '../system-clock.js';
import { giveWayToServing, rest } from '../thread-priority.js';
import { ExpressionAutomaton } from './expression-automaton.js';
import {
  COMPILED_EXPRESSION_LIMIT,
  MATCH_THREAD_NICENESS,
  PROGRAM_SIZE_LIMIT,
  SCAN_CHECK_WORK,
} from './limits.js';
import type { MatchReply, MatchRequest } from './match-protocol.js';

interface Compiled {
  readonly pattern: RE2JS;
  /** Made when it is first run. */
  automaton: ExpressionAutomaton | null;
}

/** In order of use, the latest at the end. */
const compiled = new Map<string, Compiled>();

parentPort!.on('message', (request: MatchRequest) => {
  const reply = answer(request);
  parentPort!.postMessage(reply, reply.outcome === 'matched' ? buffersOf(reply.result) : []);
});

giveWayToServing(MATCH_THREAD_NICENESS);
parentPort!.postMessage({ outcome: 'ready' } satisfies MatchReply);

function answer(request: MatchRequest): MatchReply {
  const startUs = monotonicUs();
  try {
    const { expression } = request;
    const known = compile(expression);
    const size = known.pattern.programSize();
    if (size > PROGRAM_SIZE_LIMIT) {
      compiled.delete(expression);
      const message = `compiles to ${size} instructions, the limit is ${PROGRAM_SIZE_LIMIT}`;
      return { outcome: 'refused', kind: 'too-complex', message };
    }
    const result =
      request.kind === 'urls'
        ? scanUrls(request, automatonOf(known), rest)
        : scan(request, automatonOf(known), startUs + request.targetMs * 1000);
    return { outcome: 'matched', result, elapsedMs: (monotonicUs() - startUs) / 1000 };
  } catch (error) {
    if (error instanceof RE2JSException) {
      return { outcome: 'refused', kind: 'invalid', message: invalidity(error) };
    }
    // re2js nests calls as deep as the expression nests.
    if (error instanceof RangeError) {
      return { outcome: 'refused', kind: 'too-complex', message: `nests too deeply: ${error.message}` };
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
  return `is no regular expression of RE2's dialect: ${error.message.replace(/^error parsing regexp: /, '')}`;
}

function compile(expression: string): Compiled {
  // A lone surrogate is in no URL, as UTF-8 has none: it is what the URL has in its place.
  const known = compiled.get(expression) ?? {
    pattern: RE2JS.compile(Buffer.from(expression).toString()),
    automaton: null,
  };
  compiled.delete(expression);
  compiled.set(expression, known);
  for (const oldest of compiled.keys()) {
    if (compiled.size <= COMPILED_EXPRESSION_LIMIT) break;
    compiled.delete(oldest);
  }
  return known;
}

function automatonOf(known: Compiled): ExpressionAutomaton {
  known.automaton ??= new ExpressionAutomaton(known.pattern);
  return known.automaton;
}

/** The file is opened anew for each piece: that takes microseconds, a piece milliseconds. */
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
