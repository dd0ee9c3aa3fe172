/**
 * An abuse beside the test suite: everything that makes a service grow, all at once, while one client
 * behaves.
 *
 *   npm run abuse                                         ten minutes, as TEN_MINUTES in abuse.ts has it
 *   npm run abuse -- --descriptors 512                    idle connections use up all: ingest is paused for that,
 *                                                         so less has to be done at the same time
 *
 * Ctrl-C stops it; the same command goes on, from --directory. Exit code 1: a bound was not kept.
 */

import { campaignOptions, stopSignal } from '../campaign-options.js';
import { runAbuse, TEN_MINUTES } from './abuse.js';

const tell = (text: string) => process.stdout.write(`${text}\n`);
const options = campaignOptions(TEN_MINUTES, '.cache/abuse');
const { isOver, progress, findings } = await runAbuse(options, tell, stopSignal());
if (!isOver) tell(`stopped; the same command goes on from ${options.directory}`);
else {
  tell(`answers to attackers: ${JSON.stringify(progress.attackOutcomes)}`);
  for (const { path, outcome, ms, second } of progress.slowest)
    tell(`of the slowest of the well-behaved: ${ms.toFixed(0)} ms at ${second} s, ${path}: ${outcome}`);
  for (const { text, isGood } of findings) tell(`${isGood ? 'good' : 'BAD '} ${text}`);
}
process.exit(isOver && findings.some(({ isGood }) => !isGood) ? 1 : 0);
