/**
 * Which sorted runs have rows of a project, so that those without are never looked at. Runs that go are
 * passed over at once and taken out little by little: a compaction replaces up to a day's runs, each with
 * many thousand projects.
 */

import { nameBytes } from '../names.js';
import { PROJECTS_A_STEP } from './directory.js';
import type { SortedRun } from './sorted-run.js';

/** Of a project of one run, beside its name: its place in the map, and two lists. */
const PROJECT_BYTES = 208;

/** The room that the two lists get with their second run; what they need for each run is the run's. */
const LIST_ROOM_BYTES = 256;

export interface RunOfProject {
  readonly run: SortedRun;
  /** The project's place in the run's directory. */
  readonly projectIndex: number;
}

interface Entry {
  readonly project: string;
  /** Whether its lists have had two runs: what they got for that they keep. */
  hasRoom: boolean;
  /** Parallel. */
  readonly runs: SortedRun[];
  readonly indexes: number[];
}

export class ProjectRuns {
  readonly #entries = new Map<string, Entry>();
  #entryBytes = 0;
  /** Runs that are being added. */
  readonly #coming = new Set<SortedRun>();
  /** Runs that are gone and may still be in entries: since the pass under way began, and before. */
  #gone = new Set<SortedRun>();
  #sweptOut = new Set<SortedRun>();
  /** The pass under way over all entries. */
  #pass: Iterator<Entry> | null = null;

  get projectCount(): number {
    return this.#entries.size;
  }

  /** Memory of names and lists; what a project takes of each run is the run's. */
  get heldBytes(): number {
    return this.#entryBytes;
  }

  /** Of projects that are gone, some are among them until a sweep meets them. */
  names(): Iterable<string> {
    return this.#entries.keys();
  }

  /** The same text, the map's own where it has it. */
  nameLike(project: string): string {
    return this.#entries.get(project)?.project ?? project;
  }

  of(project: string): RunOfProject[] {
    const entry = this.#entries.get(project);
    const found: RunOfProject[] = [];
    if (entry === undefined) return found;
    for (let i = 0; i < entry.runs.length; i++) {
      const run = entry.runs[i];
      if (!this.#isGone(run) && !this.#coming.has(run)) found.push({ run, projectIndex: entry.indexes[i] });
    }
    return found;
  }

  /**
   * Adds it in steps: until it is shown, no project has it. From then on the run's names are those of the map, so that a
   * name is held once. O(projects of the run).
   */
  *adding(run: SortedRun): Generator<void, void> {
    this.#coming.add(run);
    const { projects } = run.directory;
    for (let i = 0; i < projects.length; i++) {
      if (i % PROJECTS_A_STEP === PROJECTS_A_STEP - 1) yield;
      const entry = this.#entries.get(projects[i]);
      if (entry === undefined) {
        const begun = { project: projects[i], hasRoom: false, runs: [run], indexes: [i] };
        this.#entries.set(begun.project, begun);
        this.#entryBytes += bytesOf(begun);
        continue;
      }
      if (!entry.hasRoom) this.#entryBytes += LIST_ROOM_BYTES;
      entry.hasRoom = true;
      projects[i] = entry.project;
      entry.runs.push(run);
      entry.indexes.push(i);
    }
  }

  show(run: SortedRun): void {
    this.#coming.delete(run);
  }

  delete(run: SortedRun): void {
    this.#coming.delete(run);
    this.#gone.add(run);
  }

  /** Goes on taking out what is gone, by so many projects. A project whose last run is gone is forgotten. */
  sweep(projectCount: number): void {
    if (this.#pass === null) {
      if (this.#gone.size === 0) return;
      this.#sweptOut = this.#gone;
      this.#gone = new Set();
      this.#pass = this.#entries.values();
    }
    for (let i = 0; i < projectCount; i++) {
      const next = this.#pass.next();
      if (next.done) {
        this.#pass = null;
        this.#sweptOut = new Set();
        return;
      }
      this.#takeOut(next.value);
    }
  }

  #takeOut(entry: Entry): void {
    const { project, runs, indexes } = entry;
    let kept = 0;
    for (let i = 0; i < runs.length; i++) {
      if (this.#isGone(runs[i])) continue;
      runs[kept] = runs[i];
      indexes[kept] = indexes[i];
      kept += 1;
    }
    runs.length = kept;
    indexes.length = kept;
    if (kept > 0) return;
    this.#entries.delete(project);
    this.#entryBytes -= bytesOf(entry);
  }

  #isGone(run: SortedRun): boolean {
    return this.#gone.has(run) || this.#sweptOut.has(run);
  }
}

function bytesOf({ project, hasRoom }: Entry): number {
  return PROJECT_BYTES + nameBytes(project) + (hasRoom ? LIST_ROOM_BYTES : 0);
}
