/** Which sorted runs have rows of a project, so that those without are never looked at. */

import type { SortedRun } from './sorted-run.js';

export interface RunOfProject {
  readonly run: SortedRun;
  /** The project's place in the run's directory. */
  readonly projectIndex: number;
}

interface Entry {
  readonly project: string;
  /** Parallel. */
  readonly runs: SortedRun[];
  readonly indexes: number[];
}

export class ProjectRuns {
  readonly #entries = new Map<string, Entry>();

  *of(project: string): Iterable<RunOfProject> {
    const entry = this.#entries.get(project);
    if (entry === undefined) return;
    for (let i = 0; i < entry.runs.length; i++) yield { run: entry.runs[i], projectIndex: entry.indexes[i] };
  }

  /** From then on the run's names are those of the map, so that a name is held once. O(projects of the run). */
  add(run: SortedRun): void {
    const { projects } = run.directory;
    for (let i = 0; i < projects.length; i++) {
      let entry = this.#entries.get(projects[i]);
      if (entry === undefined) {
        entry = { project: projects[i], runs: [], indexes: [] };
        this.#entries.set(entry.project, entry);
      }
      projects[i] = entry.project;
      entry.runs.push(run);
      entry.indexes.push(i);
    }
  }

  /** A project whose last run goes is forgotten. O(projects of the run and their runs). */
  delete(run: SortedRun): void {
    for (const project of run.directory.projects) {
      const { runs, indexes } = this.#entries.get(project)!;
      const at = runs.indexOf(run);
      runs.splice(at, 1);
      indexes.splice(at, 1);
      if (runs.length === 0) this.#entries.delete(project);
    }
  }
}
