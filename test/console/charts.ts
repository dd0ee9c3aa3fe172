/**
 * The parts for functions and usage: their figures, their tables, which say what the charts show, and their
 * choices.
 */

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { ago, EDGE, edgeEntry, RELAY, type Rig, relayEntry } from './rig.js';

/** Rows of the open table that have values, times left out: `2 | 1`. */
async function filledRows(page: Page, name: string): Promise<string[]> {
  const table = page.getByRole('region', { name: `${name} as a table` });
  const rows = await table.locator('tbody tr').allInnerTexts();
  return rows.map((row) => row.split('\t').slice(1).join(' | ')).filter((text) => !text.startsWith('–'));
}

async function openNumbers(page: Page, panel: number): Promise<void> {
  await page.locator('summary:visible').filter({ hasText: 'Numbers' }).nth(panel).click();
}

export function chartTests(rig: () => Rig): void {
  test('functions: what was called, in all intervals, of one function too, with gaps where nothing was', async () => {
    const calledUs = ago(90);
    await rig().service.post(RELAY, [
      ...[10, 20, 30].map((ms) => relayEntry('calls', calledUs, 'f-one', ms)),
      relayEntry('calls', calledUs, 'f-two', 4000, 500),
      relayEntry('calls', ago(60 * 20), 'f-two', 7),
    ]);
    const page = await rig().openSignedIn('#/functions?project=calls');
    await page.getByText('Invocations5', { exact: false }).waitFor();
    expect(await page.locator('#functions-tiles').innerText()).toMatch(
      /Invocations\s+5\s+Errors\s+1 20 %\s+95th percentile\s+4 s in the slowest minute\s+99th percentile\s+4 s in the slowest minute/,
    );
    await page.getByText(/59 of 61 buckets without any call/).waitFor();
    await openNumbers(page, 0);
    await expect.poll(() => filledRows(page, 'Invocations')).toEqual(['4 | 1', '1 | 0']);
    await page.getByLabel('Function', { exact: true }).selectOption({ label: 'f-one (3)' });
    await page.getByText(/60 of 61 buckets/).waitFor();
    await openNumbers(page, 1);
    await expect.poll(() => filledRows(page, 'Execution time')).toEqual(['20 ms | 30 ms | 30 ms']);
    for (const [label, filled] of [
      ['5 min', 1],
      ['15 min', 1],
      ['1 day', 1],
      ['7 days', 1],
    ] as const) {
      await page.getByLabel(label, { exact: true }).check();
      await expect.poll(async () => (await filledRows(page, 'Invocations')).length).toBe(filled);
    }
    await page.getByText('The first day is shown whole: it began before the last 7 days.').waitFor();
    // The choice is in the address, and goes by the keyboard.
    expect(page.url()).toContain('function=f-one&interval=7day');
    await page.getByLabel('7 days').press('ArrowLeft');
    expect(page.url()).toContain('interval=1day');
    await page.getByRole('link', { name: 'Usage' }).press('Enter');
    await page.getByRole('heading', { name: 'Usage' }).waitFor();
    expect(await page.getByLabel('Project, or').inputValue()).toBe('calls');
  });

  test('functions: a project without any', async () => {
    const page = await rig().openSignedIn('#/functions?project=nobody&interval=5min');
    await page.getByText('No function of nobody was called in the last 5 min.').waitFor();
    await page.getByLabel('1 hour').check();
    await page.getByText('No function of nobody was called in the last hour.').waitFor();
  });

  test('usage: requests by area, of a project or an expression; a bad expression is told so', async () => {
    const askedUs = ago(120);
    const paths = ['/rest/v1/a', '/rest/v1/b', '/storage/v1/c', '/auth/v1/d', '/realtime/v1/e', '/other'];
    await rig().service.post(
      EDGE,
      paths.map((path) => edgeEntry('areas', askedUs, path)),
    );
    const page = await rig().openSignedIn('#/usage?project=areas');
    await page.locator('#usage-tiles').getByText('REST').waitFor();
    expect(await page.locator('#usage-tiles').innerText()).toMatch(
      /REST\s+2\s+Storage\s+1\s+Auth\s+1\s+Realtime\s+1/,
    );
    await openNumbers(page, 0);
    await expect.poll(() => filledRows(page, 'Requests')).toEqual(['2 | 1 | 1 | 1']);
    await page.getByLabel('Project, or').fill('areas.*/v1/[ab]$');
    await page.getByLabel('7 days by day').check();
    await expect.poll(() => filledRows(page, 'Requests')).toEqual(['2 | 0 | 0 | 0']);
    // The chart goes with the expression that it was of.
    await page.getByLabel('Project, or').fill('areas(');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.locator('#usage').getByRole('alert').getByText('project').waitFor();
    expect(await page.locator('#usage-shown').isVisible()).toBe(false);
    await page.getByLabel('Hour by hour').check();
    await page.getByLabel('Project, or').fill('areas');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByText(/two bars: the first has what is left/).waitFor();
    await page.getByLabel('Project, or').fill('nobody-at-all');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByText('No requests match nobody-at-all in this time.').waitFor();
    expect(await page.getByRole('alert').allInnerTexts()).toEqual([]);
  });
}
