/** What an opened entry offers: copies, a link to it, and what came before and after it. */

import { expect, test } from 'vitest';
import { ago, EDGE, edgeEntry, KEY, postTo, type Rig } from './rig.js';

export function entryTests(rig: () => Rig): void {
  test('an entry is copied as JSON, as a link that opens it, and as curl; and shown among its neighbours', async () => {
    const foundUs = ago(3000);
    await rig().service.post(EDGE, [
      ...Array.from({ length: 130 }, (_, i) =>
        edgeEntry('near', foundUs + 1_000_000 * (i + 1), `/after/${i}`),
      ),
      ...Array.from({ length: 130 }, (_, i) =>
        edgeEntry('near', foundUs - 1_000_000 * (i + 1), `/before/${i}`),
      ),
    ]);
    const metadata = `{"big":12345678901234567890,"exact":1.50,"quote":"it's","deep":${'['.repeat(98)}${']'.repeat(98)}}`;
    const url = rig().service.url;
    await postTo(
      url,
      KEY,
      EDGE,
      `[{"id":"this-one","project":"near","timestamp":${foundUs},"event_message":"found","metadata":${metadata}}]`,
    );
    const page = await rig().openSignedIn('#/logs?project=near&tier=PRO', {
      permissions: ['clipboard-read', 'clipboard-write'],
    });
    const copied = async (button: string, said: string) => {
      await page.getByRole('button', { name: button }).click();
      await page.getByRole('status').filter({ hasText: said }).waitFor();
      return page.evaluate<string>('navigator.clipboard.readText()');
    };
    await page.getByRole('button', { name: 'Show older entries' }).click();
    await page.locator('.entry-line', { hasText: 'found' }).click();
    const json = await copied('Copy JSON', 'Entry copied.');
    expect(JSON.parse(json)).toMatchObject({ id: 'this-one', timestamp: foundUs, event_message: 'found' });
    expect(json).toMatch(/"big": 12345678901234567\d{3}/);

    const curl = await copied('Copy as curl', 'Command copied.');
    const [, address] = /^curl -H "X-API-KEY: \$LOGRING_API_KEY" '([^']+)'$/.exec(curl)!;
    const answer = await fetch(address, { headers: { 'X-API-KEY': KEY } });
    const { result } = (await answer.json()) as { result: { id: string }[] };
    expect(result.map(({ id }) => id)).toEqual(['this-one']);

    const link = await copied('Copy link', 'Link copied.');
    await page.goto('about:blank');
    await page.goto(link);
    const opened = page.locator('.entry', { has: page.locator('[aria-expanded="true"]') });
    await opened.getByText('this-one').waitFor();
    expect(await opened.locator('.entry-line:focus').count()).toBe(1);
    // On both sides of it are its neighbours, though more came after it than an answer holds.
    const around = await page.locator('.said').allInnerTexts();
    const at = around.findIndex((said) => said.includes('found'));
    expect([around[at - 1], around[at + 1]]).toEqual(['GET /after/0', 'GET /before/0']);
    expect(await page.getByLabel('Time', { exact: true }).inputValue()).toBe('around');

    await page.locator('.entry-line', { hasText: '/before/0' }).click();
    await page
      .locator('.entry', { hasText: 'GET /before/0' })
      .getByRole('button', { name: 'Logs around this moment' })
      .click();
    await expect.poll(() => page.locator('.entry.sought .said').allInnerTexts()).toEqual(['GET /before/0']);
    await page.goBack();
    await expect.poll(() => page.locator('.entry.sought').innerText()).toContain('this-one');
  });

  test('an entry is copied also where the browser has no clipboard for pages, as without TLS', async () => {
    await rig().service.post(EDGE, [edgeEntry('plain', ago(10), '/rest/v1/a')]);
    const page = await rig().openSignedIn('#/overview');
    await page.addInitScript("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
    await page.goto(`${rig().service.url}/?again#/logs?project=plain`);
    await page.locator('.entry-line').click();
    await page.getByRole('button', { name: 'Copy link' }).click();
    await page.getByRole('status').filter({ hasText: 'Link copied.' }).waitFor();
    await page.getByLabel('Filter shown').press('Control+V');
    expect(await page.getByLabel('Filter shown').inputValue()).toMatch(
      /#\/logs\?project=plain.*range=around/,
    );
  });
}
