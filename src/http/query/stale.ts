/**
 * The header of answers that count all that their log held some time ago, and perhaps nothing since:
 *
 *   Logring-Stale-Seconds: 42
 */

import { US_PER_SECOND } from '../../../engine/time.js';
import type { AnswerState } from '../ports.js';
import type { HeaderLine } from '../server/server.js';

/** For scripts of other origins to read it. */
export const STALE_HEADER = 'Logring-Stale-Seconds';

export function staleLines(state: AnswerState): HeaderLine[] {
  return state.kind === 'old' ? [[STALE_HEADER, String(Math.ceil(state.ageUs / US_PER_SECOND))]] : [];
}
