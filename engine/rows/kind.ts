/** What rows views have in common: their figures, and which segments are theirs. */

import type { ViewKind } from '../view.js';

export const ROWS: ViewKind = {
  name: 'rows',
  title: 'Rows',
  log: 'edge',
  label: 'tier',
  figures: [
    {
      name: 'rows',
      title: 'Rows',
      help: 'Rows of logs.all that are kept, by the retention of their tier',
      unit: 'count',
    },
    {
      name: 'row_bytes',
      title: 'Bytes',
      help: 'Bytes of these rows as they are answered, not compressed',
      unit: 'bytes',
    },
    {
      name: 'rows_held_bytes',
      title: 'In memory',
      help: 'Memory of row indexes and open blocks',
      unit: 'bytes',
    },
    {
      name: 'row_runs',
      title: 'Runs',
      help: 'Runs that the rows are in, of an hour or a day each',
      unit: 'count',
    },
    {
      name: 'oldest_row_timestamp_seconds',
      title: 'Oldest',
      help: 'Start of the oldest hour of rows',
      unit: 'timestampSeconds',
      over: 'least',
    },
  ],
  groupOf: () => null,
  owns: (segment) => /^rows\/(manifest|open\/.+|index\/.+\/[0-9]+)$/.test(segment),
};
