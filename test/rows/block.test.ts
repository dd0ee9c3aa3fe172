/** What a check looks at in a block of a fresh run, beyond its checksum. */

import { expect, test } from 'vitest';
import { assertRowsOfBlock, BlockBuilder, rowOfBlock } from '../../engine/rows/block.js';

test('a block whose ends of rows are not those of its rows is found', () => {
  const rows = ['one', '', 'three'].map((text) => Buffer.from(text));
  const builder = new BlockBuilder(false);
  for (const [i, row] of rows.entries()) builder.append(i, i, 'a', row);
  const block = Buffer.from(builder.encode());
  expect(() => assertRowsOfBlock(block)).not.toThrow();
  expect(rows.map((_, i) => Buffer.from(rowOfBlock(block, i)))).toEqual(rows);
  const endsAt = 4 + block.readUInt32LE(0);
  for (const [row, end] of [
    [0, 4],
    [1, 2],
    [1, 99],
    [2, 7],
    [2, 9],
  ]) {
    const damaged = Buffer.from(block);
    damaged.writeUInt32LE(end, endsAt + 4 * row);
    expect(() => assertRowsOfBlock(damaged), `row ${row} ends at ${end}`).toThrow(/ends before|not as long/);
  }
  expect(() => assertRowsOfBlock(block.subarray(0, -1))).toThrow(/not as long/);
});
