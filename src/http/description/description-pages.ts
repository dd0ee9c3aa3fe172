/**
 * The API's description as pages: `/openapi.json` for machines, `/reference` to read. Neither takes a key.
 */

import type { Page } from '../api.js';
import { JSON_CONTENT_TYPE } from '../errors.js';
import { DESCRIPTION_MAX_AGE_SECONDS } from '../limits.js';
import type { HeaderLine } from '../server/server.js';
import { openApiDocument } from './openapi.js';
import type { DescribedService } from './operations.js';
import { REFERENCE_POLICY, referencePage } from './reference-page.js';

const CACHED: HeaderLine = ['Cache-Control', `public, max-age=${DESCRIPTION_MAX_AGE_SECONDS}`];
const NO_SNIFFING: HeaderLine = ['X-Content-Type-Options', 'nosniff'];

export function descriptionPages(service: DescribedService): [path: string, page: Page][] {
  const document = openApiDocument(service);
  return [
    ['/openapi.json', fixedPage(JSON.stringify(document), [JSON_CONTENT_TYPE])],
    [
      '/reference',
      fixedPage(referencePage(document), [
        ['Content-Type', 'text/html; charset=utf-8'],
        ['Content-Security-Policy', REFERENCE_POLICY],
        ['Referrer-Policy', 'no-referrer'],
      ]),
    ],
  ];
}

function fixedPage(text: string, headers: readonly HeaderLine[]): Page {
  const body = Buffer.from(text);
  return {
    needsKey: false,
    answer: () => ({ status: 200, headers: [...headers, CACHED, NO_SNIFFING], body, close: false }),
  };
}
