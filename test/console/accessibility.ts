/**
 * An accessibility checker over every part and the API's reference, light and dark, at desktop and phone width; and nothing wider
 * than the phone.
 */

import axe from 'axe-core';
import { expect, test } from 'vitest';
import { ago, EDGE, edgeEntry, RELAY, type Rig, relayEntry } from './rig.js';

interface Violation {
  readonly id: string;
  readonly impact: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

export function accessibilityTests(rig: () => Rig): void {
  test.each([
    ['light', 1280],
    ['dark', 390],
  ] as const)('%s, %i wide', async (colorScheme, width) => {
    await rig().service.post(
      EDGE,
      [200, 404, 503].map((code, i) =>
        edgeEntry('seen', ago(60 * i + 5), `/rest/v1/${'long/'.repeat(40)}`, code),
      ),
    );
    await rig().service.post(
      EDGE,
      Array.from({ length: 60 }, (_, i) => edgeEntry('seen', ago(200 + i), `/rest/v1/${i}`)),
    );
    await rig().service.post(
      RELAY,
      [1, 70, 130].map((seconds) => relayEntry('seen', ago(seconds), 'f', 12)),
    );
    await rig().service.post(EDGE, [{ metadata: 'none' }]);
    const page = await rig().open('', { colorScheme, viewport: { width, height: 800 } });
    const found: string[] = [];
    const check = async (what: string) => {
      await page.evaluate(axe.source);
      const { violations } = await page.evaluate<{ violations: Violation[] }>(
        "axe.run(document, { resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] })",
      );
      for (const { id, impact, nodes } of violations)
        found.push(`${what}: ${id} (${impact}): ${nodes.map((node) => node.html.slice(0, 150)).join(' … ')}`);
      const overflow = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth');
      if (overflow > 0) found.push(`${what}: ${overflow} pixels too wide`);
    };
    await page.getByLabel('API key').waitFor();
    await check('sign-in');
    await page.getByLabel('API key').fill('key-for-all');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'seen' }).waitFor();
    await check('choice');
    await page.getByRole('button', { name: 'seen' }).click();
    await page.locator('#overview-functions').getByRole('button', { name: 'f' }).waitFor();
    await check('overview');
    await page.getByRole('link', { name: 'Logs' }).click();
    await page.locator('.entry-line').first().click();
    await page.locator('#logs-histogram').getByText('Warnings').waitFor();
    await check('logs');
    await page.getByRole('button', { name: 'Keys' }).click();
    await check('keys');
    await page.getByRole('button', { name: 'Close' }).click();
    await page.getByRole('button', { name: 'Logs around this moment' }).click();
    await page.locator('.sought').waitFor();
    await page.getByRole('button', { name: 'Copy link' }).click();
    await page.locator('#logs-histogram summary').click();
    await page.getByRole('button', { name: 'UTC', exact: true }).click();
    await page.locator('.sought').getByText('Copy link').waitFor();
    await check('around, in local time');
    await page.getByRole('button', { name: 'Follow live' }).click();
    await page.locator('.entry-line').nth(40).waitFor();
    await rig().service.post(EDGE, [edgeEntry('seen', ago(0), '/rest/v1/fresh')]);
    await page.locator('.fresh').waitFor();
    await page.mouse.move(300, 500);
    await page.mouse.wheel(0, 2000);
    await page.getByText('Following is paused').waitFor();
    await check('following, paused');
    await page.getByRole('link', { name: 'Functions' }).click();
    await page.getByText('Execution time').waitFor();
    await page.getByText('Numbers').locator('visible=true').first().click();
    await check('functions');
    await page.getByRole('link', { name: 'Usage' }).click();
    await page.locator('#usage-tiles').getByText('REST').waitFor();
    await check('usage');
    await page.getByLabel('Project, or').fill('seen(');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.locator('#usage').getByRole('alert').waitFor();
    await check('refused');
    await page.getByRole('link', { name: 'Ingest' }).click();
    await page.locator('.samples summary').first().click();
    await check('ingest');
    await page.goto(`${rig().service.url}/reference`);
    await check('reference');
    expect(found).toEqual([]);
  });
}
