/**
 * A campaign of short histories beside the test suite:
 *
 *   npm run simulate -- [first seed] [count]      prints a line every thousand histories; exit code 1 for a disagreement
 */

import { simulationReport } from './campaign.js';
import { SOUND } from './simulated-service.js';

const [firstSeed = 1, count = 500_000] = process.argv.slice(2).map(Number);
const totals: Record<string, number> = {};
for (let seed = firstSeed; seed < firstSeed + count; seed += 1) {
  const report = await simulationReport(seed, SOUND, totals);
  if (report !== null) {
    process.stderr.write(`${report}\n`);
    process.exit(1);
  }
  if ((seed + 1 - firstSeed) % 1_000 === 0 || seed + 1 === firstSeed + count)
    process.stdout.write(`seeds ${firstSeed} to ${seed} agree: ${JSON.stringify(totals)}\n`);
}
