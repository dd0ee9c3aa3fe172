/** Decodes entries of the function relay log. */

import type { RelayEntry } from '../../engine/entry.js';
import type { DeadLetterReason } from '../dead-letters.js';
import {
  type DecodeElement,
  ElementFields,
  type ElementSource,
  elementTimestampUs,
  wellFormed,
} from './element.js';
import type { FieldTree } from './json-walk.js';
import { timestampProblem } from './timestamp.js';

/** Ours, then what shippers call it unless told otherwise. */
const TIMESTAMPS = [0, 1, 2, 3];
const METADATA = 4;
const PROJECT_REF = 5;
const FUNCTION_ID = 6;
const EXECUTION_TIME_MS = 7;
const STATUS_CODE = 9;

const TREE: FieldTree = {
  timestamp: TIMESTAMPS[0],
  date: TIMESTAMPS[1],
  '@timestamp': TIMESTAMPS[2],
  time: TIMESTAMPS[3],
  metadata: {
    index: METADATA,
    fields: {
      project_ref: PROJECT_REF,
      function_id: FUNCTION_ID,
      execution_time_ms: EXECUTION_TIME_MS,
      response: { index: 8, fields: { status_code: STATUS_CODE } },
    },
  },
};
const ownFields = new ElementFields(TREE);

export const decodeRelayElement: DecodeElement<RelayEntry> = Object.assign(decode, {
  newFields: () => new ElementFields(TREE),
});

function decode(
  source: ElementSource,
  start: number,
  end: number,
  _index: number,
  walked?: ElementFields,
): RelayEntry | DeadLetterReason {
  const fields = walked ?? ownFields;
  const unusable = walked === undefined ? fields.read(source, start, end) : walked.unusable;
  if (unusable !== null) return unusable;
  if (fields.isTooLongName(PROJECT_REF) || fields.isTooLongName(FUNCTION_ID)) return 'name-too-long';
  const project = fields.text(PROJECT_REF);
  if (project === null || project === '') return 'missing-project';
  if (fields.isTooDeep(METADATA)) return 'nested-too-deep';
  const timestampUs = elementTimestampUs(source, fields, TIMESTAMPS);
  const problem = timestampProblem(timestampUs, source.context);
  if (problem !== null) return problem;

  const functionId = fields.text(FUNCTION_ID);
  const executionTimeMs = numberOf(fields, EXECUTION_TIME_MS);
  return {
    timestampUs,
    project: wellFormed(project),
    // No caller can ask for a function without a name: an empty one means all of them.
    functionId: functionId !== null && functionId !== '' ? wellFormed(functionId) : null,
    statusCode: fields.status(STATUS_CODE),
    // 1e400 is a number in JSON, and Infinity as a double.
    executionTimeMs: Number.isFinite(executionTimeMs) ? executionTimeMs : Number.NaN,
  };
}

function numberOf(fields: ElementFields, index: number): number {
  return fields.isNumber(index) ? Number(fields.numberText(index)) : Number.NaN;
}
