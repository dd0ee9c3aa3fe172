import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { DOCUMENT, metricsDocument } from './metrics-document.js';

test('the document of the metrics is what their declarations say: npm run docs:metrics', () => {
  const document = metricsDocument();
  expect(document).toContain('`logring_lag_records` | gauge | `topic`, `partition` |');
  expect(document).toBe(readFileSync(DOCUMENT, 'utf8'));
});
