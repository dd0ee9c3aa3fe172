/** What statistics views have in common: their figures, and which segments are theirs. */

import { slotOfSegment } from '../slots/levels.js';
import type { ViewKind } from '../view.js';
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
    },
    {
      name: 'stats_buckets',
      title: 'Buckets',
      help: 'Projects and functions in these slots',
      unit: 'count',
    },
    {
      name: 'stats_held_bytes',
      title: 'In memory',
      help: 'Memory of these slots',
      unit: 'bytes',
    },
  ],
  spillsSlowly: true,
  groupOf: (segment) => slotOfSegment('stats', LEVELS, segment),
};
