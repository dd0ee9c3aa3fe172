/** Decodes entries of the function relay log. */

import type { RelayEntry } from '../../engine/entry.js';
import type { DeadLetterReason } from '../dead-letters.js';
import { type ElementSource, elementTimestampUs, firstObject, parseElement, wellFormed } from './element.js';
import { timestampProblem } from './timestamp.js';

export function decodeRelayElement(
  source: ElementSource,
  start: number,
  end: number,
): RelayEntry | DeadLetterReason {
  const element = parseElement(source, start, end);
  if (typeof element === 'string') return element;
  const metadata = firstObject(element.metadata);
  const project = metadata?.project_ref;
  if (typeof project !== 'string' || project === '') return 'missing-project';
  const timestampUs = elementTimestampUs(source, element, start, end);
  const problem = timestampProblem(timestampUs, source.context.nowUs);
  if (problem !== null) return problem;

  const functionId = metadata?.function_id;
  const executionTimeMs = metadata?.execution_time_ms;
  const statusCode = firstObject(metadata?.response)?.status_code;
  return {
    timestampUs,
    project: wellFormed(project),
    // No caller can ask for a function without a name: an empty one means all of them.
    functionId: typeof functionId === 'string' && functionId !== '' ? wellFormed(functionId) : null,
    statusCode: typeof statusCode === 'number' && Number.isSafeInteger(statusCode) ? statusCode : 0,
    // 1e400 is a number in JSON, and Infinity after JSON.parse.
    executionTimeMs: Number.isFinite(executionTimeMs) ? (executionTimeMs as number) : Number.NaN,
  };
}
