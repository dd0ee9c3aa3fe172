/**
 * That commits, restarts, crashes and redeliveries leave no trace in the statistics, not even in a digest,
 * whose answers the model only bounds: a history with them is answered bit for bit as the same history
 * without.
 */

import { expect, test } from 'vitest';
import type { SystemStatsRow } from './answers.js';
import { STEPS_PER_HISTORY } from './campaign.js';
import { EngineSystem } from './engine-system.js';
import { drawHistory, type History, type Step } from './history.js';
import type { StatsQuestion } from './model.js';
import { replay } from './replay.js';

const HISTORY_COUNT = 12;
const EXACT_VALUE_COUNT = 512;

class Recording extends EngineSystem {
  readonly answers: (readonly SystemStatsRow[])[] = [];

  override stats(question: StatsQuestion, nowUs: number): readonly SystemStatsRow[] {
    const rows = super.stats(question, nowUs);
    this.answers.push(rows);
    return rows;
  }
}

/**
 * Without what depends on when it happens: expiry, which a crash may undo, and a rest that waits for a
 * delivery.
 */
function steady(step: Step): readonly Step[] {
  if (step.do === 'expire') return [];
  if (step.do !== 'deliver') return [step];
  const { stopAtTurn, ...delivery } = step;
  return [delivery];
}

function undisturbed(step: Step): readonly Step[] {
  if (
    step.do === 'commit' ||
    step.do === 'restart' ||
    step.do === 'crash' ||
    step.do === 'compact' ||
    step.do === 'redeliver'
  )
    return [];
  if (step.do !== 'deliver') return [step];
  const { commitAtTurn, ...delivery } = step;
  return [delivery];
}

async function answersTo(history: History): Promise<Recording['answers']> {
  const system = new Recording(history);
  expect(await replay(history, system)).toBeNull();
  return system.answers;
}

test('a history with restarts and crashes is answered as one without', async () => {
  let digestCount = 0;
  for (let seed = 1; seed <= HISTORY_COUNT; seed += 1) {
    const drawn = drawHistory(seed, STEPS_PER_HISTORY);
    const disturbed: History = { ...drawn, judgedBy: 'arrival', steps: drawn.steps.flatMap(steady) };
    const calm: History = { ...disturbed, steps: disturbed.steps.flatMap(undisturbed) };
    const answers = await answersTo(disturbed);
    expect(answers, `seed ${seed}`).toEqual(await answersTo(calm));
    digestCount += answers.flat().filter(({ count }) => count > EXACT_VALUE_COUNT).length;
  }
  expect(digestCount).toBeGreaterThan(20);
});
