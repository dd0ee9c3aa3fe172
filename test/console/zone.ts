/** UTC or local time; the rig's pages are in Asia/Kolkata, at +05:30. */

import { expect, test } from 'vitest';
import { ago, EDGE, edgeEntry, type Rig } from './rig.js';

export function zoneTests(rig: () => Rig): void {
  test('times are in UTC or local, in the list, the fields and the charts, and the address stays the same', async () => {
    const timestampUs = ago(7200);
    await rig().service.post(EDGE, [edgeEntry('zoned', timestampUs, '/a')]);
    const clock = (us: number) => new Date(us / 1000).toISOString().replace('T', ' ').slice(0, 19);
    const local = clock(timestampUs + 19_800_000_000);
    const page = await rig().openSignedIn('#/logs?project=zoned&range=1d');
    const time = page.locator('.entry-line time');
    await time.filter({ hasText: clock(timestampUs) }).waitFor();
    await page.getByRole('button', { name: 'UTC', exact: true }).click();
    await time.filter({ hasText: local }).waitFor();
    await page
      .getByRole('status')
      .filter({ hasText: `${local} local time` })
      .waitFor();
    await page.locator('#logs-histogram summary').click();
    const bucket = `${local.slice(11, 13)}:30`;
    const hour = Number(local.slice(14, 16)) < 30 ? (Number(local.slice(11, 13)) + 23) % 24 : null;
    const start = hour === null ? bucket : `${String(hour).padStart(2, '0')}:30`;
    await page.locator('#logs-histogram tbody tr').filter({ hasText: start }).first().waitFor();

    // What fields say is local too, what the address says is not.
    await page.getByLabel('Time', { exact: true }).selectOption({ label: 'From … to …' });
    await page.getByLabel('From (local time)').fill(local.replace(' ', 'T'));
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await expect
      .poll(() => decodeURIComponent(page.url()))
      .toContain(`from=${clock(timestampUs).replace(' ', 'T')}`);
    await time.filter({ hasText: local }).waitFor();
    await page.reload();
    await time.filter({ hasText: local }).waitFor();
    await page.getByRole('button', { name: 'Local time' }).click();
    await time.filter({ hasText: clock(timestampUs) }).waitFor();
    expect(await page.getByLabel('From (UTC)').inputValue()).toContain(clock(timestampUs).slice(11, 16));
  });
}
