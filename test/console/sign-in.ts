/** Who may look: a key typed once, held by the tab alone. */

import { expect, test } from 'vitest';
import { KEY, LIMITED_KEY, type Rig, signIn } from './rig.js';

export function signInTests(rig: () => Rig): void {
  test('a wrong key is told so, a right one lasts as long as the tab, and signing out forgets it', async () => {
    const page = await rig().open('#/logs?project=shop');
    await signIn(page, 'schlüssel');
    expect(await page.getByRole('alert').filter({ hasText: 'visible ASCII' }).isVisible()).toBe(true);
    await signIn(page, 'wrong');
    await page.getByText('Logring does not know this key.').waitFor();
    await signIn(page, KEY);
    await page.getByRole('heading', { name: 'Logs' }).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: 'Logs' }).waitFor();
    expect(await page.evaluate('[localStorage.length, document.cookie].join()')).toBe('0,');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('API key').waitFor();
    expect(await page.evaluate('sessionStorage.length')).toBe(0);
    expect(await page.getByRole('navigation').isVisible()).toBe(false);
  });

  test('a key that is limited to projects is offered those only, and told what it may not see', async () => {
    await rig().service.post('cloudflare.logs.prod', [{ project: 'others', event_message: 'of others' }]);
    const page = await rig().open();
    await signIn(page, LIMITED_KEY);
    await page.getByRole('button', { name: 'shop' }).waitFor();
    expect(await page.locator('datalist option').count()).toBe(1);
    await page.getByRole('combobox', { name: 'Project' }).fill('others');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByRole('alert').getByText('this key is limited to other projects').waitFor();
    expect(await page.getByText('of others').count()).toBe(0);
  });
}
