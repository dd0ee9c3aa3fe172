/** What the keyboard does beyond what browsers do. */

import { expect, test } from 'vitest';
import { ago, EDGE, edgeEntry, type Rig } from './rig.js';

export function keysTests(rig: () => Rig): void {
  test('keys lead to the project and the filter, from entry to entry, and are told', async () => {
    await rig().service.post(
      EDGE,
      [1, 2, 3].map((i) => edgeEntry('typed', ago(i), `/row-${i}`)),
    );
    const page = await rig().openSignedIn('#/logs');
    await page.getByText('Whose logs?').waitFor();
    const press = (key: string) => page.keyboard.press(key);
    const focused = page.locator(':focus');
    await press('/');
    expect(await focused.getAttribute('id')).toBe('logs-project');
    // In a field they are letters.
    await page.keyboard.type('typed');
    await press('Enter');
    await page.locator('.entry-line').nth(2).waitFor();
    expect(page.url()).toContain('project=typed');

    await focused.blur();
    await press('j');
    await press('j');
    expect(await focused.innerText()).toContain('/row-2');
    await press('Enter');
    expect(await focused.getAttribute('aria-expanded')).toBe('true');
    await press('k');
    await press('k');
    expect(await focused.innerText()).toContain('/row-1');
    await press('/');
    expect(await focused.getAttribute('id')).toBe('logs-filter');
    await focused.blur();
    await press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await press('Escape');
    expect(await page.getByRole('dialog').count()).toBe(0);
    await page.getByRole('button', { name: 'Keys' }).click();
    await page.getByRole('button', { name: 'Close' }).click();
    expect(await page.getByRole('dialog').count()).toBe(0);
  });
}
