/** The cores that this process may keep busy. */

import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** Of a container: "<microseconds, or max> <of so many>", from Linux' control groups. */
const QUOTA_FILE = '/sys/fs/cgroup/cpu.max';

/**
 * Whole ones, at least 1. Node counts those that it may run on, but not the time that a container may use of
 * them.
 */
export function coreCount(): number {
  return Math.max(1, Math.min(availableParallelism(), Math.floor(quotaCores())));
}

function quotaCores(): number {
  let text: string;
  try {
    text = readFileSync(QUOTA_FILE, 'utf8');
  } catch {
    return Number.POSITIVE_INFINITY;
  }
  const [quotaUs, periodUs] = text.split(' ').map(Number);
  return quotaUs > 0 && periodUs > 0 ? quotaUs / periodUs : Number.POSITIVE_INFINITY;
}
