/** A service that has nothing whole to answer from: every part says why. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startChildService, TEST_KEY } from '../child-service.js';
import { freePort } from '../kafka/broker/free-port.js';
import { type Rig, signIn } from './rig.js';

export function notWholeTests(rig: () => Rig): void {
  test('why there are no answers is said on every part, never that there are no logs', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'logring-not-whole-'));
    const brokers = `127.0.0.1:${await freePort()}`;
    const service = await startChildService({ LOGRING_DATA_DIR: directory, LOGRING_KAFKA_BROKERS: brokers });
    const page = await rig().open('#/logs', {}, service.url);
    await signIn(page, TEST_KEY);
    const reason = /(has not|cannot|have not).* reached/;
    for (const part of ['Overview', 'Logs', 'Functions', 'Usage', 'Ingest']) {
      await page.getByRole('link', { name: part, exact: true }).click();
      await page
        .locator('#readiness')
        .filter({ hasText: /^Not ready:/ })
        .filter({ hasText: reason })
        .waitFor();
      if (part === 'Ingest') continue;
      await page
        .locator('.empty:visible')
        .getByText(/^Which projects there are is not known/)
        .waitFor();
      expect(await page.getByText('There are no logs yet').count()).toBe(0);
    }
    await page.goto(`${service.url}/#/logs?project=p`);
    await page.getByRole('alert').getByText(reason).waitFor();
    await service.kill('SIGKILL');
    rmSync(directory, { recursive: true });
  });
}
