/**
 * As which member this process reads the Kafka group, in a file of the data directory: after a kill the next
 * process has that member leave. Nothing depends on it: without it the group waits for the member's session
 * time-out.
 */

import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const MEMBER_FILE = 'kafka-member.json';

/** null when there isn't one of the group. */
export function readMember(directory: string, groupId: string): string | null {
  try {
    const stored = JSON.parse(readFileSync(join(directory, MEMBER_FILE), 'utf8')) as Record<string, unknown>;
    return stored.groupId === groupId && typeof stored.memberId === 'string' ? stored.memberId : null;
  } catch {
    return null;
  }
}

/** It outlives the process when this returns, not a power cut. Throws as the file system does. */
export function writeMember(directory: string, groupId: string, memberId: string): void {
  const path = join(directory, MEMBER_FILE);
  writeFileSync(`${path}.new`, JSON.stringify({ groupId, memberId }));
  renameSync(`${path}.new`, path);
}
