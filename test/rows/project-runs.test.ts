/**
 * Which runs have rows of a project, against a naive twin: runs come and go, and sweeping changes no answer.
 */

import { expect, test } from 'vitest';
import type { RunDirectory } from '../../engine/rows/directory.js';
import { ProjectRuns } from '../../engine/rows/project-runs.js';
import type { RunInfo } from '../../engine/rows/run.js';
import { SortedRun } from '../../engine/rows/sorted-run.js';
import { finished } from '../../engine/steps.js';
import { Random } from '../../src/demo/random.js';
import { SegmentTable } from '../segment-table.js';

const PROJECTS = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];

function run(id: number, projects: string[]): SortedRun {
  const info: RunInfo = {
    id,
    kind: 'sorted',
    tierClass: '90d',
    startUs: 0,
    spanUs: 3_600_000_000,
    visibleFromUs: -Infinity,
    isClosed: true,
  };
  const column = new Float64Array(projects.length);
  const directory: RunDirectory = {
    rowCount: projects.length,
    rowByteCount: 0,
    blockFirstRows: new Uint32Array(0),
    blockFirstTimesUs: new Float64Array(0),
    projects,
    projectFirstRows: Uint32Array.from(column),
    projectRowCounts: Uint32Array.from(column),
    oldestUs: column,
    newestUs: column,
  };
  return new SortedRun(info, directory, new SegmentTable());
}

test.each(Array.from({ length: 10 }, (_, seed) => seed))('runs and twin agree: seed %i', (seed) => {
  const random = new Random(seed);
  const projectRuns = new ProjectRuns();
  let twin: SortedRun[] = [];
  /** Added, and not shown yet. */
  let coming: SortedRun | null = null;
  for (let step = 0; step < 500; step++) {
    const action = random.below(5);
    if (action === 0 && coming === null) {
      coming = run(
        step,
        PROJECTS.filter(() => random.chance(0.4)),
      );
      finished(projectRuns.adding(coming));
    } else if (action === 4 && coming !== null) {
      if (random.chance(0.2)) projectRuns.delete(coming);
      else {
        projectRuns.show(coming);
        twin.push(coming);
      }
      coming = null;
    } else if (action === 1 && twin.length > 0) {
      const gone = random.pick(twin);
      projectRuns.delete(gone);
      twin = twin.filter((one) => one !== gone);
    } else if (action === 2) {
      projectRuns.sweep(random.between(1, 4));
    }
    for (const project of PROJECTS) {
      const found = projectRuns.of(project).map((of) => `${of.run.info.id}/${of.projectIndex}`);
      const expected = twin.flatMap(({ info, directory }) => {
        const index = directory.projects.indexOf(project);
        return index < 0 ? [] : [`${info.id}/${index}`];
      });
      expect(found.sort()).toEqual(expected.sort());
    }
  }
  for (const gone of twin) projectRuns.delete(gone);
  if (coming !== null) projectRuns.delete(coming);
  // The pass under way, and one over everything.
  for (let pass = 0; pass < 2; pass++) projectRuns.sweep(PROJECTS.length + 1);
  expect(projectRuns.projectCount).toBe(0);
  expect(projectRuns.heldBytes).toBe(0);
});

test('what a project takes does not grow by runs that come and go', () => {
  const projectRuns = new ProjectRuns();
  const takes: number[] = [];
  const first = run(0, ['a']);
  finished(projectRuns.adding(first));
  projectRuns.show(first);
  for (let id = 1; id < 4; id++) {
    const added = run(id, ['a']);
    finished(projectRuns.adding(added));
    projectRuns.show(added);
    takes.push(projectRuns.heldBytes);
    projectRuns.delete(added);
    for (let pass = 0; pass < 2; pass++) projectRuns.sweep(2);
  }
  expect(takes).toEqual([takes[0], takes[0], takes[0]]);
});
