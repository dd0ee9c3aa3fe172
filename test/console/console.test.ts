/** The console in a real browser, by what a person sees: one browser and one service for all its parts. */

import { afterAll, afterEach, beforeAll, expect } from 'vitest';
import { accessibilityTests } from './accessibility.js';
import { describeBrowser } from './browser-suite.js';
import { chartTests } from './charts.js';
import { entryTests } from './entry.js';
import { exportTests } from './export.js';
import { goneTests } from './gone.js';
import { histogramTests } from './histogram.js';
import { hostileTests } from './hostile.js';
import { ingestTests } from './ingest.js';
import { keysTests } from './keys.js';
import { logsTests } from './logs.js';
import { notWholeTests } from './not-whole.js';
import { overviewTests } from './overview.js';
import { Rig } from './rig.js';
import { signInTests } from './sign-in.js';
import { zoneTests } from './zone.js';

describeBrowser('the console', () => {
  let rig: Rig;
  beforeAll(async () => {
    rig = await Rig.start();
  });
  afterEach(async () => {
    expect(rig.misdeeds.splice(0)).toEqual([]);
    for (const context of rig.browser.contexts()) await context.close();
  });
  afterAll(() => rig.stop());

  signInTests(() => rig);
  overviewTests(() => rig);
  logsTests(() => rig);
  histogramTests(() => rig);
  entryTests(() => rig);
  keysTests(() => rig);
  zoneTests(() => rig);
  exportTests(() => rig);
  chartTests(() => rig);
  ingestTests(() => rig);
  hostileTests(() => rig);
  goneTests(() => rig);
  notWholeTests(() => rig);
  accessibilityTests(() => rig);
});
