/** What is shown, as files. */

import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { ago, EDGE, edgeEntry, type Rig } from './rig.js';

async function saved(page: Page, place: string, button: string): Promise<{ name: string; text: string }> {
  const download = page.waitForEvent('download');
  await page.locator(place).getByRole('button', { name: button, exact: true }).click();
  const file = await download;
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), 'utf8') };
}

export function exportTests(rig: () => Rig): void {
  test('what is shown is saved as NDJSON, and as CSV without formulas', async () => {
    const formulas = ['=1+1', '+1', '-1', '@A1', ' \t=HYPERLINK("https://attacker.example")'];
    const atUs = ago(60);
    await rig().service.post(EDGE, [
      ...formulas.map((event_message, i) => ({
        id: `i-${i}`,
        project: 'saved',
        timestamp: atUs - i,
        event_message,
        metadata: { a: event_message },
      })),
      edgeEntry('saved', atUs - 100, '/left-out'),
    ]);
    const page = await rig().openSignedIn('#/logs?project=saved&range=1h');
    await page.getByText('/left-out').waitFor();
    await page.getByLabel('Filter shown').fill('i-');
    await page
      .getByRole('status')
      .filter({ hasText: /^5 of 6/ })
      .waitFor();
    const ndjson = await saved(page, '#logs-export', 'NDJSON');
    expect(ndjson.name).toBe('logs-saved.ndjson');
    expect(
      ndjson.text
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).event_message),
    ).toEqual(formulas);

    const csv = await saved(page, '#logs-export', 'CSV');
    const lines = csv.text.trimEnd().split('\r\n');
    expect(lines[0]).toBe('"time","id","timestamp","event_message","metadata"');
    expect(lines.slice(1).map((line) => line.split(',')[3])).toEqual([
      '"\'=1+1"',
      '"\'+1"',
      '"\'-1"',
      '"\'@A1"',
      '"\' \t=HYPERLINK(""https://attacker.example"")"',
    ]);
    expect(lines[1]).toContain(`,${atUs},`);
    expect(lines[1]).toContain('"{""a"":""=1+1""}"');

    await page.locator('#logs-histogram summary').click();
    const chart = await saved(page, '#logs-histogram', 'CSV');
    expect(chart.text).toMatch(/^"time","timestamp","OK","Warnings","Errors"\r\n/);
    expect(chart.text).toMatch(/Z",\d+,6,0,0\r\n/);
  });
}
