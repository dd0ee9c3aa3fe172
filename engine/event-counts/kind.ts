/** What views of event counts have in common: their figures, and which segments are theirs. */

import { US_PER_SECOND } from '../time.js';
import type { SegmentGroup, ViewKind } from '../view.js';
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
      over: 'sum',
    },
    {
      name: 'event_count_projects',
      title: 'Projects',
      help: 'Projects in these slots',
      unit: 'count',
      over: 'sum',
    },
    {
      name: 'event_count_held_bytes',
      title: 'In memory',
      help: 'Memory of these slots',
      unit: 'bytes',
      over: 'sum',
    },
  ],
  owns: (segment) => slotOfSegment(segment) !== null,
  groupOf: slotOfSegment,
};

/** Segments of one slot build on each other. */
function slotOfSegment(segment: string): SegmentGroup | null {
  const match = /^(event-counts\/([a-z]+)\/(-?[0-9]{12})\/)[0-9]{10}$/.exec(segment);
  const level = EVENT_LEVELS.find(({ name }) => name === match?.[2]);
  if (match === null || level === undefined) return null;
  const startUs = Number(match[3]) * US_PER_SECOND;
  return { key: match[1], level: level.name, startUs, endUs: startUs + level.unitUs };
}
