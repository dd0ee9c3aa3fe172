/**
 * Log text that would like to be more than text: it is only ever shown. The rig notes what it must not bring
 * about.
 */

import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { ago, EDGE, KEY, postTo, RELAY, type Rig, relayEntry } from './rig.js';

const FAR = 'https://attacker.example';
/**
 * Each would run, load or open something where text is taken for markup, an attribute, an address or code.
 */
const INJECTIONS = [
  `<script>alert(1)</script><script src="${FAR}/a.js"></script>`,
  `<img src=x onerror="alert(2)"><img src="${FAR}/b.png">`,
  `"><svg onload=alert(3)><iframe src="${FAR}/c"></iframe>`,
  `' autofocus onfocus='alert(4)' style='background:url(${FAR}/d)`,
  `javascript:alert(5)//`,
  `<link rel="stylesheet" href="${FAR}/e.css"><base href="${FAR}/">`,
  `</ol></section></main><form action="${FAR}/f"><input name=key id=key>`,
  `<details open ontoggle=alert(6)><a href="${FAR}/g" target=_blank>click</a>`,
  '{{constructor.constructor("alert(7)")()}}$'.concat('{alert(8)}'),
  '\u202etxt.exe\u2066 \u0000\u001b[31m \ufeff',
];
/** Elements that the page itself has none of, or a fixed number. */
const FOREIGN =
  'main script, main img, main svg, main iframe, main link, main base, main a, main style, main object';

async function elementsIn(page: Page): Promise<string> {
  return `${await page.locator(FOREIGN).count()} ${await page.locator('form').count()} ${await page.locator('#key').count()}`;
}

export function hostileTests(rig: () => Rig): void {
  test('in logs, functions, usage and dead letters', async () => {
    const shared = Object.fromEntries(
      INJECTIONS.map((text, i) => [`${text} ${i}`, [text, { [text]: text }]]),
    );
    await rig().service.post(
      EDGE,
      INJECTIONS.map((text, i) => ({
        project: INJECTIONS[0],
        id: text,
        timestamp: ago(60 + i),
        event_message: text,
        metadata:
          i % 2 === 0
            ? { ...shared, __proto__x: text }
            : [
                {
                  request: [{ method: text, path: text, search: text, url: text }],
                  response: { status_code: text },
                },
              ],
      })),
    );
    await rig().service.post(
      RELAY,
      INJECTIONS.map((text) => relayEntry(INJECTIONS[0], ago(30), text, 10)),
    );
    await rig().service.post(
      EDGE,
      // Samples are kept of the last.
      INJECTIONS.toReversed().map((text) => ({ event_message: text, [text]: text })),
    );

    const settings = new URLSearchParams({ project: INJECTIONS[0], tier: 'ENTERPRISE' }).toString();
    const page = await rig().openSignedIn(`#/logs?${settings}`);
    const lines = page.locator('.entry-line');
    await lines.nth(INJECTIONS.length - 1).waitFor();
    const before = '0 5 1';
    expect(await elementsIn(page)).toBe(before);
    for (const line of await lines.all()) await line.click();
    // A branch is filled a turn after it is opened.
    for (let depth = 0; depth < 4; depth++)
      await page.evaluate(
        "for (const branch of document.querySelectorAll('.tree details')) branch.open = true",
      );
    const text = await page.locator('#logs-entries').innerText();
    for (const injection of INJECTIONS.slice(0, -1)) expect(text).toContain(injection);
    // What turns text around, or shows nothing, is spelt out.
    expect(text).toContain('\\u202etxt.exe\\u2066 \\u0000\\u001b[31m \\ufeff');
    expect(await elementsIn(page)).toBe(before);
    await page.getByLabel('Filter shown').fill('<script>');
    expect(await elementsIn(page)).toBe(before);

    await page.getByRole('link', { name: 'Functions' }).click();
    await page.getByRole('option', { name: 'onerror' }).first().waitFor({ state: 'attached' });
    expect(await page.locator('#functions-function option').count()).toBe(INJECTIONS.length + 1);
    await page.getByLabel('Function', { exact: true }).selectOption(INJECTIONS[2]);
    await page.locator('#functions-tiles').getByText('Invocations').waitFor();
    expect(await elementsIn(page)).toBe(before);

    await page.getByRole('link', { name: 'Usage' }).click();
    await page.getByText('No requests match').waitFor();
    expect(await elementsIn(page)).toBe(before);

    await page.getByRole('link', { name: 'Overview' }).click();
    await page.locator('#overview-functions').getByRole('button', { name: 'onerror' }).first().waitFor();
    expect(await elementsIn(page)).toBe(before);

    await page.getByRole('link', { name: 'Ingest' }).click();
    await page.locator('.samples summary').first().waitFor();
    for (const sample of await page.locator('.samples summary').all()) await sample.click();
    await page.locator('pre').filter({ hasText: 'onerror=' }).first().waitFor();
    expect(await elementsIn(page)).toBe(before);
    expect(rig().service.url).toBe(new URL(page.url()).origin);
  });

  test('in the address, and in what the server refuses', async () => {
    const page = await rig().openSignedIn(
      `#/${encodeURIComponent(INJECTIONS[1])}?project=${encodeURIComponent(INJECTIONS[2])}&tier=${encodeURIComponent(INJECTIONS[3])}`,
    );
    await page.getByText('No entries of').waitFor();
    await page.goto(`${rig().service.url}/#/usage?project=${encodeURIComponent(`${INJECTIONS[1]}(`)}`);
    await page.getByRole('alert').getByText('onerror').waitFor();
    expect(await elementsIn(page)).toBe('0 5 1');
  });

  test('numbers are shown as they were written, and what nests as deep as it may is found by a filter', async () => {
    const deep = `${'['.repeat(99)}1${']'.repeat(99)}`;
    const entry = (metadata: string) => `{"project":"odd","timestamp":${ago(10)},"metadata":${metadata}}`;
    await postTo(
      rig().service.url,
      KEY,
      EDGE,
      `[${entry('{"big":12345678901234567890,"exact":1.50,"__proto__":{"x":1}}')},${entry(`{"deep":${deep}}`)}]`,
    );
    const page = await rig().openSignedIn('#/logs?project=odd');
    const lines = page.locator('.entry-line');
    await lines.nth(1).waitFor();
    for (const line of await lines.all()) await line.click();
    const text = await page.locator('#logs-entries').innerText();
    expect(text).toContain('__proto__');
    expect(text).toMatch(/big: 12345678901234567\d{3}/);
    await page.getByLabel('Filter shown').fill('deep');
    await page.getByRole('status').filter({ hasText: '1 of 2' }).waitFor();
  });
}
