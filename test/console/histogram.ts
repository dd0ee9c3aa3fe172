/** The histogram above the logs, and zooming into the other charts. */

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { ago, EDGE, edgeEntry, RELAY, type Rig, relayEntry } from './rig.js';

/** Draws the pointer over a chart, from one share of its width to another. */
async function drag(page: Page, chart: string, from: number, to: number): Promise<void> {
  const over = page.locator(`${chart} .u-over`);
  await over.scrollIntoViewIfNeeded();
  const box = (await over.boundingBox())!;
  const y = box.y + box.height / 2;
  await page.mouse.move(box.x + from * box.width, y);
  await page.mouse.down();
  await page.mouse.move(box.x + to * box.width, y, { steps: 4 });
  await page.mouse.up();
  // At a bucket the legend says its values.
  await page.mouse.move(0, 0);
}

export function histogramTests(rig: () => Rig): void {
  test('histogram: how logs ended, by an interval as fine as the range, which it sets', async () => {
    await rig().service.post(EDGE, [
      ...[200, 200, 404, 503, 0].map((code, i) => edgeEntry('ended', ago(90 + i / 10), `/new/${i}`, code)),
      edgeEntry('ended', ago(30 * 60), '/half-an-hour'),
      edgeEntry('ended', ago(55 * 60), '/most-of-an-hour'),
      edgeEntry('ended', ago(5 * 3600), '/five-hours'),
    ]);
    const page = await rig().openSignedIn('#/logs?project=ended&range=1h');
    const legend = page.locator('#logs-histogram .legend');
    await legend.getByText(/OK\s+5/).waitFor();
    expect(await legend.innerText()).toMatch(/OK\s+5\s+Warnings\s+1\s+Errors\s+1/);
    // What is no status has no colour of its own.
    expect(
      await page.locator('.entry-line', { hasText: '/new/4' }).locator('.status').getAttribute('class'),
    ).toBe('status status-none');
    await page.getByLabel('Time', { exact: true }).selectOption({ label: 'Last 24 hours' });
    await legend.getByText(/OK\s+6/).waitFor();
    await page.getByLabel('Time', { exact: true }).selectOption({ label: 'Last hour' });
    await legend.getByText(/OK\s+5/).waitFor();

    await drag(page, '#logs-histogram', 0.3, 0.7);
    await page
      .getByRole('status')
      .filter({ hasText: /^1 entry/ })
      .waitFor();
    expect(await page.locator('.said').allInnerTexts()).toEqual(['GET /half-an-hour']);
    expect(page.url()).toContain('range=between');
    expect(await page.getByLabel('From (UTC)').inputValue()).toMatch(/T\d\d:\d\d$/);
    // What was chosen is marked and summed, the rest is still there to choose from.
    await legend.getByText(/OK\s+1/).waitFor();
    const clock = async (field: string) => (await page.getByLabel(`${field} (UTC)`).inputValue()).slice(11);
    expect(await legend.innerText()).toMatch(
      new RegExp(
        `${await clock('From')} to .*${await clock('To')}\\s+OK\\s+1\\s+Warnings\\s+0\\s+Errors\\s+0$`,
      ),
    );
    const counted = page.locator('#logs-histogram tbody tr').filter({ hasNotText: '–' });
    await page.locator('#logs-histogram summary').click();
    await expect.poll(() => counted.count()).toBeGreaterThan(1);
    await page.getByRole('button', { name: 'Show the whole range' }).click();
    await page
      .getByRole('status')
      .filter({ hasText: /^7 entries/ })
      .waitFor();
    await page.goBack();
    await page
      .getByRole('status')
      .filter({ hasText: /^1 entry/ })
      .waitFor();

    // The newest bar but one or two: a click on it is a minute.
    await page.getByLabel('Time', { exact: true }).selectOption({ label: 'Last 5 minutes' });
    await page
      .getByRole('status')
      .filter({ hasText: /^5 entries/ })
      .waitFor();
    const box = (await page.locator('#logs-histogram .u-over').boundingBox())!;
    const minute = Math.floor(ago(90) / 60e6);
    const buckets = Math.floor(Date.now() / 60e3) - Math.floor((Date.now() - 300e3) / 60e3) + 1;
    const place = (minute - Math.floor((Date.now() - 300e3) / 60e3) + 0.5) / buckets;
    await page.mouse.click(box.x + place * box.width, box.y + 20);
    await expect.poll(() => page.url()).toContain('range=between');
    const from = await page.getByLabel('From (UTC)').inputValue();
    const to = await page.getByLabel('To (UTC)').inputValue();
    expect(Date.parse(`${to}Z`) - Date.parse(`${from}Z`)).toBe(60_000);
  });

  test('a drag zooms into both charts of functions, a button or a double click shows the whole time', async () => {
    await rig().service.post(
      RELAY,
      [60, 1800].map((seconds) => relayEntry('zoomed', ago(seconds), 'f', 20)),
    );
    const page = await rig().openSignedIn('#/functions?project=zoomed');
    await page.locator('#functions-tiles').getByText('Invocations').waitFor();
    const whole = page.getByRole('button', { name: 'Show the whole range' });
    expect(await whole.count()).toBe(0);
    const leftmost = async () => {
      await page.locator('#functions-times .u-over').hover({ position: { x: 3, y: 20 } });
      return page.locator('#functions-times .when').innerText();
    };
    const first = await leftmost();
    await drag(page, '#functions-counts', 0.4, 0.6);
    await expect.poll(() => whole.count()).toBe(2);
    const minutes = (Date.parse(`${await leftmost()} 2000 UTC`) - Date.parse(`${first} 2000 UTC`)) / 60_000;
    expect(minutes).toBeGreaterThan(20);
    expect(minutes).toBeLessThan(28);
    await whole.first().click();
    await expect.poll(() => whole.count()).toBe(0);
    await drag(page, '#functions-times', 0.4, 0.6);
    await expect.poll(() => whole.count()).toBe(2);
    await page.locator('#functions-counts .u-over').dblclick();
    await expect.poll(() => whole.count()).toBe(0);
    // A shorter interval does not have what was zoomed into.
    await drag(page, '#functions-counts', 0.4, 0.6);
    await expect.poll(() => whole.count()).toBe(2);
    await page.getByLabel('15 min').check();
    await expect.poll(() => whole.count()).toBe(0);
  });
}
