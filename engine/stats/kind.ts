/** What statistics views have in common: their figures, and which segments are theirs. */

import { US_PER_SECOND } from '../time.js';
import type { SegmentGroup, ViewKind } from '../view.js';
import { LEVELS } from './series.js';

export const STATS: ViewKind = {
  name: 'stats',
  title: 'Statistics',
  log: 'relay',
  label: 'level',
  figures: [
    {
      name: 'stats_slots',
      title: 'Slots',
      help: 'Time slots of statistics that have entries, by their length',
      unit: 'count',
      over: 'sum',
    },
    {
      name: 'stats_buckets',
      title: 'Buckets',
      help: 'Projects and functions in these slots',
      unit: 'count',
      over: 'sum',
    },
    {
      name: 'stats_held_bytes',
      title: 'In memory',
      help: 'Memory of these slots',
      unit: 'bytes',
      over: 'sum',
    },
  ],
  spillsSlowly: true,
  owns: (segment) => slotOfSegment(segment) !== null,
  groupOf: slotOfSegment,
};

/** Segments of one slot build on each other. */
function slotOfSegment(segment: string): SegmentGroup | null {
  const match = /^(stats\/([a-z]+)\/(-?[0-9]{12})\/)[0-9]{10}$/.exec(segment);
  const level = LEVELS.find(({ name }) => name === match?.[2]);
  if (match === null || level === undefined) return null;
  const startUs = Number(match[3]) * US_PER_SECOND;
  return { key: match[1], level: level.name, startUs, endUs: startUs + level.unitUs };
}
