/**
 * The rows of `logs.all` within one shard: for each tier class runs of rows, as far back as the class is
 * kept.
 *
 *   '1d'   [h] … [h] [h] [h│h]            a row goes to the open run of its class and hour,
 *   '7d'   [d……] … [d……] [h] … [h] [h]    compactions make sorted runs of those that are closed (see compaction-policy.ts),
 *   '90d'  [d……] … … … [d……] [h] … [h]    expiry drops whole runs at the left, and hours within a day's run
 *
 *   rows/manifest   which runs there are; the only place that says so
 */

import { assert } from '../assert.js';
import type { EdgeEntry } from '../entry.js';
import {
  CLOSES_AT_A_TIME,
  SPILLED_BUSY_RUN_BYTES,
  SPILLED_RUN_BYTES,
  SWEEP_PROJECTS,
  UNREADABLE_RETRY_US,
} from '../limits.js';
import { SegmentError, type SegmentReader, type SegmentWriter } from '../segments.js';
import { finished } from '../steps.js';
import { RETENTION_US, type TierClass } from '../tier.js';
import { slotIndex, truncateUs, US_PER_HOUR } from '../time.js';
import type { FigureLine, View } from '../view.js';
import type { CompactionPlan } from './compaction.js';
import { nextCompaction } from './compaction-policy.js';
import { decodingDirectory, storedDirectory } from './directory.js';
import { FreshRun, removeFreshRun } from './fresh-run.js';
import { ROWS } from './kind.js';
import { OpenRuns } from './open-runs.js';
import { ProjectRuns, type RunOfProject } from './project-runs.js';
import { decodeManifest, encodeManifest, type RunInfo, runFile } from './run.js';
import { figuresOf } from './run-figures.js';
import { SortedRun } from './sorted-run.js';
import { UnreadableRun } from './unreadable-run.js';

type Run = FreshRun | SortedRun | UnreadableRun;

const MANIFEST = 'rows/manifest';

/** A compaction under way, and what will be known of its output. */
interface CompactionUnderWay {
  readonly plan: CompactionPlan;
  readonly inputs: readonly Run[];
  readonly info: RunInfo;
}

/** Views that there have been. */
let viewCount = 0;

export class RowsView implements View<EdgeEntry> {
  readonly kind = ROWS;
  readonly #reader: SegmentReader;
  readonly #fresh = new Set<FreshRun>();
  readonly #sorted = new Set<SortedRun>();
  readonly #unreadable = new Set<UnreadableRun>();
  /** When these were read again last. */
  #retriedUs = -Infinity;
  readonly #projects = new ProjectRuns();
  readonly #open = new OpenRuns();
  #nextId = 0;
  /** No other view of this process has it. */
  readonly #number = viewCount++;
  /** Of the last expiry; where the clock stood when a run was begun. */
  #nowUs = -Infinity;
  /** Runs with something to save, files to adopt, and runs and files to remove, since the last save. */
  readonly #unsaved = new Set<FreshRun>();
  readonly #built = new Set<string>();
  readonly #gone = new Set<Run | string>();
  #manifestIsDirty = false;
  /** How often the runs, or what is visible of them, have changed. */
  #changeCount = 0;
  #compaction: CompactionUnderWay | null = null;
  /** Of whose rows some may not be there yet. */
  #loading: FreshRun | null = null;
  /** Runs that could not be compacted. */
  readonly #stuck = new Set<Run>();

  /** The reader serves the blocks that were saved, for as long as the view lives. */
  constructor(reader: SegmentReader) {
    this.#reader = reader;
  }

  /** O(runs). */
  get heldBytes(): number {
    let bytes = this.#projects.heldBytes;
    for (const run of this.#fresh) bytes += run.heldBytes;
    for (const run of this.#sorted) bytes += run.heldBytes;
    return bytes + (this.#loading?.heldBytes ?? 0);
  }

  freshRuns(): Iterable<FreshRun> {
    return this.#fresh;
  }

  /** The projects that have sorted rows, in no order; some whose rows are gone may be among them. */
  sortedProjects(): Iterable<string> {
    return this.#projects.names();
  }

  /** Runs that may have rows of any project. */
  unreadableRuns(): Iterable<UnreadableRun> {
    return this.#unreadable;
  }

  /**
   * A disk may refuse for a moment: takes up the runs that can be read by now. Once in a while: a disk that fails may take
   * seconds to say so, and nothing else is done meanwhile.
   */
  retryUnreadable(nowUs: number): void {
    // A clock that was set back is no reason to wait for longer.
    if (Math.abs(nowUs - this.#retriedUs) < UNREADABLE_RETRY_US) return;
    this.#retriedUs = nowUs;
    for (const run of this.#unreadable) {
      const reason = finished(this.#loadIfReadable(run.info, this.#reader));
      if (reason === null) this.#unreadable.delete(run);
      else run.reason = reason;
    }
  }

  /** The sorted runs that have rows of a project, in no order. */
  sortedRunsOf(project: string): readonly RunOfProject[] {
    return this.#projects.of(project);
  }

  /**
   * Numbers which are the same as at an earlier call when no row of the project has come, no run has changed, and it is the
   * same view. O(fresh runs).
   */
  stateOf(project: string): readonly [view: number, changeCount: number, rowCount: number] {
    let rowCount = 0;
    for (const run of this.#fresh) rowCount += run.rowsOf(project)?.count ?? 0;
    return [this.#number, this.#changeCount, rowCount];
  }

  apply(entry: EdgeEntry): void {
    const hour = slotIndex(entry.timestampUs, US_PER_HOUR);
    const run = this.#open.runOf(entry.tierClass, hour) ?? this.#begin(entry.tierClass, hour);
    run.append(entry.timestampUs, entry.idHash, entry.project, entry.row);
    this.#unsaved.add(run);
  }

  /** Also closes runs whose hour is over by the clock. O(runs). */
  expire(nowUs: number, trustedUs = nowUs): boolean {
    this.#nowUs = nowUs;
    for (const run of this.#unsaved) this.#open.noteRows(run, nowUs);
    this.#projects.sweep(SWEEP_PROJECTS);
    for (const run of this.#runs()) {
      this.#hideExpired(run.info, trustedUs);
      if (isExpired(run.info)) this.#drop(run);
    }
    if (this.#compaction !== null) this.#hideExpired(this.#compaction.info, trustedUs);
    return this.#closeSome(this.#open.due(nowUs));
  }

  /**
   * Closes large runs, the largest first, without waiting for more or late rows: closed runs are compacted,
   * and a compacted one has no index a row. Rows that come after all begin another run. Runs of fewer bytes
   * stay.
   */
  spill(): boolean {
    return this.closeLarge(SPILLED_RUN_BYTES, SPILLED_BUSY_RUN_BYTES);
  }

  /** Of a run whose hour is not over, `busyBytes` and more. */
  closeLarge(runBytes: number, busyBytes: number): boolean {
    return this.#closeSome(this.#open.large(runBytes, busyBytes, this.#nowUs));
  }

  get hasUnsaved(): boolean {
    return this.#manifestIsDirty || this.#unsaved.size + this.#gone.size + this.#built.size > 0;
  }

  save(writer: SegmentWriter): void {
    for (const gone of this.#gone) {
      const file = typeof gone === 'string' ? gone : gone.file;
      if (typeof gone === 'string' || gone.info.kind === 'sorted') writer.remove(file);
      else removeFreshRun(writer, file);
    }
    this.#gone.clear();
    for (const run of this.#unsaved) run.save(writer);
    this.#unsaved.clear();
    for (const file of this.#built) writer.adopt(file);
    this.#built.clear();
    if (this.#manifestIsDirty) {
      const runs = this.#runs().map(({ info }) => info);
      writer.put(MANIFEST, encodeManifest(this.#nextId, runs));
    }
    this.#manifestIsDirty = false;
  }

  *load(reader: SegmentReader): Generator<void, void> {
    const manifest = reader.get(MANIFEST);
    if (manifest === null) return;
    const { nextId, runs } = decodeManifest(manifest);
    this.#nextId = nextId;
    for (const info of runs) {
      const reason = yield* this.#loadIfReadable(info, reader);
      if (reason !== null) this.#unreadable.add(new UnreadableRun(info, reason));
    }
  }

  /** Returns why it is not loaded; null when it is. */
  *#loadIfReadable(info: RunInfo, reader: SegmentReader): Generator<void, SegmentError | null> {
    try {
      yield* this.#loadRun(info, reader);
      return null;
    } catch (error) {
      // A run that rows are still added to has to be whole.
      if (!(error instanceof SegmentError) || !info.isClosed) throw error;
      return error;
    }
  }

  *#loadRun(info: RunInfo, reader: SegmentReader): Generator<void, void> {
    yield;
    if (info.kind === 'sorted') {
      this.#show(yield* this.#sortedRun(info, storedDirectory(reader, runFile(info))));
      return;
    }
    const run = new FreshRun(info, this.#reader);
    this.#loading = run;
    try {
      yield* run.load();
    } finally {
      this.#loading = null;
    }
    // What is added must go to the end of what the file should have.
    const blockCount = reader.blockCount(run.file);
    if (!info.isClosed && blockCount > 0) reader.block(run.file, blockCount - 1);
    this.#fresh.add(run);
    this.#changeCount += 1;
    if (!info.isClosed) this.#open.add(run, this.#nowUs);
  }

  /**
   * The next compaction, or null when none is due or one is under way. To be asked when the last save is
   * durable: the plan reads files only. It is under way until one of the three below.
   */
  planCompaction(nowUs: number): CompactionPlan | null {
    if (this.#compaction !== null) return null;
    const settled = [...this.#fresh].filter((run) => run.isSettled && !this.#unsaved.has(run));
    const candidates: Run[] = [...settled, ...this.#sorted].filter(
      (run) => !this.#stuck.has(run) && !this.#built.has(run.file),
    );
    const next = nextCompaction(candidates, nowUs);
    if (next === null) return null;
    const { tierClass } = next.runs[0].info;
    const info: RunInfo = {
      id: this.#nextId++,
      kind: 'sorted',
      tierClass,
      startUs: next.startUs,
      spanUs: next.spanUs,
      visibleFromUs: -Infinity,
      isClosed: true,
    };
    const plan: CompactionPlan = {
      output: runFile(info),
      inputs: next.runs.map(({ file, info: { kind, startUs, visibleFromUs } }) => {
        return { file, kind, startUs, visibleFromUs };
      }),
      rowByteCount: next.runs.reduce((sum, { rowByteCount }) => sum + rowByteCount, 0),
    };
    this.#compaction = { plan, inputs: next.runs, info };
    return plan;
  }

  /**
   * Puts the output, of which `directory` is what compactRuns returned, in the place of its inputs: in answers with the
   * last step, in the store with the next save.
   */
  *finishCompaction(plan: CompactionPlan, directory: Uint8Array | null): Generator<void, void> {
    const { inputs, info } = this.#underWay(plan);
    const run = directory === null ? null : yield* this.#sortedRun(info, directory, inputs);
    this.#endCompaction(plan);
    for (const input of inputs) this.#drop(input);
    this.#manifestIsDirty = true;
    if (run === null) return;
    if (isExpired(info)) {
      this.#projects.delete(run);
      this.#gone.add(plan.output);
    } else {
      this.#show(run);
      this.#built.add(plan.output);
    }
  }

  /** Leaves the inputs as they are, never to be compacted by this process. */
  failCompaction(plan: CompactionPlan): void {
    for (const run of this.#endCompaction(plan).inputs) this.#stuck.add(run);
  }

  /** Leaves the inputs as they are; the compaction may be planned again. */
  dropCompaction(plan: CompactionPlan): void {
    this.#endCompaction(plan);
  }

  figures(): FigureLine[] {
    return figuresOf(this.#runs());
  }

  #runs(): Run[] {
    return [...this.#fresh, ...this.#sorted, ...this.#unreadable];
  }

  #begin(tierClass: TierClass, hour: number): FreshRun {
    const run = new FreshRun(
      {
        id: this.#nextId++,
        kind: 'fresh',
        tierClass,
        startUs: hour * US_PER_HOUR,
        spanUs: US_PER_HOUR,
        visibleFromUs: -Infinity,
        isClosed: false,
      },
      this.#reader,
    );
    this.#fresh.add(run);
    this.#open.add(run, this.#nowUs);
    this.#manifestIsDirty = true;
    return run;
  }

  /** That is in no answer until it is shown. A name that `inputs` or a sorted run has already is held once. */
  *#sortedRun(info: RunInfo, directory: Uint8Array, inputs: readonly Run[] = []): Generator<void, SortedRun> {
    const freshInputs = inputs.filter((input) => input instanceof FreshRun);
    const shared = (name: string): string => {
      for (const input of freshInputs) {
        const rows = input.rowsOf(name);
        if (rows !== undefined) return rows.project;
      }
      return this.#projects.nameLike(name);
    };
    const run = new SortedRun(info, yield* decodingDirectory(directory, shared), this.#reader);
    yield* this.#projects.adding(run);
    return run;
  }

  #show(run: SortedRun): void {
    this.#sorted.add(run);
    this.#changeCount += 1;
    this.#projects.show(run);
  }

  /** The first few. Whether there were any. */
  #closeSome(runs: readonly FreshRun[]): boolean {
    for (const run of runs.slice(0, CLOSES_AT_A_TIME)) {
      run.close();
      this.#open.delete(run);
      this.#unsaved.add(run);
      this.#manifestIsDirty = true;
    }
    return runs.length > 0;
  }

  /**
   * Expiry goes by whole hours, so that it takes the same rows whether their hour is a run of its own or not.
   */
  #hideExpired(info: RunInfo, trustedUs: number): void {
    const visibleFromUs = truncateUs(trustedUs - RETENTION_US[info.tierClass], US_PER_HOUR);
    if (visibleFromUs <= Math.max(info.startUs, info.visibleFromUs)) return;
    info.visibleFromUs = visibleFromUs;
    this.#changeCount += 1;
    this.#manifestIsDirty = true;
  }

  #drop(run: Run): void {
    const sets: readonly Set<Run>[] = [this.#fresh, this.#sorted, this.#unreadable];
    if (!sets.some((runs) => runs.delete(run))) return;
    this.#changeCount += 1;
    if (run instanceof SortedRun) this.#projects.delete(run);
    else if (run instanceof FreshRun) {
      this.#open.delete(run);
      this.#unsaved.delete(run);
    }
    this.#stuck.delete(run);
    this.#built.delete(run.file);
    this.#gone.add(run);
    this.#manifestIsDirty = true;
  }

  #underWay(plan: CompactionPlan): CompactionUnderWay {
    const compaction = this.#compaction;
    assert(compaction !== null && compaction.plan === plan, 'a compaction ends that is not under way');
    return compaction;
  }

  #endCompaction(plan: CompactionPlan): CompactionUnderWay {
    const compaction = this.#underWay(plan);
    this.#compaction = null;
    return compaction;
  }
}

function isExpired({ startUs, spanUs, visibleFromUs }: RunInfo): boolean {
  return startUs + spanUs <= visibleFromUs;
}
