/** A server that goes away, comes back, or no longer knows the key. */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { startChildService, TEST_KEY } from '../child-service.js';
import { freePort } from '../kafka/broker/free-port.js';
import { ago, EDGE, edgeEntry, postTo, type Rig, signIn } from './rig.js';

export function goneTests(rig: () => Rig): void {
  test('gone: that is said, what is shown stays, and with the server it goes on; until the key is another', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'logring-gone-'));
    const settings = { LOGRING_PORT: String(await freePort()), LOGRING_DATA_DIR: directory };
    const first = await startChildService(settings);
    await postTo(first.url, TEST_KEY, EDGE, JSON.stringify([edgeEntry('here', ago(5), '/rest/v1/seen')]));
    const page = await rig().open('#/logs?project=here&follow=1', {}, first.url);
    await signIn(page, TEST_KEY);
    await page.getByText('/rest/v1/seen').waitFor();
    await first.kill('SIGKILL');
    await page.getByRole('alert').getByText('Logring can’t be reached').waitFor();
    expect(await page.getByText('/rest/v1/seen').isVisible()).toBe(true);
    await page.getByRole('banner').getByText('Not reachable').waitFor();

    const second = await startChildService(settings);
    await postTo(second.url, TEST_KEY, EDGE, JSON.stringify([edgeEntry('here', ago(1), '/rest/v1/back')]));
    await page.getByText('/rest/v1/back').waitFor();
    expect(await page.getByRole('alert').allInnerTexts()).toEqual([]);
    await page.getByRole('banner').getByText('Ready', { exact: true }).waitFor();
    await second.kill('SIGKILL');

    const third = await startChildService({ ...settings, LOGRING_API_KEYS: 'another-key' });
    await page.getByText('Logring does not know this key any more.').waitFor();
    expect(await page.getByText('/rest/v1/back').count()).toBe(0);
    await third.kill('SIGTERM');
    rmSync(directory, { recursive: true });
  });
}
