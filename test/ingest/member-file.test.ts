/** Which member of the Kafka group a process was, kept for the one after it. */

import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readMember, writeMember } from '../../src/ingest-thread/member-file.js';

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'logring-member-'));
});

afterEach(() => rmSync(directory, { recursive: true }));

test('the newest is read, of the same group only', () => {
  expect(readMember(directory, 'logring')).toBe(null);
  writeMember(directory, 'logring', 'one');
  writeMember(directory, 'logring', 'two');
  expect([readMember(directory, 'logring'), readMember(directory, 'other')]).toEqual(['two', null]);
});

test('a file that is damaged counts as none', () => {
  writeMember(directory, 'logring', 'one');
  const [name] = readdirSync(directory);
  for (const text of ['', 'null', '{"groupId":"logring"', '{"groupId":"logring","memberId":7}']) {
    writeFileSync(join(directory, name), text);
    expect(readMember(directory, 'logring')).toBe(null);
  }
});
