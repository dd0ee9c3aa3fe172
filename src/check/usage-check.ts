/** The usage of a scope: each part with its segments and, when it is sealed, its file; a part that is not whole goes. */

import { SegmentError, type SegmentReader } from '../../engine/segments.js';
import { US_PER_HOUR } from '../../engine/time.js';
import { isPartFile, partFile, partPrefix } from '../../engine/usage/sealed-part.js';
import { UsageView } from '../../engine/usage/usage-view.js';
import { intervalText } from '../http/incomplete.js';
import type { StoredFile } from '../store/storage-protocol.js';
import type { Finding, Fix } from './findings.js';
import { RowFileBlocks, recordKeys } from './row-files.js';
import type { CheckedStore } from './scope-check.js';
import type { ScopeSegments } from './scope-segments.js';
import { type Beside, checkGroups, type Group, loadProblem } from './segment-groups.js';

export function checkUsage(store: CheckedStore, segments: ScopeSegments): Finding[] {
  const { scope } = segments;
  const load = (reader: SegmentReader): void => {
    new UsageView().load({ ...reader, blockCount: (file) => blockCountOf(store, `${scope}:${file}`) });
  };
  const beside = (prefix: string) => besidePart(store, scope, prefix);
  return [...checkGroups(segments, 'usage/', partOf, load, beside), ...checkUnlisted(store, segments)];
}

/** The part that a segment is of. The first version had one an hour, whose segments said nothing of a part. */
export function partOf(name: string, scope: string): Group | null {
  const match = /^(usage\/([0-9]{8})\/(?:[0-9]{8}\/)?)(?:[0-9]{8}|sealed)$/.exec(name);
  if (match === null) return null;
  const startUs = Number(match[2]) * US_PER_HOUR;
  const endUs = startUs + US_PER_HOUR;
  const what = `usage of ${scope}, ${intervalText({ startUs, endUs })}`;
  return { prefix: match[1], dropped: { view: 'usage', level: null, startUs, endUs, what } };
}

export function isUsageFile(fileKey: string): boolean {
  return isPartFile(fileKey.slice(fileKey.lastIndexOf(':') + 1));
}

function blockCountOf({ files }: CheckedStore, fileKey: string): number {
  return files.get(fileKey)?.frameEnds.length ?? 0;
}

/** The file of a part; one that is fresh has none. */
function besidePart(store: CheckedStore, scope: string, prefix: string): Beside {
  const match = /^usage\/([0-9]+)\/([0-9]+)\/$/.exec(prefix);
  if (match === null) return { problem: null, fixes: [] };
  const file = partFile({ hourIndex: Number(match[1]), partIndex: Number(match[2]) });
  const fileKey = `${scope}:${file}`;
  const stored = store.files.get(fileKey);
  if (stored === undefined) return { problem: null, fixes: [] };
  const problem =
    stored === null
      ? `what the store knew of file ${file} is lost`
      : loadProblem(() => readThrough(store.directory, scope, stored));
  return { problem, fixes: [withoutRecords(store, [fileKey])] };
}

function readThrough(directory: string, scope: string, stored: StoredFile): void {
  const file = new RowFileBlocks(directory, scope, stored);
  try {
    for (let i = 0; i < file.count; i++) {
      const block = file.block(i);
      if (block instanceof SegmentError) throw block;
    }
  } finally {
    file.close();
  }
}

/** Files that no part has: nothing answers from them. */
function checkUnlisted(store: CheckedStore, segments: ScopeSegments): Finding[] {
  const { scope } = segments;
  const names = [...segments.names(), ...segments.damagedNames];
  const fileKeys = [...store.files.keys()].filter((fileKey) => {
    if (!fileKey.startsWith(`${scope}:`) || !isUsageFile(fileKey)) return false;
    const match = /-([0-9]+)-([0-9]+)$/.exec(fileKey)!;
    const prefix = partPrefix({ hourIndex: Number(match[1]), partIndex: Number(match[2]) });
    return !names.some((name) => name.startsWith(prefix));
  });
  if (fileKeys.length === 0) return [];
  return [
    {
      what: `usage of ${scope}: ${fileKeys.join(', ')} belongs to no part`,
      remedy: 'is dropped; no answer had anything of it',
      fixes: [withoutRecords(store, fileKeys)],
      dropped: [],
    },
  ];
}

function withoutRecords({ tables }: CheckedStore, fileKeys: readonly string[]): Fix {
  const isOfThese = (key: string): boolean => fileKeys.some((fileKey) => key.startsWith(`${fileKey}#`));
  return { do: 'delete', table: 'files', keys: recordKeys(tables, isOfThese) };
}
