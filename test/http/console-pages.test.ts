/**
 * The console's files over HTTP: what stands around them, revalidation on both servers, and the setting that
 * turns them off.
 */

import { gunzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { consolePages } from '../../src/http/console/console-pages.js';
import { BACK_ENDS, RunningServer, statusesOf } from './running-server.js';
import { bodyOf, TestService } from './service.js';

const service = new TestService({ pages: consolePages() });

test('the page runs nothing but our own scripts, and says so', async () => {
  const answer = await service.ask('/', { 'X-API-KEY': '' });
  const headers = new Map(answer.headers);
  expect(answer.status).toBe(200);
  expect(headers.get('Content-Type')).toBe('text/html; charset=utf-8');
  expect(headers.get('X-Content-Type-Options')).toBe('nosniff');
  expect(headers.get('Referrer-Policy')).toBe('no-referrer');
  const policy = headers.get('Content-Security-Policy');
  expect(policy).toMatch(/default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'/);
  expect(policy).toMatch(/frame-ancestors 'none'/);
  expect(policy).not.toMatch(/unsafe|\*|http/);
  expect(bodyOf(answer)).not.toMatch(/<script(?![^>]* src=)|<style|\sstyle=|\son[a-z]+=/);
});

test('all that the page and its scripts load is there, with its type', async () => {
  const asked = new Set<string>();
  const follow = async (path: string): Promise<void> => {
    if (asked.has(path)) return;
    asked.add(path);
    const answer = await service.ask(path, { 'X-API-KEY': '' });
    expect(`${path} ${answer.status}`).toBe(`${path} 200`);
    const type = new Map(answer.headers).get('Content-Type')!;
    expect(type).toMatch(
      { js: /^text\/javascript/, css: /^text\/css/, svg: /^image\/svg/ }[path.split('.')[1]] ?? /^text\/html/,
    );
    const loads = type.startsWith('text/html')
      ? [...bodyOf(answer).matchAll(/(?:href|src)="(console\/[^"]+)"/g)].map(([, target]) => `/${target}`)
      : type.startsWith('text/javascript')
        ? [...bodyOf(answer).matchAll(/(?:from|import)\s*\(?\s*'\.\/([^']+)'/g)].map(
            ([, target]) => `/console/${target}`,
          )
        : [];
    for (const load of loads) await follow(load);
  };
  await follow('/');
  expect(asked.size).toBeGreaterThan(10);
});

test('packed and plain are the same, and what a browser has is not sent again', async () => {
  const plain = await service.ask('/console/main.js');
  const packed = await service.ask('/console/main.js', { 'Accept-Encoding': 'gzip' });
  expect(gunzipSync(packed.body as Uint8Array).toString()).toBe(bodyOf(plain));
  const tag = new Map(plain.headers).get('ETag')!;
  expect(new Map(packed.headers).get('ETag')).toBe(tag);
  const again = await service.ask('/console/main.js', { 'If-None-Match': `"other", ${tag}` });
  expect(`${again.status} ${bodyOf(again)}`).toBe('304 ');
  expect((await service.ask('/console/main.js', { 'If-None-Match': '"other"' })).status).toBe(200);
});

test('without the pages nothing is at their addresses', async () => {
  const off = new TestService();
  expect((await off.ask('/')).status).toBe(404);
  expect((await off.ask('/console/main.js')).status).toBe(404);
});

describe.each(BACK_ENDS)('%s', (backEnd) => {
  test('an answer that nothing has changed has no length, and the connection goes on', async () => {
    const tag = new Map((await service.ask('/')).headers).get('ETag')!;
    const server = await RunningServer.start(backEnd, service.api, service.bugs);
    const request = (more: string) => `GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: ${tag}\r\n${more}\r\n`;
    const received = await server.exchange(request('') + request('Connection: close\r\n'));
    await server.server.close(0);
    expect(statusesOf(received)).toBe('304 304');
    expect(received).not.toMatch(/content-length: [1-9]/i);
    expect(service.bugs.bugs).toEqual([]);
  });
});
