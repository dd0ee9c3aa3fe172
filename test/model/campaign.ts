/**
 * Runs histories against systems until one disagrees, and reports it: seed, the cut-down history, how to run
 * it again.
 */

import { drawHistory, type History } from './history.js';
import { type Disagreement, replay, type System } from './replay.js';
import { shrinkList } from './shrink.js';

export const STEPS_PER_HISTORY = 2_000;

/** Enough to bring 2,000 steps down to a handful; each try is a replay of some milliseconds. */
const MAX_SHRINK_TRIES = 1_500;

export type MakeSystem = (history: History) => System;

/** null when the history agrees; else the report of the disagreement, cut down. */
export async function disagreementReport(
  title: string,
  history: History,
  makeSystem: MakeSystem,
): Promise<string | null> {
  const found = await replay(history, makeSystem(history));
  if (found === null) return null;
  const small = await cutDown(history, found, makeSystem);
  const last = (await replay(small, makeSystem(history))) ?? found;
  return [
    `${title}: step ${found.stepIndex} disagrees with the model`,
    `now is ${last.nowUs}; ${JSON.stringify(last.step)}`,
    last.problem,
    `cut down to ${small.steps.length} of ${history.steps.length} steps, to be kept in kept-histories.ts:`,
    historyText(small),
  ].join('\n');
}

/** As above for the history of a seed. */
export async function seedReport(seed: number, makeSystem: MakeSystem): Promise<string | null> {
  const history = drawHistory(seed, STEPS_PER_HISTORY);
  const report = await disagreementReport(`seed ${seed}`, history, makeSystem);
  return report && `${report}\nrun it again: LOGRING_TEST_SEED=${seed} npx vitest run test/model/histories`;
}

async function cutDown(history: History, found: Disagreement, makeSystem: MakeSystem): Promise<History> {
  const fails = async (steps: History['steps']): Promise<boolean> =>
    (await replay({ ...history, steps }, makeSystem(history))) !== null;
  const upTo = history.steps.slice(0, found.stepIndex + 1);
  return { ...history, steps: await shrinkList(upTo, fails, MAX_SHRINK_TRIES) };
}

/** A step a line, so that it reads as a story. */
function historyText({ steps, ...start }: History): string {
  const lines = steps.map((step) => `  ${JSON.stringify(step)},`);
  return [`{ ...${JSON.stringify(start)}, steps: [`, ...lines, ']}'].join('\n');
}
