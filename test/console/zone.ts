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
    await page.getByRole('button', { name: 'Local' }).click();
    await time.filter({ hasText: clock(timestampUs) }).waitFor();
    expect(await page.getByLabel('From (UTC)').inputValue()).toContain(clock(timestampUs).slice(11, 16));
  });

  test('a link into the hour that clocks repeat keeps its time, until that is edited', async () => {
    const page = await rig().openSignedIn('#/logs', { timezoneId: 'Europe/Berlin' });
    await page.getByRole('button', { name: 'UTC', exact: true }).click();
    const search = 'range=between&from=2026-10-25T01:10:00&to=2026-10-25T01:20:00';
    const asked = page.waitForRequest((request) => request.url().includes('logs.all'));
    await page.goto(`${rig().service.url}/#/logs?project=twice&${search}`);
    expect(decodeURIComponent((await asked).url())).toContain('iso_timestamp_end=2026-10-25T01:19:59.999999');
    expect(await page.getByLabel('From (local time)').inputValue()).toBe('2026-10-25T02:10');
    await page.getByLabel('To (local time)').fill('2026-10-25T04:30');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await expect
      .poll(() => decodeURIComponent(page.url()))
      .toContain('from=2026-10-25T01:10:00&to=2026-10-25T03:30:00');
  });

  test('a link to the end of all time is shown, east of UTC too', async () => {
    const page = await rig().openSignedIn('#/logs');
    await page.getByRole('button', { name: 'UTC', exact: true }).click();
    const end = encodeURIComponent('+275760-09-13T00:00:00');
    await page.goto(`${rig().service.url}/#/logs?project=nobody&range=between&from=${end}`);
    await page.getByText('No entries.').waitFor();
    expect(await page.getByLabel('From (local time)').inputValue()).toBe('');
  });
}
