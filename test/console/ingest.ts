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
    await page.getByText('Ready: all answers are complete.').waitFor();
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
