/** A service that has nothing whole to answer from: every part says why. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startChildService, TEST_KEY } from '../child-service.js';
import { freePort } from '../kafka/broker/free-port.js';
import { ago, EDGE, edgeEntry, type Rig, signIn } from './rig.js';

export function notWholeTests(rig: () => Rig): void {
  test('how old answers are is said in the header, of the part that is shown', async () => {
    await rig().service.post(EDGE, [edgeEntry('old', ago(5), '/rest/v1/a')]);
    const page = await rig().openSignedIn('#/ingest');
    // As answers say it while the brokers are away, which the embedded log never is.
    await page.route('**/logs.all?*', async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, headers: { ...response.headers(), 'Logring-Stale-Seconds': '300' } });
    });
    await page.goto(`${rig().service.url}/#/logs?project=old`);
    await page.getByRole('banner').getByText('Ready, answers 5 min old').waitFor();
    await page.getByRole('link', { name: 'Usage' }).click();
    await page.getByRole('banner').getByText('Ready', { exact: true }).waitFor();
  });

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
      expect(await page.getByRole('banner').getByText('Not ready').isVisible()).toBe(true);
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
