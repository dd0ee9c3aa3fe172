/** Everything of one scope, a partition of a topic: its state, its rows, its usage, its statistics. */

import { PROJECTS_PREFIX } from '../../engine/project-list.js';
import { ROWS } from '../../engine/rows/kind.js';
import { decodeManifest, parseRunFile, type RunInfo, runFile } from '../../engine/rows/run.js';
import { SegmentError } from '../../engine/segments.js';
import { EdgeShard, encodeShardState } from '../../engine/shard.js';
import { finished } from '../../engine/steps.js';
import { US_PER_HOUR } from '../../engine/time.js';
import { USAGE } from '../../engine/usage/kind.js';
import { parsePartFile } from '../../engine/usage/sealed/sealed-part.js';
import type { ViewKind } from '../../engine/view.js';
import { type ListedView, VIEWS } from '../../engine/views.js';
import { EMBEDDED_CLUSTER_ID } from '../../ingest/embedded-log/topic-log.js';
import { partitionOf } from '../../ingest/partition-id.js';
import { decodeWhole, WHOLE_SEGMENT } from '../service/whole-answers.js';
import type { DroppedPart } from '../store/dropped-parts.js';
import { wrapEnvelope } from '../store/values/envelope.js';
import { fileRecordPrefix, type RecordedFiles } from './file-blocks.js';
import { type Finding, type Fix, loadProblem, note } from './findings.js';
import { lostLog, topicLog, withoutRecords } from './log-records.js';
import { unrecordedRunFiles } from './lost-records.js';
import { checkRun } from './run-check.js';
import { type LostSpan, ScopeSegments } from './scope-segments.js';
import { damageOf, groupIsGone, groupOf, groupsOf } from './segment-groups.js';
import { FILES, SEGMENTS, type StoredTables } from './stored-tables.js';
import { checkUsage } from './usage-check.js';

/** Views of which files are the greater part. */
const FILE_CHECKS: Readonly<Record<string, (store: CheckedStore, segments: ScopeSegments) => Finding[]>> = {
  [ROWS.name]: checkRows,
  [USAGE.name]: checkUsage,
};

const STATE = 'shard';
const MANIFEST = 'rows/manifest';
/**
 * Segments that no answer depends on: alarms about the log, marks of what was read (see ingest/gaps.ts,
 * record-marks.ts).
 */
const BESIDE = ['gaps', 'marks'];

export interface CheckedStore {
  readonly directory: string;
  readonly tables: StoredTables;
  readonly files: RecordedFiles;
  /**
   * What time it is at the earliest, and at the latest: by the machine's clock and by the last commit, as one of them
   * may be wrong.
   */
  readonly earliestUs: number;
  readonly latestUs: number;
}

export function checkScope(store: CheckedStore, scope: string): Finding[] {
  const segments = new ScopeSegments(scope, store.tables);
  const stateProblem = loadProblem(() => loadedState(segments));
  const hasState = segments.has(STATE) && stateProblem === null;
  const newState = hasState ? null : stateFromLog(store, segments);
  if (!hasState && newState === null)
    return [scopeIsGone(store, segments, stateProblem ?? 'its state is lost')];
  return [
    ...(newState === null ? offsetFindings(store, segments) : [newState]),
    ...VIEWS.flatMap((view) => FILE_CHECKS[view.kind.name]?.(store, segments) ?? checkGroups(segments, view)),
    ...checkBeside(segments),
    ...checkProjects(segments),
    ...checkWhole(segments),
    ...checkForeign(segments),
    ...lostViews(store, segments),
  ];
}

/** Of whatever topic, what the shard itself saves. Throws a SegmentError. */
function loadedState(segments: ScopeSegments): EdgeShard {
  const reader = segments.reader([STATE]);
  const shard = new EdgeShard(reader);
  finished(shard.load(reader));
  return shard;
}

/**
 * Of a partition of the embedded log the next offset is known to within the records that the log still has:
 * it is set behind them, and they go, since nobody knows which of them the answers have.
 */
function stateFromLog({ tables, latestUs }: CheckedStore, segments: ScopeSegments): Finding | null {
  const { scope, keyOf } = segments;
  const { topic } = partitionOf(scope);
  const log = topicLog(tables, topic);
  if (log === null || !scope.endsWith('/0')) return null;
  const { start, end } = log;
  const key = keyOf(STATE);
  const lost: string[] = [];
  // Where the state is not there at all the commits are lost that had it, with whatever else they had.
  if (end > 0 && !segments.damagedNames.includes(STATE)) lost.push(`what ${scope} held before offset ${end}`);
  if (end > start)
    lost.push(`${end - start} records of the embedded log of ${topic} that it may or may not have`);
  const what = lost.join(', and ');
  return {
    what: `partition ${scope}: its state is lost, how far it has read the embedded log among it`,
    remedy:
      lost.length > 0
        ? `goes on at offset ${end}; dropped, as far as it is not there any more: ${what}`
        : `goes on at offset ${end}; nothing is lost`,
    fixes: [
      { do: 'put', table: SEGMENTS, key, value: wrapEnvelope(key, encodeShardState(end)) },
      ...withoutRecords(topic, log),
    ],
    dropped: lost.length > 0 ? VIEWS.map(({ kind }) => allOf(kind, latestUs, what)) : [],
  };
}

/**
 * A journal that lacks its last commits is what it was before them: the log may not have the records any more
 * that are to be read again. A log that lacks its last records would give their offsets to others.
 */
function offsetFindings({ tables, latestUs }: CheckedStore, segments: ScopeSegments): Finding[] {
  const { scope, keyOf } = segments;
  const { topic } = partitionOf(scope);
  const log = scope.endsWith('/0') ? (topicLog(tables, topic) ?? lostLog(tables)) : null;
  const { nextOffset, identity } = loadedState(segments);
  const isOfKafka = identity !== null && identity.clusterId !== EMBEDDED_CLUSTER_ID;
  if (isOfKafka || log === null || nextOffset === null || (nextOffset >= log.start && nextOffset <= log.end))
    return [];
  const isBehind = nextOffset < log.start;
  const what = isBehind
    ? `${log.start - nextOffset} records of the embedded log of ${topic}, the first at offset ${nextOffset}`
    : `what was posted to ${topic} and not counted yet`;
  const key = keyOf(STATE);
  return [
    {
      what: `partition ${scope}: it goes on at offset ${nextOffset}, and the embedded log has offsets ${log.start} to ${log.end}`,
      remedy: isBehind ? `goes on at offset ${log.start}` : `the log goes on at offset ${nextOffset}`,
      fixes: isBehind
        ? [{ do: 'put', table: SEGMENTS, key, value: wrapEnvelope(key, encodeShardState(log.start)) }]
        : withoutRecords(topic, { ...log, end: nextOffset }),
      dropped: viewsOfLog(segments.names()).map(({ kind }) => allOf(kind, latestUs, what)),
    },
  ];
}

function scopeIsGone({ latestUs }: CheckedStore, segments: ScopeSegments, problem: string): Finding {
  const { scope } = segments;
  const names = [...segments.names(), ...segments.damagedNames];
  return {
    what: `partition ${scope}: ${problem}, and without the next offset nothing can be added to the rest`,
    remedy:
      'is dropped whole; Kafka is read again as far as it goes back, the embedded log has nothing more of it',
    fixes: [
      { do: 'delete', table: SEGMENTS, keys: names.map((name) => segments.keyOf(name)) },
      { do: 'delete', table: FILES, keys: segments.tables.keysWith(FILES, `${scope}:`) },
    ],
    dropped: viewsOfLog(names).map(({ kind }) => allOf(kind, latestUs, `partition ${scope}`)),
  };
}

function checkRows(store: CheckedStore, segments: ScopeSegments): Finding[] {
  const { scope } = segments;
  const manifest = segments.get(MANIFEST);
  const hasRows =
    [...segments.names()].some((name) => name.startsWith('rows/')) ||
    segments.damagedNames.includes(MANIFEST) ||
    rowFileKeysOf(store, scope).length > 0 ||
    (segments.mayHaveLost(MANIFEST) && viewsOfLog(segments.names()).some(({ kind }) => kind === ROWS));
  if (!hasRows) return [];
  const findings: Finding[] = [];
  let runs: RunInfo[] = [];
  const problem = loadProblem(() => {
    if (manifest === null) throw new SegmentError('the list of its row files is lost');
    runs = decodeManifest(manifest).runs;
  });
  if (problem !== null) {
    runs = runsByName(store, segments);
    // A run whose only block was open has no file to be known by.
    const mayLackRuns = segments.mayHaveLost('rows/open/');
    const what = `rows of ${scope} that had just arrived`;
    findings.push({
      what: `rows of ${scope}: ${problem}`,
      remedy: `is rebuilt from the row files${mayLackRuns ? '' : '; nothing is lost by that'}`,
      fixes: runs.length > 0 ? [{ do: 'set-runs', scope, runs }] : [],
      dropped: mayLackRuns ? [allOf(ROWS, store.latestUs, what)] : [],
    });
  }
  for (const info of runs) findings.push(...checkRun({ ...store, segments }, info));
  return [...findings, ...checkUnlisted(store, segments, runs)];
}

/**
 * The runs as their files, indexes and open blocks are named; runs that take rows are those with an open block. A file
 * that nothing tells of may be a sorted run's.
 */
function runsByName(store: CheckedStore, segments: ScopeSegments): RunInfo[] {
  const runs = new Map<string, RunInfo>();
  for (const file of unrecordedRunFiles({ ...store, segments }))
    runs.set(file, parseRunFile(file, 'sorted', true)!);
  for (const fileKey of rowFileKeysOf(store, segments.scope)) {
    const kind = store.files.get(fileKey)?.hasDictionary ? 'sorted' : 'fresh';
    const info = parseRunFile(fileKey.slice(segments.scope.length + 1), kind, true);
    if (info !== null) runs.set(runFile(info), info);
  }
  const names = [...segments.names(), ...segments.damagedNames];
  for (const [pattern, isClosed] of [
    [/^rows\/index\/(.+)\/[0-9]+$/, true],
    [/^rows\/open\/(.+)$/, false],
  ] as const) {
    for (const name of names) {
      const file = pattern.exec(name)?.[1];
      const info = file === undefined ? null : parseRunFile(file, 'fresh', isClosed);
      if (info !== null) runs.set(runFile(info), info);
    }
  }
  return [...runs.values()];
}

/** Rows that no run has: nothing answers from them. */
function checkUnlisted(store: CheckedStore, segments: ScopeSegments, runs: readonly RunInfo[]): Finding[] {
  const files = new Set(runs.map(runFile));
  const names = [...segments.names(), ...segments.damagedNames].filter((name) => {
    const part = /^rows\/(?:open\/(.+)|index\/(.+)\/[0-9]+)$/.exec(name);
    return part !== null && !files.has(part[1] ?? part[2]);
  });
  const fileKeys = rowFileKeysOf(store, segments.scope).filter(
    (fileKey) => !files.has(fileKey.slice(segments.scope.length + 1)),
  );
  if (names.length + fileKeys.length === 0) return [];
  const keys = fileKeys.flatMap((fileKey) => segments.tables.keysWith(FILES, fileRecordPrefix(fileKey)));
  return [
    {
      what: `rows of ${segments.scope}: ${[...names, ...fileKeys].join(', ')} belongs to no run`,
      remedy: 'is dropped; no answer had anything of it',
      fixes: [
        { do: 'delete', table: SEGMENTS, keys: names.map((name) => segments.keyOf(name)) },
        { do: 'delete', table: FILES, keys },
      ],
    },
  ];
}

function checkGroups(segments: ScopeSegments, { kind, checkGroup }: ListedView): Finding[] {
  const findings: Finding[] = [];
  for (const group of groupsOf(segments, kind)) {
    const problem =
      damageOf(segments, group) ?? loadProblem(() => checkGroup?.(segments.reader(group.names)));
    if (problem !== null) findings.push(groupIsGone(segments, group, problem));
  }
  return findings;
}

function checkBeside(segments: ScopeSegments): Finding[] {
  return BESIDE.filter((name) => segments.damagedNames.includes(name)).map((name) => ({
    what: `partition ${segments.scope}: its list of ${name} is damaged`,
    remedy: 'is dropped; no answer depends on it',
  }));
}

function checkProjects(segments: ScopeSegments): Finding[] {
  const names = [...segments.names(), ...segments.damagedNames].filter((name) =>
    name.startsWith(PROJECTS_PREFIX),
  );
  if (!names.some((name) => segments.damagedNames.includes(name))) return [];
  return [
    {
      what: `partition ${segments.scope}: its list of projects is damaged`,
      remedy: 'is dropped; no answer depends on it, but from now on other members ask here for every project',
      fixes: [
        { do: 'delete', table: SEGMENTS, keys: names.map((name) => segments.keyOf(name)) } satisfies Fix,
      ],
    },
  ];
}

function checkWhole(segments: ScopeSegments): Finding[] {
  const bytes = segments.get(WHOLE_SEGMENT);
  const isDamaged = segments.damagedNames.includes(WHOLE_SEGMENT);
  const problem = bytes === null ? null : loadProblem(() => decodeWhole(bytes));
  if (problem === null && !isDamaged) return [];
  return [
    {
      what: `partition ${segments.scope}: the time as of which it is whole is damaged`,
      remedy:
        'is dropped; with Kafka its endpoints return 503 until the partition has been read to its end again',
      fixes: [{ do: 'delete', table: SEGMENTS, keys: [segments.keyOf(WHOLE_SEGMENT)] } satisfies Fix],
    },
  ];
}

/**
 * They may be a later version's, or a view's that this one does not have. Damaged ones are useless to that
 * too.
 */
function checkForeign(segments: ScopeSegments): Finding[] {
  const isKnown = (name: string): boolean =>
    name === STATE ||
    BESIDE.includes(name) ||
    name === WHOLE_SEGMENT ||
    name.startsWith(PROJECTS_PREFIX) ||
    VIEWS.some(({ kind }) => kind.groupOf(name) !== null || kind.owns?.(name) === true);
  const unknown = (names: Iterable<string>) =>
    [...names].filter((name) => !isKnown(name)).map((name) => segments.keyOf(name));
  return [
    ...unknown(segments.names()).map((key) => note(`this version does not know segment ${key}; it stays`)),
    ...unknown(segments.damagedNames).map((key) => ({
      what: `segment ${key} is damaged, and this version does not know it`,
      remedy: 'is dropped',
      fixes: [{ do: 'delete', table: SEGMENTS, keys: [key] } satisfies Fix],
    })),
  ];
}

/**
 * What may have stood where a key or a page can't be read: nobody knows, so answers about it may lack
 * something.
 */
function lostViews({ latestUs }: CheckedStore, segments: ScopeSegments): Finding[] {
  // Of rows the list of runs tells what there should be. The same finding is told once.
  const findings = viewsOfLog(segments.names()).flatMap(({ kind }) => {
    const spans = kind === ROWS ? [] : segments.lostSpans(`${kind.name}/`);
    return spans.map((span) => lostView(kind, span, segments.scope, latestUs));
  });
  return [...new Map(findings.map((finding) => [finding.what, finding])).values()];
}

/** A partition is of one log: the views of that whose segments it has, or all where it has none that tell. */
export function viewsOfLog(names: Iterable<string>): readonly ListedView[] {
  const known = [...names];
  const logs = VIEWS.filter(({ kind }) => known.some((name) => name.startsWith(`${kind.name}/`))).map(
    ({ kind }) => kind.log,
  );
  return logs.length === 0 ? VIEWS : VIEWS.filter(({ kind }) => logs.includes(kind.log));
}

function lostView(kind: ViewKind, { low, high }: LostSpan, scope: string, latestUs: number): Finding {
  const first = low === null ? null : groupOf(kind, low, scope);
  const last = high === null ? null : groupOf(kind, high, scope);
  const isWithin = first !== null && last !== null && first.dropped.level === last.dropped.level;
  const what = `${kind.title.toLowerCase()} of ${scope}, from ${low ?? 'the beginning'} to ${high ?? 'the end'}`;
  return {
    what: `${what}: some of it may be lost`,
    remedy: 'is dropped',
    dropped: [isWithin ? { ...first.dropped, endUs: last.dropped.endUs, what } : allOf(kind, latestUs, what)],
  };
}

export function allOf({ name }: ViewKind, latestUs: number, what: string): DroppedPart {
  // Entries may be an hour ahead.
  return { view: name, level: null, startUs: null, endUs: latestUs + US_PER_HOUR, what };
}

function rowFileKeysOf({ files }: CheckedStore, scope: string): string[] {
  const prefix = `${scope}:`;
  return [...files.keys()].filter(
    (fileKey) => fileKey.startsWith(prefix) && parsePartFile(fileKey.slice(prefix.length)) === null,
  );
}
