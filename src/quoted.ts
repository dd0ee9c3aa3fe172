/** A caller's value for a message, cut to a bearable length. */

import { QUOTED_CHARACTER_LIMIT } from './limits.js';

export function quoted(value: string): string {
  const characters =
    value.length > QUOTED_CHARACTER_LIMIT ? `${value.slice(0, QUOTED_CHARACTER_LIMIT)}…` : value;
  return JSON.stringify(characters);
}
