/** What views of event counts have in common: their figures, and which segments are theirs. */

import { slotOfSegment } from '../slots/levels.js';
import type { ViewKind } from '../view.js';
import { EVENT_LEVELS } from './windows.js';

export const EVENT_COUNTS: ViewKind = {
  name: 'event-counts',
  title: 'Event counts',
  log: 'edge',
  label: 'level',
  figures: [
    {
      name: 'event_count_slots',
      title: 'Slots',
      help: 'Time slots of event counts that have entries, by their length',
      unit: 'count',
    },
    {
      name: 'event_count_projects',
      title: 'Projects × slots',
      help: 'Projects in these slots',
      unit: 'count',
    },
    {
      name: 'event_count_held_bytes',
      title: 'In memory',
      help: 'Memory of these slots',
      unit: 'bytes',
    },
  ],
  groupOf: (segment) => slotOfSegment('event-counts', EVENT_LEVELS, segment),
};
