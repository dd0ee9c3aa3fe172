/** Decodes entries of the edge request log, and serialises the rows of `logs.all`. */

import type { EdgeEntry } from '../../engine/entry.js';
import { outcomeOf } from '../../engine/event-counts/outcome.js';
import { type TierClass, tierClassOf } from '../../engine/tier.js';
import { areasOfPath } from '../../engine/usage/areas.js';
import type { DeadLetterReason } from '../dead-letters.js';
import type { ByteSlab } from './byte-slab.js';
import {
  type DecodeElement,
  ElementFields,
  type ElementSource,
  elementTimestampUs,
  NO_INDEX,
  wellFormed,
} from './element.js';
import { derivedId, idHash, idHashOfBytes } from './entry-id.js';
import type { FieldTree } from './json-walk.js';
import { timestampProblem } from './timestamp.js';
import { pathOfUrl } from './url-path.js';

const ID = 0;
/** Ours, then what shippers call it unless told otherwise. */
const TIMESTAMPS = [1, 2, 3, 4];
const MESSAGES = [5, 6, 7, 8];
const PROJECT = 9;
const PROJECT_TIER = 10;
const METADATA = 11;
const URL = 13;
const PATH = 14;
const STATUS_CODE = 16;

const TREE: FieldTree = {
  id: ID,
  timestamp: TIMESTAMPS[0],
  date: TIMESTAMPS[1],
  '@timestamp': TIMESTAMPS[2],
  time: TIMESTAMPS[3],
  event_message: MESSAGES[0],
  message: MESSAGES[1],
  log: MESSAGES[2],
  msg: MESSAGES[3],
  project: PROJECT,
  project_tier: PROJECT_TIER,
  metadata: {
    index: METADATA,
    fields: {
      request: { index: 12, fields: { url: URL, path: PATH } },
      response: { index: 15, fields: { status_code: STATUS_CODE } },
    },
  },
};
const ownFields = new ElementFields(TREE);

const ID_KEY = Buffer.from('{"id":');
const TIMESTAMP_KEY = Buffer.from(',"timestamp":');
const MESSAGE_KEY = Buffer.from(',"event_message":');
const METADATA_KEY = Buffer.from(',"metadata":');
const NULL = Buffer.from('null');
const CLOSE = Buffer.from('}');

/** More than the keys of a row, its timestamp, the numbers of an id and the scheme of a URL take. */
const ROW_FRAME_BYTES = 200;

export const decodeEdgeElement: DecodeElement<EdgeEntry> = Object.assign(decode, {
  newFields: () => new ElementFields(TREE),
});

function decode(
  source: ElementSource,
  start: number,
  end: number,
  index: number,
  walked?: ElementFields,
): EdgeEntry | DeadLetterReason {
  const fields = walked ?? ownFields;
  const unusable = walked === undefined ? fields.read(source, start, end) : walked.unusable;
  if (unusable !== null) return unusable;
  if (fields.isTooLongName(PROJECT)) return 'name-too-long';
  const project = fields.text(PROJECT);
  if (project === null || project === '') return 'missing-project';
  if (fields.isTooDeep(METADATA)) return 'nested-too-deep';
  const timestampUs = elementTimestampUs(source, fields, TIMESTAMPS);
  const problem = timestampProblem(timestampUs, source.context);
  if (problem !== null) return problem;

  const { slab } = source.context;
  // Row and URL hold what is in the element, at most as long as it is there, besides what is made.
  slab.begin(2 * (end - start) + 6 * source.key.topic.length + ROW_FRAME_BYTES);
  const hash = writeRow(fields, source, index, timestampUs);
  const row = slab.take();
  return {
    timestampUs,
    project: wellFormed(project),
    tierClass: tierClass(fields, source, project),
    idHash: hash,
    row,
    url: urlBytes(fields, source, project),
    areas: requestAreas(fields),
    outcome: outcomeOf(fields.status(STATUS_CODE)),
  };
}

/** An empty name says nothing, and a row must not be dropped early on its account. */
function tierClass(fields: ElementFields, source: ElementSource, project: string): TierClass {
  const { tiers } = source.context;
  const tier =
    fields.text(PROJECT_TIER) ||
    source.record.projectTier ||
    tiers.tierByProject.get(project) ||
    tiers.defaultTier;
  return tierClassOf(tier);
}

function urlBytes(fields: ElementFields, source: ElementSource, project: string): Uint8Array | null {
  const { slab, urlFromPath } = source.context;
  if (!fields.isString(URL)) {
    const path = urlFromPath ? fields.text(PATH) : null;
    if (path === null) return null;
    slab.writeText(`https://${project}${path.startsWith('/') ? '' : '/'}${path}`);
    return slab.take();
  }
  if (!fields.isPlain(URL)) return Buffer.from(fields.text(URL)!);
  slab.write(fields.bytes, fields.starts[URL] + 1, fields.ends[URL] - 1);
  return slab.take();
}

function requestAreas(fields: ElementFields): number {
  const path = searchText(fields, PATH);
  if (path !== null) return areasOfPath(path);
  const url = searchText(fields, URL);
  return url === null ? 0 : areasOfPath(pathOfUrl(url));
}

/** A string for searches of ASCII in it; other characters may be several. */
function searchText(fields: ElementFields, index: number): string | null {
  if (!fields.isString(index)) return null;
  return fields.isPlain(index)
    ? fields.bytes.toString('latin1', fields.starts[index] + 1, fields.ends[index] - 1)
    : fields.text(index);
}

/**
 * `{"id":…,"timestamp":…,"event_message":…,"metadata":…}`, the metadata byte for byte as it was ingested.
 * Returns the hash of the id.
 */
function writeRow(fields: ElementFields, source: ElementSource, index: number, timestampUs: number): number {
  const { slab } = source.context;
  slab.write(ID_KEY, 0, ID_KEY.length);
  const hash = writeId(fields, source, index);
  slab.write(TIMESTAMP_KEY, 0, TIMESTAMP_KEY.length);
  slab.writeText(String(timestampUs));
  slab.write(MESSAGE_KEY, 0, MESSAGE_KEY.length);
  const message = fields.firstString(MESSAGES);
  if (message !== NO_INDEX) writeString(fields, slab, message);
  else slab.write(NULL, 0, NULL.length);
  slab.write(METADATA_KEY, 0, METADATA_KEY.length);
  if (fields.has(METADATA)) slab.write(fields.bytes, fields.starts[METADATA], fields.ends[METADATA]);
  else slab.write(NULL, 0, NULL.length);
  slab.write(CLOSE, 0, CLOSE.length);
  return hash;
}

function writeId(fields: ElementFields, source: ElementSource, index: number): number {
  const { slab } = source.context;
  if (fields.isString(ID)) {
    writeString(fields, slab, ID);
    if (fields.isPlain(ID)) return idHashOfBytes(fields.bytes, fields.starts[ID] + 1, fields.ends[ID] - 1);
    return idHash(fields.text(ID)!);
  }
  const id = fields.isNumber(ID) ? fields.numberText(ID) : derivedId(source.key, source.record.offset, index);
  slab.writeText(JSON.stringify(id));
  return idHash(id);
}

/** A string as JSON.stringify writes it. */
function writeString(fields: ElementFields, slab: ByteSlab, index: number): void {
  if (fields.isPlain(index)) slab.write(fields.bytes, fields.starts[index], fields.ends[index]);
  else slab.writeText(JSON.stringify(fields.text(index)));
}
