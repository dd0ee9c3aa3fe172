/** What an import shows meanwhile: a bar on a terminal, lines elsewhere, and what it waits for. */

import { expect, test } from 'vitest';
import { Progress } from '../../src/import/progress.js';

const state = (accepted: number, rejected = 0) => ({
  nextByte: 1,
  digest: '',
  accepted,
  rejectedByReason: { 'too-old': rejected },
});

/**
 * What is written while half of a file of 3 MiB is read, in which `before` entries stand already, in ten
 * seconds.
 */
function shown(isTTY: boolean, packedBytes: number | null, columns = 200): string[] {
  const written: string[] = [];
  const source = { label: 'logs/edge.gz', packedBytes, readBytes: 0 };
  let nowUs = 0;
  const output = { isTTY, columns, write: (text: string) => written.push(text) };
  const progress = new Progress(output, () => nowUs, source);
  progress.advanced(state(1_000_000, 20));
  source.readBytes = 1.5 * 1024 * 1024;
  nowUs = 10_000_000;
  progress.advanced(state(1_012_345, 25));
  nowUs += 1_000;
  progress.advanced(state(1_012_346, 25));
  progress.waits('the service is away');
  progress.waits('the service is away');
  progress.waits(null);
  progress.end();
  return written;
}

test('lines where there is no terminal', () => {
  const counts = '1,012,345 entries  1,235/s  25 rejected';
  const waiting = 'logs/edge.gz: the service is away; waiting\n';
  expect(shown(false, 3 * 1024 * 1024)).toEqual([`edge.gz  50% of 3.0 MiB  ${counts}\n`, waiting]);
  expect(shown(false, null)).toEqual([`edge.gz  1.5 MiB  ${counts}\n`, waiting]);
});

test('a bar on a terminal, within its width, that makes room for sentences', () => {
  const clear = '\r\u001b[2K';
  const bar = 'edge.gz  [##########..........] 50% of 3.0 MiB  1,012,345 entries  1,235/s  25 rejected';
  const waiting = 'logs/edge.gz: the service is away; waiting\n';
  expect(shown(true, 3 * 1024 * 1024)).toEqual([clear + bar, clear, waiting]);
  const narrow = bar.replace('[##########..........]', '[#####.....]');
  expect(shown(true, 3 * 1024 * 1024, narrow.length + 1)).toEqual([clear + narrow, clear, waiting]);
  const text = bar.replace('[##########..........] ', '');
  expect(shown(true, 3 * 1024 * 1024, 31)).toEqual([clear + text.slice(0, 30), clear, waiting]);
});
