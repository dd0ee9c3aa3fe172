/** The overview of a project, which comes first. */

import { expect, test } from 'vitest';
import { ago, EDGE, edgeEntry, RELAY, type Rig, relayEntry } from './rig.js';

export function overviewTests(rig: () => Rig): void {
  test('a project that is chosen is shown at a glance, and leads on to its logs and functions', async () => {
    await rig().service.post(
      EDGE,
      [200, 200, 404, 503].map((code, i) => edgeEntry('glance', ago(100 + i / 10), `/rest/v1/${i}`, code)),
    );
    await rig().service.post(RELAY, [
      relayEntry('glance', ago(40), 'quick', 12),
      relayEntry('glance', ago(41), 'slow', 900, 500),
    ]);
    const page = await rig().openSignedIn();
    await page.getByRole('combobox', { name: 'Project' }).fill('glance');
    await page.keyboard.press('Enter');
    await page.locator('#overview-tiles').getByText('Requests').waitFor();
    expect(await page.locator('#overview-tiles').innerText()).toMatch(
      /Requests\s+4\s+Error rate\s+25 % 1 error\s+Warnings\s+25 % 1 request\s+Invocations\s+2\s+Invocation errors\s+50 % 1 error/,
    );
    expect(await page.locator('#overview-api .legend').innerText()).toMatch(/REST\s+4/);
    const ranking = page.getByRole('region', { name: 'Slowest functions' });
    await ranking.getByRole('rowheader', { name: 'slow' }).waitFor();
    const lines = await ranking.locator('tbody tr').allInnerTexts();
    expect(lines.map((line) => line.split(/\s+/).slice(0, 3).join(' '))).toEqual(['slow 1 100', 'quick 1 0']);
    expect(lines[0]).toContain('900 ms');

    await ranking.getByRole('button', { name: 'quick' }).click();
    await page.getByRole('heading', { name: 'Functions' }).waitFor();
    expect(await page.getByLabel('Function', { exact: true }).inputValue()).toBe('quick');
    await page.goBack();
    const over = page.locator('#overview-requests .u-over');
    const box = (await over.boundingBox())!;
    await over.click({ position: { x: box.width - 10, y: 20 } });
    await page.getByRole('heading', { name: 'Logs' }).waitFor();
    expect(page.url()).toMatch(/#\/logs\?project=glance&range=between&from=/);
  });

  test('an overview of nothing, and of an expression that usage refuses', async () => {
    await rig().service.post(EDGE, [edgeEntry('half(', ago(10), '/rest/v1/a')]);
    const page = await rig().openSignedIn('#/overview?project=nobody');
    await page.getByText('No entries of nobody in the last hour.').waitFor();
    await page.goto(`${rig().service.url}/#/overview?project=half(`);
    await page.locator('#overview-api .hint').filter({ hasText: 'project' }).waitFor();
    expect(await page.locator('#overview-tiles').innerText()).toMatch(/Requests\s+1/);
  });

  test('what is refused for now is not shown as none, nor as 0', async () => {
    await rig().service.post(EDGE, [edgeEntry('half-whole', ago(10), '/rest/v1/a')]);
    const page = await rig().openSignedIn('#/overview');
    await page.route('**/functions.invocation-stats?*', (route) =>
      route.fulfill({ status: 503, json: { error: { message: 'not read to the end yet' } } }),
    );
    await page.goto(`${rig().service.url}/#/overview?project=nobody-yet`);
    await page.getByText('not read to the end yet').waitFor();
    expect(await page.getByText('No entries of').count()).toBe(0);
    await page.goto(`${rig().service.url}/#/overview?project=half-whole`);
    await page.locator('#overview-tiles').getByText('Requests', { exact: true }).waitFor();
    expect(await page.locator('#overview-tiles').innerText()).toMatch(
      /Requests\s+1\s[\s\S]*Invocations\s+–\s+Invocation errors\s+–$/,
    );
  });

  test('a project whose functions are refused is not shown those of another', async () => {
    for (const project of ['ranked', 'unranked'])
      await rig().service.post(RELAY, [relayEntry(project, ago(40), `of-${project}`, 12)]);
    const page = await rig().openSignedIn('#/overview?project=ranked');
    const ranking = page.getByRole('region', { name: 'Slowest functions' });
    await ranking.getByRole('rowheader', { name: 'of-ranked' }).waitFor();
    await page.route('**/api/functions?*', (route) =>
      route.fulfill({ status: 503, json: { error: { message: 'not now' } } }),
    );
    await page.getByRole('combobox', { name: 'Project' }).fill('unranked');
    await page.keyboard.press('Enter');
    await ranking.getByText('not now').waitFor();
    expect(await ranking.locator('tbody').innerText()).toBe('not now');
  });

  test('a project that is typed but not submitted changes nothing of what is shown and asked again', async () => {
    await rig().service.post(EDGE, [edgeEntry('kept', ago(30), '/rest/v1/a')]);
    await rig().service.post(RELAY, [relayEntry('kept', ago(30), 'f', 12)]);
    const page = await rig().openSignedIn();
    await page.clock.install();
    for (const [part, endpoint] of [
      ['overview', 'logs.event-counts'],
      ['functions', 'functions.invocation-stats'],
      ['usage', 'usage.api-counts'],
    ]) {
      await page.goto(`${rig().service.url}/#/${part}?project=kept`);
      await page.locator(`#${part}-tiles dt`).first().waitFor();
      await page.locator(`#${part}-project`).fill('');
      const again = page.waitForRequest((request) => request.url().includes(endpoint));
      await page.clock.fastForward(31_000);
      expect((await again).url()).toContain('project=kept');
      expect(await page.locator(`#${part}-tiles`).isVisible()).toBe(true);
    }
    expect(await page.getByRole('alert').allInnerTexts()).toEqual([]);
  });

  test('what is chosen is computed, and computed again, past the result cache', async () => {
    await rig().service.post(EDGE, [edgeEntry('cached', ago(30), '/rest/v1/a')]);
    await rig().service.post(RELAY, [relayEntry('cached', ago(30), 'f', 12)]);
    const page = await rig().openSignedIn('#/overview');
    await page.clock.install();
    const asked: Promise<string | null>[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/query/')) asked.push(request.headerValue('Cache-Control'));
    });
    await page.goto(`${rig().service.url}/#/overview?project=cached`);
    await expect.poll(() => asked.length).toBe(4);
    await page.getByRole('rowheader', { name: 'f' }).waitFor();
    await page.clock.fastForward(31_000);
    await expect.poll(() => asked.length).toBe(8);
    expect(new Set(await Promise.all(asked))).toEqual(new Set(['no-cache']));
  });
}
