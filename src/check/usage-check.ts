/**
 * The usage of one scope, part by part: the segments of those in memory, the files of those that are sealed.
 */

import { SegmentError } from '../../engine/segments.js';
import { finished } from '../../engine/steps.js';
import { USAGE } from '../../engine/usage/kind.js';
import {
  encodeSummary,
  type PartName,
  parsePartFile,
  partFile,
  summaryName,
} from '../../engine/usage/sealed/sealed-part.js';
import { parseUsageName } from '../../engine/usage/stored-parts.js';
import { UsageView } from '../../engine/usage/usage-view.js';
import { wrapEnvelope } from '../store/values/envelope.js';
import { FileBlocks, fileRecordPrefix } from './file-blocks.js';
import { type Finding, type Fix, loadProblem, whole } from './findings.js';
import { checkPartFile } from './part-file.js';
import type { CheckedStore } from './scope-check.js';
import type { ScopeSegments } from './scope-segments.js';
import { damageOf, type FoundGroup, groupIsGone, groupOf, groupsOf } from './segment-groups.js';
import { FILES, SEGMENTS } from './stored-tables.js';

export function checkUsage(store: CheckedStore, segments: ScopeSegments): Finding[] {
  const findings: Finding[] = [];
  const sealed = new Map<string, { readonly name: PartName; readonly group: FoundGroup }>();
  for (const name of filedParts(store, segments.scope)) {
    const group = { ...groupOf(USAGE, summaryName(name), segments.scope)!, names: [] };
    sealed.set(group.key, { name, group });
  }
  for (const group of groupsOf(segments, USAGE)) {
    const { name } = parseUsageName(group.names[0])!;
    if (sealed.has(group.key) || group.names.includes(summaryName(name))) {
      sealed.set(group.key, { name, group });
      continue;
    }
    const problem =
      damageOf(segments, group) ??
      loadProblem(() => finished(new UsageView().load(segments.reader(group.names))));
    if (problem !== null) findings.push(groupIsGone(segments, group, problem));
  }
  return [...findings, ...[...sealed.values()].flatMap((part) => checkSealed(store, segments, part))];
}

function filedParts({ files }: CheckedStore, scope: string): PartName[] {
  const prefix = `${scope}:`;
  return [...files.keys()].flatMap((fileKey) => {
    const name = fileKey.startsWith(prefix) ? parsePartFile(fileKey.slice(prefix.length)) : null;
    return name === null ? [] : [name];
  });
}

/** A file is the part, all of it: its summary can be made again, and chunks beside it are not needed. */
function checkSealed(
  store: CheckedStore,
  segments: ScopeSegments,
  { name, group }: { readonly name: PartName; readonly group: FoundGroup },
): Finding[] {
  const expected = whole(() => summaryOfFile(store, segments.scope, name));
  if (expected instanceof SegmentError) {
    const finding = groupIsGone(segments, group, expected.message);
    const keys = store.tables.keysWith(FILES, fileRecordPrefix(segments.keyOf(partFile(name))));
    return [{ ...finding, fixes: [...(finding.fixes ?? []), { do: 'delete', table: FILES, keys }] }];
  }
  const summary = summaryName(name);
  const stored = segments.get(summary);
  const others = group.names.filter((segment) => segment !== summary);
  if (stored !== null && Buffer.compare(stored, expected) === 0 && others.length === 0) return [];
  const key = segments.keyOf(summary);
  const fixes: Fix[] = [
    { do: 'delete', table: SEGMENTS, keys: others.map((segment) => segments.keyOf(segment)) },
    { do: 'put', table: SEGMENTS, key, value: wrapEnvelope(key, expected) },
  ];
  return [
    {
      what: `${group.dropped.what}: what the store says of it and its file do not agree`,
      remedy: 'is rebuilt from the file; nothing is lost',
      fixes,
    },
  ];
}

/** Throws a SegmentError when the file is not whole. */
function summaryOfFile({ directory, files }: CheckedStore, scope: string, name: PartName): Uint8Array {
  const stored = files.get(`${scope}:${partFile(name)}`);
  if (stored === undefined || stored === null)
    throw new SegmentError('what the store knew of its file is lost');
  const file = new FileBlocks(directory, scope, stored);
  try {
    return encodeSummary(checkPartFile(file));
  } finally {
    file.close();
  }
}
