/**
 * Builds state with many long names, alone in a process that can collect its garbage, and prints as JSON what
 * the engine counts of it and what the process holds: `node --expose-gc held-names.js <what> <budget>`.
 */

import type { EdgeEntry, RelayEntry } from '../../engine/entry.js';
import { MAX_NAME_BYTES } from '../../engine/limits.js';
import { sharedName, sharedNameBytes } from '../../engine/names.js';
import { ProjectRuns } from '../../engine/rows/project-runs.js';
import { RowsView } from '../../engine/rows/rows-view.js';
import { SortedRun } from '../../engine/rows/sorted-run.js';
import type { SegmentReader, SegmentWriter } from '../../engine/segments.js';
import { StatsView } from '../../engine/stats/stats-view.js';
import { finished } from '../../engine/steps.js';
import { US_PER_DAY, US_PER_HOUR, US_PER_MINUTE, US_PER_SECOND } from '../../engine/time.js';
import { MemoryRoom } from '../../src/http/memory-room.js';
import { IngestGate } from '../../src/service/ingest-gate.js';
import { MemoryBudget } from '../../src/service/memory-budget.js';
import { SegmentTable } from '../segment-table.js';

export interface HeldNames {
  readonly countedBytes: number;
  readonly heldBytes: number;
}

const HOUR_US = Date.UTC(2026, 10, 21, 7) * 1000;
const ROW = Buffer.from('{"id":"a","timestamp":1,"event_message":null,"metadata":null}');

/** A store that forgets all it is given: what is saved is no memory of the engine's. */
const NOWHERE: SegmentReader & SegmentWriter = {
  put: () => undefined,
  delete: () => undefined,
  deletePrefix: () => undefined,
  append: (_file, _bytes, onStored) => onStored?.(),
  adopt: () => undefined,
  remove: () => undefined,
  get: () => null,
  list: () => [],
  block: () => new Uint8Array(0),
  blockCount: () => 0,
};

/** Each call makes another string, as decoding does. */
function nameOf(index: number): string {
  return Buffer.from(`${index}-`.padEnd(MAX_NAME_BYTES, 'n')).toString();
}

function edgeEntry(index: number, timestampUs = HOUR_US + index): EdgeEntry {
  return {
    timestampUs,
    project: nameOf(index),
    tierClass: '90d',
    idHash: index,
    row: ROW,
    url: null,
    areas: 0,
    outcome: 0,
  };
}

function relayEntry(project: number, functionId: number, timestampUs: number): RelayEntry {
  return {
    timestampUs,
    project: nameOf(project),
    functionId: nameOf(functionId),
    statusCode: 200,
    executionTimeMs: 1,
  };
}

function rowsNotSaved(): [object, () => number] {
  const rows = new RowsView(NOWHERE);
  for (let i = 0; i < 10_000; i++) rows.apply(edgeEntry(i));
  return [rows, () => rows.heldBytes];
}

/** The same projects in some hours, and saved. */
function rowsOfHours(): [object, () => number] {
  const rows = new RowsView(NOWHERE);
  for (let hour = 0; hour < 4; hour++) {
    for (let i = 0; i < 5_000; i++) rows.apply(edgeEntry(i, HOUR_US + hour * US_PER_HOUR + i));
    rows.save(NOWHERE);
  }
  return [rows, () => rows.heldBytes];
}

function sortedRows(): [object, () => number] {
  const projectCount = 10_000;
  const projects = new ProjectRuns();
  const runs: SortedRun[] = [];
  for (let day = 0; day < 5; day++) {
    const info = {
      id: day,
      kind: 'sorted',
      tierClass: '90d',
      startUs: day * US_PER_DAY,
      spanUs: US_PER_DAY,
      visibleFromUs: 0,
      isClosed: true,
    } as const;
    const directory = {
      rowCount: projectCount,
      rowByteCount: projectCount,
      blockFirstRows: new Uint32Array(100),
      blockFirstTimesUs: new Float64Array(100),
      projects: Array.from({ length: projectCount }, (_, i) => nameOf(i)),
      projectFirstRows: new Uint32Array(projectCount),
      projectRowCounts: new Uint32Array(projectCount),
      oldestUs: new Float64Array(projectCount),
      newestUs: new Float64Array(projectCount),
    };
    const run = new SortedRun(info, directory, NOWHERE);
    runs.push(run);
    finished(projects.adding(run));
    projects.show(run);
  }
  const counted = () => projects.heldBytes + runs.reduce((sum, run) => sum + run.heldBytes, 0);
  return [[projects, runs], counted];
}

/** Functions that are called all the time: each has a bucket in slots of all levels. */
function applyBusyFunctions(stats: StatsView, store: SegmentWriter): void {
  for (let second = 0; second < 100; second++) {
    for (let i = 0; i < 200; i++) stats.apply(relayEntry(0, i, HOUR_US + second * US_PER_SECOND));
    stats.save(store);
  }
}

function statisticsOfBusyFunctions(): [object, () => number] {
  const stats = new StatsView();
  applyBusyFunctions(stats, NOWHERE);
  return [stats, () => stats.heldBytes];
}

function statisticsOfManyFunctions(): [object, () => number] {
  const stats = new StatsView();
  for (let i = 0; i < 10_000; i++) {
    stats.apply(relayEntry(i % 100, i, HOUR_US + (i % 10) * US_PER_MINUTE));
    if (i % 1_000 === 0) stats.save(NOWHERE);
  }
  stats.save(NOWHERE);
  return [stats, () => stats.heldBytes];
}

/** What is saved is there before the measuring begins. */
function savedStatistics(): SegmentTable {
  const table = new SegmentTable();
  const stats = new StatsView();
  applyBusyFunctions(stats, table);
  for (let i = 0; i < 5_000; i++) stats.apply(relayEntry(0, i, HOUR_US + (i % 10) * US_PER_MINUTE));
  stats.save(table);
  return table;
}

function loadedStatistics(table: SegmentTable): [object, () => number] {
  const stats = new StatsView();
  finished(stats.load(table));
  return [[stats, table], () => stats.heldBytes];
}

/** Far more names than are shared, of which nobody holds any any more. */
function namesThatCameOnce(): [object, () => number] {
  for (let i = 0; i < 100_000; i++) sharedName(nameOf(i));
  return [{}, () => 0];
}

/** Takes in new names until the budget says no more. */
function budget(): [object, () => number] {
  const rows = new RowsView(NOWHERE);
  const stats = new StatsView();
  const gate = new IngestGate();
  const memory = new MemoryBudget({
    budgetBytes: Number(process.argv[3]),
    gate,
    cache: { heldBytes: 0, limit: () => undefined },
    parts: [
      { name: 'rows', heldBytes: () => rows.heldBytes },
      { name: 'statistics', heldBytes: () => stats.heldBytes },
      { name: 'names', heldBytes: sharedNameBytes },
    ],
    spill: () => undefined,
    room: new MemoryRoom(0),
  });
  for (let i = 0; gate.isOpen && i < 200_000; i++) {
    rows.apply(edgeEntry(i));
    stats.apply(relayEntry(i, i, HOUR_US));
    if (i % 100 > 0) continue;
    rows.save(NOWHERE);
    stats.save(NOWHERE);
    memory.check();
  }
  if (gate.isOpen) throw new Error('the budget was never used up');
  return [[rows, stats], () => rows.heldBytes + stats.heldBytes];
}

const SCENARIOS: Readonly<Record<string, () => () => [object, () => number]>> = {
  'rows-not-saved': () => rowsNotSaved,
  'rows-of-hours': () => rowsOfHours,
  'sorted-rows': () => sortedRows,
  'busy-functions': () => statisticsOfBusyFunctions,
  'many-functions': () => statisticsOfManyFunctions,
  'loaded-statistics': () => {
    const table = savedStatistics();
    return () => loadedStatistics(table);
  },
  'names-that-came-once': () => namesThatCameOnce,
  budget: () => budget,
};

function liveBytes(): number {
  for (let i = 0; i < 3; i++) globalThis.gc!();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

const build = SCENARIOS[process.argv[2]]();
const beforeBytes = liveBytes();
const beforeNamesBytes = sharedNameBytes();
const [state, countedBytes] = build();
const heldBytes = liveBytes() - beforeBytes;
const result: HeldNames = { countedBytes: countedBytes() + sharedNameBytes() - beforeNamesBytes, heldBytes };
console.log(JSON.stringify(result));
// To be alive until here.
if (state === null) throw new Error();
