/**
 * A soak beside the test suite: real brokers, kills, and an answer held against the model sixty times a
 * second.
 *
 *   npm run soak                                          an hour and three quarters, as USUAL in options.ts has it
 *   npm run soak -- --killSeconds 0 --restartSeconds 0 --projects 10000 --budgetMb 1536 --seconds 9600
 *                                                         without a kill; begin it forty minutes before an hour: what counts
 *                                                         is two whole hours then. Rows of an hour are sorted an hour after the
 *                                                         first came, ten minutes before they expire, and what that takes must
 *                                                         weigh on both alike
 *   npm run soak -- --seconds 4500 --killSeconds 3600 --restartSeconds 0 --projects 10000 --budgetMb 1536
 *                                                         an hour without a kill, then a life that has loaded what is kept: its heap is as large
 *
 * Begin it shortly before half past the hour, and not before midnight: what counts is all but the first quarter, and in
 * that two hours of the clock must end, the second one well before the soak does. Then what the service keeps falls, and growth with time shows
 * beside growth with what is kept. With one end only, what the service holds of as many entries sooner or later after
 * an end of an hour passes for growth. Ctrl-C stops it; the same command goes on, from --directory. Exit code 1:
 * something was wrong, or grew.
 */

import { campaignOptions, stopSignal } from '../campaign-options.js';
import { USUAL } from './options.js';
import { runSoak } from './soak.js';

const tell = (text: string) => process.stdout.write(`${text}\n`);
const options = campaignOptions(USUAL, '.cache/soak');
const { isOver, figures, problems, findings } = await runSoak(options, tell, stopSignal());
if (!isOver) tell(`stopped; the same command goes on from ${options.directory}`);
for (const problem of problems.slice(0, 20)) tell(`WRONG ${problem}`);
for (const { text, isGood } of findings) tell(`${isGood ? 'good' : 'BAD '} ${text}`);
tell(`${figures.wrong} wrong answers on the way, ${problems.length} problems at the end`);
process.exit(figures.wrong + problems.length > 0 || findings.some(({ isGood }) => !isGood) ? 1 : 0);
