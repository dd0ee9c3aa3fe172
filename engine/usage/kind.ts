/** What usage views have in common: their figures, and which segments are theirs. */

import { US_PER_HOUR } from '../time.js';
import type { SegmentGroup, ViewKind } from '../view.js';
import { partPrefix } from './sealed/sealed-part.js';
import { parseUsageName } from './stored-parts.js';

export const USAGE: ViewKind = {
  name: 'usage',
  title: 'Usage',
  log: 'edge',
  label: null,
  figures: [
    {
      name: 'usage_entries',
      title: 'Entries',
      help: 'Entries of seven days that usage.api-counts counts',
      unit: 'count',
    },
    {
      name: 'usage_urls',
      title: 'URLs',
      help: 'Distinct URLs, counted in each part of an hour that has them',
      unit: 'count',
    },
    {
      name: 'standing_expressions',
      title: 'Standing expressions',
      help: 'Expressions of usage.api-counts that are kept answered, in each partition',
      unit: 'count',
    },
  ],
  groupOf: partOfSegment,
};

/** Segments of one part of an hour build on each other. */
function partOfSegment(segment: string): SegmentGroup | null {
  const name = parseUsageName(segment)?.name;
  if (name === undefined) return null;
  const startUs = name.hourIndex * US_PER_HOUR;
  return { key: partPrefix(name), level: null, startUs, endUs: startUs + US_PER_HOUR };
}
