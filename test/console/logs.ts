/** The part for logs. */

import { expect, test } from 'vitest';
import { ago, EDGE, edgeEntry, type Rig } from './rig.js';

export function logsTests(rig: () => Rig): void {
  test('the newest entries are shown, older ones on demand, each opened as a tree, filtered by text', async () => {
    const entries = Array.from({ length: 250 }, (_, i) =>
      edgeEntry('many', ago(60 + i), `/rest/v1/row-${i}`, i === 7 ? 503 : 200),
    );
    await rig().service.post(EDGE, entries);
    const page = await rig().openSignedIn('#/logs?project=many');
    const list = page.getByRole('list', { name: 'Log entries' });
    const lines = list.locator('.entry-line');
    await lines.nth(99).waitFor();
    expect(await lines.count()).toBe(100);
    expect(await lines.first().innerText()).toMatch(/200\s+GET \/rest\/v1\/row-0$/);
    await page.getByRole('button', { name: 'Show older entries' }).click();
    // The oldest shown is asked for again, as others may be of its microsecond.
    await lines.nth(198).waitFor();
    await page.getByRole('button', { name: 'Show older entries' }).click();
    await lines.nth(249).waitFor();
    expect(await page.getByRole('button', { name: 'Show older entries' }).isVisible()).toBe(false);
    expect(await lines.nth(249).innerText()).toMatch(/row-249$/);

    await page.getByLabel('Filter shown').fill(' ROW-77');
    await page
      .getByRole('status')
      .filter({ hasText: /^1 of 250/ })
      .waitFor();
    await page.getByLabel('Filter shown').fill('nothing like it');
    await list.waitFor({ state: 'hidden' });
    await page.getByLabel('Filter shown').fill('503');
    const broken = list.getByRole('button', { name: /503/ });
    await broken.press('Enter');
    expect(await broken.getAttribute('aria-expanded')).toBe('true');
    await list.getByText('row-7', { exact: false }).first().waitFor();
    expect(await list.locator('.entry-body').innerText()).toContain('status_code: 503');
  });

  test('no entries, a time without any, and a time between two moments', async () => {
    await rig().service.post(EDGE, [edgeEntry('quiet', ago(7200), '/rest/v1/two-hours-ago')]);
    const page = await rig().openSignedIn('#/logs?project=nobody');
    await page.getByText('No entries.').waitFor();
    await page.getByRole('combobox', { name: 'Project' }).fill('quiet');
    await page.getByLabel('Time').selectOption({ label: 'Last hour' });
    await page.getByText('No entries in this time.').waitFor();
    const threeHoursAgo = new Date(ago(3 * 3600) / 1000).toISOString().slice(0, 19);
    await page.getByLabel('Time').selectOption({ label: 'From … to …' });
    await page.getByLabel('From (UTC)').fill(threeHoursAgo);
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByText('/rest/v1/two-hours-ago').waitFor();
    // The address leads there again.
    await page.reload();
    await page.getByText('/rest/v1/two-hours-ago').waitFor();
    // A time that is longer than the tier keeps entries.
    await page.getByLabel('Time').selectOption({ label: 'Last 7 days' });
    const summary = page.getByRole('status').filter({ hasText: /^1 entry back to/ });
    await summary.waitFor();
    expect(await summary.innerText()).toMatch(/UTC$/);
    await page.getByLabel('Tier').selectOption({ label: 'Free (1 day)' });
    await summary.filter({ hasText: /UTC; this tier keeps none older than 1 day$/ }).waitFor();
  });

  test('following shows what comes', async () => {
    await rig().service.post(EDGE, [edgeEntry('busy', ago(5), '/rest/v1/first')]);
    const page = await rig().openSignedIn('#/logs?project=busy');
    await page.getByRole('button', { name: 'Follow live' }).click();
    await page.getByText('/rest/v1/first').waitFor();
    await rig().service.post(EDGE, [
      edgeEntry('busy', ago(1), '/rest/v1/second'),
      edgeEntry('busy', ago(20), '/rest/v1/late'),
    ]);
    await page.getByText('/rest/v1/late').waitFor();
    expect(await page.locator('.said').allInnerTexts()).toEqual([
      'GET /rest/v1/second',
      'GET /rest/v1/first',
      'GET /rest/v1/late',
    ]);
    expect(await page.locator('.fresh .said').allInnerTexts()).toEqual([
      'GET /rest/v1/second',
      'GET /rest/v1/late',
    ]);
  });

  test('following pauses while the reader is away from the newest, and goes on where it was', async () => {
    await rig().service.post(
      EDGE,
      Array.from({ length: 100 }, (_, i) => edgeEntry('paused', ago(10 + i), `/row-${i}`)),
    );
    const page = await rig().openSignedIn('#/logs?project=paused&follow=1');
    await page.locator('.entry-line').nth(99).waitFor();
    await page.mouse.wheel(0, 2000);
    await page.getByText('Following is paused').waitFor();
    await rig().service.post(EDGE, [edgeEntry('paused', ago(1), '/meanwhile')]);
    // The readings of readiness go on: by the second, an entry would have been added.
    for (let reading = 0; reading < 2; reading++)
      await page.waitForResponse((response) => response.url().endsWith('/readyz'));
    expect(await page.getByText('/meanwhile').count()).toBe(0);
    await page.getByRole('button', { name: 'Go on' }).click();
    await page.getByText('/meanwhile').waitFor();
    expect(await page.getByText('Following is paused').isVisible()).toBe(false);
    expect(await page.locator('.fresh').count()).toBe(1);
  });
}
