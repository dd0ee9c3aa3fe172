/** Decodes entries of the edge request log, and serialises the rows that `logs.all` answers with. */

import type { EdgeEntry } from '../../engine/entry.js';
import { type TierClass, tierClassOf } from '../../engine/tier.js';
import { areasOfPath } from '../../engine/usage/areas.js';
import type { DeadLetterReason } from '../dead-letters.js';
import {
  type ElementSource,
  elementTimestampUs,
  firstObject,
  type JsonObject,
  numberText,
  parseElement,
  wellFormed,
} from './element.js';
import { derivedId, idHash } from './entry-id.js';
import type { ByteRange } from './json-scan.js';
import { findMetadata } from './metadata-range.js';
import { timestampProblem } from './timestamp.js';
import { pathOfUrl } from './url-path.js';

const NULL: Buffer = Buffer.from('null');
const metadataRange: ByteRange = { start: 0, end: 0 };

export function decodeEdgeElement(
  source: ElementSource,
  start: number,
  end: number,
  index: number,
): EdgeEntry | DeadLetterReason {
  const element = parseElement(source, start, end);
  if (typeof element === 'string') return element;
  const { project } = element;
  if (typeof project !== 'string' || project === '') return 'missing-project';
  const timestampUs = elementTimestampUs(source, element, start, end);
  const problem = timestampProblem(timestampUs, source.context.nowUs);
  if (problem !== null) return problem;

  const id = entryId(source, element, start, end, index);
  const request = firstObject(firstObject(element.metadata)?.request);
  const url = typeof request?.url === 'string' ? request.url : null;
  return {
    timestampUs,
    project: wellFormed(project),
    tierClass: tierClass(source, element, project),
    idHash: idHash(id),
    row: encodeRow(source, element, start, end, id, timestampUs),
    url: url === null ? null : Buffer.from(url),
    areas: requestAreas(request, url),
  };
}

function entryId(
  source: ElementSource,
  element: JsonObject,
  start: number,
  end: number,
  index: number,
): string {
  const { id } = element;
  if (typeof id === 'string') return id;
  // A number's digits may be more than a double holds.
  if (typeof id === 'number') return numberText(source, start, end, 'id');
  return derivedId(source.key, source.record.offset, index);
}

/** An empty name says nothing, and a row must not be dropped early on its account. */
function tierClass(source: ElementSource, element: JsonObject, project: string): TierClass {
  const { tiers } = source.context;
  const ownTier = element.project_tier;
  const tier =
    (typeof ownTier === 'string' ? ownTier : '') ||
    source.record.projectTier ||
    tiers.tierByProject.get(project) ||
    tiers.defaultTier;
  return tierClassOf(tier);
}

function requestAreas(request: JsonObject | null, url: string | null): number {
  if (typeof request?.path === 'string') return areasOfPath(request.path);
  return url === null ? 0 : areasOfPath(pathOfUrl(url));
}

/** `{"id":…,"timestamp":…,"event_message":…,"metadata":…}`, the metadata byte for byte as it was ingested. */
function encodeRow(
  source: ElementSource,
  element: JsonObject,
  start: number,
  end: number,
  id: string,
  timestampUs: number,
): Uint8Array {
  const message = typeof element.event_message === 'string' ? element.event_message : element.message;
  const messageJson = typeof message === 'string' ? JSON.stringify(message) : 'null';
  const head = `{"id":${JSON.stringify(id)},"timestamp":${timestampUs},"event_message":${messageJson},"metadata":`;

  let metadata = NULL;
  metadataRange.start = 0;
  metadataRange.end = NULL.length;
  if (element.metadata !== undefined) {
    findMetadata(source, element, start, end, metadataRange);
    metadata = source.bytes;
  }
  const metadataLength = metadataRange.end - metadataRange.start;
  const headLength = Buffer.byteLength(head);
  const row = Buffer.allocUnsafe(headLength + metadataLength + 1);
  row.write(head, 0, 'utf8');
  metadata.copy(row, headLength, metadataRange.start, metadataRange.end);
  row[headLength + metadataLength] = 0x7d; // }
  return row;
}
