/** The part for ingest. */

import { expect, test } from 'vitest';
import { ago, EDGE, edgeEntry, LIMITED_KEY, type Rig, signIn } from './rig.js';

export function ingestTests(rig: () => Rig): void {
  test('partitions, rows, memory, and dead letters with a look at one', async () => {
    await rig().service.post(EDGE, [
      edgeEntry('kept', ago(30), '/rest/v1/a'),
      { project: 'kept', event_message: 'of no URL' },
      { event_message: 'whose?', metadata: {} },
    ]);
    const page = await rig().openSignedIn('#/ingest');
    await page.getByText('Ready', { exact: true }).waitFor();
    const region = (name: string) => page.getByRole('region', { name, exact: true });
    await region('Partitions').getByRole('rowheader', { name: EDGE }).waitFor();
    // A second reading makes a rate of the first.
    await region('Partitions')
      .getByRole('cell', { name: /^[\d.,]+\/s$/ })
      .first()
      .waitFor();
    expect(
      await region('Partitions')
        .getByRole('row', { name: new RegExp(EDGE) })
        .getByRole('cell')
        .allInnerTexts(),
    ).toEqual(expect.arrayContaining(['0']));
    expect(
      await region('Rows')
        .getByRole('row', { name: /^90 days/ })
        .innerText(),
    ).toMatch(/\(\d+ (s|min|h|d) ago\)/);
    expect(await region('Memory').getByRole('row', { name: /^all/ }).innerText()).toMatch(/[KM]iB/);
    expect(await region('Gaps').innerText()).toContain('No gaps to acknowledge.');
    expect(
      await region('Dead letters')
        .getByRole('row', { name: /missing-project/ })
        .innerText(),
    ).toMatch(/\t1$/);
    await page
      .getByText(/^Since the start \d+ edge entr(y|ies) had no URL: usage.api-counts does not count them/)
      .waitFor();
    await page.getByText(/^missing-project cloudflare/).click();
    await page.getByText('{"event_message":"whose?","metadata":{}}').waitFor();
    // It stays open while the figures around it change.
    await page.getByText(/as of/).waitFor();
    await expect
      .poll(() => page.locator('#ingest-summary').innerText(), { timeout: 5000 })
      .not.toBe(await page.locator('#ingest-summary').innerText());
    expect(await page.getByText('{"event_message":"whose?","metadata":{}}').isVisible()).toBe(true);
  });

  test('members are listed where several answer together, and not where one answers alone', async () => {
    const page = await rig().openSignedIn('#/ingest');
    const members = page.getByRole('region', { name: 'Members' });
    await page.getByRole('region', { name: 'Partitions' }).waitFor();
    expect(await members.isVisible()).toBe(false);
    const member = { zone: 'east', url: '', answers: true, readCount: 4, copyCount: 5, ageSeconds: 1.4 };
    await page.route('**/api/status', async (route) => {
      const status = (await (await route.fetch()).json()) as object;
      await route.fulfill({
        json: {
          ...status,
          members: [
            member,
            { ...member, zone: 'west', url: 'http://<b>b</b>:4100', answers: false, ageSeconds: null },
            { ...member, zone: '', url: 'http://c:4100', answers: null, readCount: 0, copyCount: 0 },
          ],
        },
      });
    });
    await members.getByRole('row', { name: /^this one/ }).waitFor();
    const lines = await members.locator('tbody tr').allInnerTexts();
    expect(lines.map((line) => line.split(/\s*\t\s*/))).toEqual([
      ['this one', 'east', 'yes', '4', '5', '1 s'],
      ['http://<b>b</b>:4100', 'west', 'no', '4', '5', 'not whole yet'],
      ['http://c:4100', '–', '…', '0', '0', '–'],
    ]);
  });

  test('a phone shows every figure of a partition, with its name, and still as a table', async () => {
    await rig().service.post(EDGE, [edgeEntry('kept', ago(30), '/rest/v1/a')]);
    const page = await rig().openSignedIn('#/ingest', { viewport: { width: 390, height: 800 } });
    const row = page.getByRole('region', { name: 'Partitions' }).getByRole('row', { name: EDGE });
    await row.waitFor();
    for (const cell of await row.getByRole('cell').all()) {
      const box = (await cell.boundingBox())!;
      expect(box.x >= 0 && box.x + box.width <= 390).toBe(true);
    }
    const names = "[...document.querySelectorAll('#ingest-partitions tbody tr:first-child td')]";
    expect(await page.evaluate(`${names}.map((cell) => getComputedStyle(cell, '::before').content)`)).toEqual(
      ['"Partition"', '"Next offset"', '"Lag"', '"Entries"', '"Rate"'],
    );
  });

  test('a key of some projects does not see it', async () => {
    const page = await rig().open('#/ingest');
    await signIn(page, LIMITED_KEY);
    await page.getByRole('alert').getByText('the status concerns all of them').waitFor();
    expect(await page.getByRole('heading', { name: 'Dead letters' }).isVisible()).toBe(false);
  });
}
