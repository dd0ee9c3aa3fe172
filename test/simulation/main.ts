/**
 * Campaigns of histories beside the test suite, of the whole service or of the store alone:
 *
 *   npm run simulate -- [first seed] [count]             500,000 where it is left out
 *   npm run simulate -- stores [first seed] [count]      a million
 *
 * A line every thousand, or ten thousand, histories; exit code 1 for a disagreement.
 */

import { simulationReport } from './campaign.js';
import { SOUND } from './simulated-service.js';
import { storeHistoryReport } from './store-history.js';

const isOfStores = process.argv[2] === 'stores';
const kind = isOfStores
  ? { report: storeHistoryReport, count: 1_000_000, every: 10_000 }
  : { report: simulationReport, count: 500_000, every: 1_000 };
const [firstSeed = 1, count = kind.count] = process.argv.slice(isOfStores ? 3 : 2).map(Number);
const totals: Record<string, number> = {};
for (let seed = firstSeed; seed < firstSeed + count; seed += 1) {
  const report = await kind.report(seed, SOUND, totals);
  if (report !== null) {
    process.stderr.write(`${report}\n`);
    process.exit(1);
  }
  if ((seed + 1 - firstSeed) % kind.every === 0 || seed + 1 === firstSeed + count)
    process.stdout.write(`seeds ${firstSeed} to ${seed} agree: ${JSON.stringify(totals)}\n`);
}
