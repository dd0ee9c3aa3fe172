/**
 * The files of the web console as pages: read and packed once, when the service starts, then sent as they are
 * held. Browsers keep them and ask whether they are still the same. What they may do in a browser is said
 * here: run our own scripts, talk to this origin, and nothing else.
 */

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { gzipSync } from 'node:zlib';
import type { Page } from '../api.js';
import { acceptsGzip } from '../query/compression.js';
import type { HeaderLine, HttpAnswer, HttpRequest } from '../server/server.js';

const FOLDER = new URL('../../console/', import.meta.url);
/** Files of the chart library, under the names that the console's own code calls them by. */
const CHART_FILES = [
  ['uplot.js', 'uplot/dist/uPlot.esm.js'],
  ['uplot.css', 'uplot/dist/uPlot.min.css'],
] as const;

const CONTENT_TYPES: ReadonlyMap<string, string> = new Map([
  ['html', 'text/html; charset=utf-8'],
  ['css', 'text/css; charset=utf-8'],
  ['js', 'text/javascript; charset=utf-8'],
  ['svg', 'image/svg+xml'],
]);

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  // Code that assigns text as markup or script gets an exception, the chart library included.
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

const SECURITY_HEADERS: readonly HeaderLine[] = [
  ['Content-Security-Policy', POLICY],
  ['X-Content-Type-Options', 'nosniff'],
  ['Referrer-Policy', 'no-referrer'],
  ['Cross-Origin-Opener-Policy', 'same-origin'],
  ['Cross-Origin-Resource-Policy', 'same-origin'],
];

/**
 * The page at `/` and what it loads from `/console/`. Throws the system's error when the files are not there.
 */
export function consolePages(): Map<string, Page> {
  const pages = new Map<string, Page>();
  for (const name of readdirSync(FOLDER)) {
    const contentType = contentTypeOf(name);
    if (contentType === undefined) continue;
    const path = name === 'index.html' ? '/' : `/console/${name}`;
    pages.set(path, filePage(readFileSync(new URL(name, FOLDER)), contentType));
  }
  const { resolve } = createRequire(import.meta.url);
  for (const [name, file] of CHART_FILES)
    pages.set(`/console/${name}`, filePage(readFileSync(resolve(file)), contentTypeOf(name)!));
  return pages;
}

function contentTypeOf(name: string): string | undefined {
  return CONTENT_TYPES.get(name.slice(name.lastIndexOf('.') + 1));
}

function filePage(body: Uint8Array, contentType: string): Page {
  const packed = gzipSync(body, { level: 9 });
  // Weak, as it stands for the plain body and the packed one.
  const tag = `W/"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  const headers: readonly HeaderLine[] = [
    ['Content-Type', contentType],
    ['Cache-Control', 'no-cache'],
    ['ETag', tag],
    ['Vary', 'Accept-Encoding'],
    ...SECURITY_HEADERS,
  ];
  const plain: HttpAnswer = { status: 200, headers, body, close: false };
  const gzipped: HttpAnswer = { ...plain, headers: [['Content-Encoding', 'gzip'], ...headers], body: packed };
  const unchanged: HttpAnswer = { ...plain, status: 304, body: '' };
  return {
    needsKey: false,
    answer(request: HttpRequest): HttpAnswer {
      if (holds(request.headers.get('if-none-match'), tag)) return unchanged;
      return acceptsGzip(request.headers.get('accept-encoding')) ? gzipped : plain;
    },
  };
}

/** Whether an If-None-Match names the tag. */
function holds(ifNoneMatch: string, tag: string): boolean {
  return ifNoneMatch.split(',').some((one) => one.trim() === tag);
}
