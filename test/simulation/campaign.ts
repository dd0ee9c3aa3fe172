/** Plays the short histories of seeds; the first that disagrees with the model is cut down and reported. */

import { shrinkList } from '../model/shrink.js';
import { type Figures, Player } from './player.js';
import { drawShortHistory, type ShortHistory } from './short-history.js';
import type { Assembly } from './simulated-service.js';

/** Enough to bring 40 steps down to a handful. */
const MAX_SHRINK_TRIES = 300;

interface Outcome {
  readonly problem: string | null;
  readonly figures: Figures;
}

async function outcomeOf(history: ShortHistory, assembly: Assembly): Promise<Outcome> {
  const player = new Player(history, assembly);
  try {
    await player.begin();
    for (const step of history.steps) await player.play(step);
    await player.finish();
    return { problem: null, figures: player.figures };
  } catch (error) {
    const problem = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { problem, figures: player.figures };
  }
}

/** Adds what happened to `totals`; null when the history of the seed agrees, else the report. */
export async function simulationReport(
  seed: number,
  assembly: Assembly,
  totals: Record<string, number>,
): Promise<string | null> {
  const history = drawShortHistory(seed);
  const { problem, figures } = await outcomeOf(history, assembly);
  const { crashedAt, ...counts } = figures;
  for (const [name, count] of Object.entries(counts)) totals[name] = (totals[name] ?? 0) + count;
  for (const [operation, count] of Object.entries(crashedAt))
    totals[`at ${operation}`] = (totals[`at ${operation}`] ?? 0) + count;
  if (problem === null) return null;
  const fails = async (steps: ShortHistory['steps']): Promise<boolean> =>
    (await outcomeOf({ ...history, steps }, assembly)).problem !== null;
  const steps = await shrinkList(history.steps, fails, MAX_SHRINK_TRIES);
  const last = await outcomeOf({ ...history, steps }, assembly);
  return [
    `seed ${seed} disagrees with the model: ${problem}`,
    `cut down to ${steps.length} of ${history.steps.length} steps: ${last.problem}`,
    ...steps.map((step) => `  ${JSON.stringify(step)},`),
    `run it again: LOGRING_TEST_SEED=${seed} npx vitest run test/simulation/short-histories`,
  ].join('\n');
}
