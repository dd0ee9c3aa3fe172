/**
 * Packing of hexadecimal digits: whatever bytes come in come out again, and what is not packed text is
 * refused.
 */

import { expect, test } from 'vitest';
import { SegmentError } from '../../engine/segments.js';
import { Random } from '../../src/demo/random.js';
import { packHex, unpackHex } from '../../src/store/blocks/hex-packing.js';

/** The text that is left, with marks as ⟨…⟩, and how many bytes were taken out. */
function packed(input: string): string {
  const raw = Buffer.from(input, 'latin1');
  const { text, hex } = packHex(raw);
  expect(Buffer.from(unpackHex({ text, hex }, raw.length, NOTHING)).toString('latin1')).toBe(input);
  let shown = '';
  for (let i = 0; i < text.length; i++) {
    if (text[i] !== 1) shown += String.fromCharCode(text[i]);
    else {
      const argumentCount = [0, 1, 0, 2, 0][text[i + 1]];
      shown += `⟨${[...text.subarray(i + 1, i + 2 + argumentCount)].join(' ')}⟩`;
      i += 1 + argumentCount;
    }
  }
  return `${shown} + ${hex.length}`;
}

const NOTHING = new Uint8Array(0);
const RAY = '6fef2dc349f9e6d8';
const ID = '28c9ff1f-88ab-4b93-959b-f6e3fce150af';

test('runs of digits and UUIDs are taken out; what only looks alike stays', () => {
  const check = (input: string, expected: string) => expect(packed(input), input).toBe(expected);
  check('', ' + 0');
  check('plain text', 'plain text + 0');
  check(`"${RAY}"`, '"⟨1 8⟩" + 8');
  check(`"${ID}"`, '"⟨2⟩" + 16');
  // Again: by how many values back, and as it was written.
  check(`${RAY} ${ID} ${RAY} ${ID}`, '⟨1 8⟩ ⟨2⟩ ⟨3 2 0⟩ ⟨3 1 0⟩ + 24');
  check(`${ID} ${ID.replaceAll('-', '')}`, '⟨2⟩ ⟨1 16⟩ + 32');
  // An odd digit stays behind; so does what is too short, only numbers, upper case or a broken UUID.
  check(`${RAY}a`, '⟨1 8⟩a + 8');
  check(RAY.slice(1), `${RAY.slice(1)} + 0`);
  check('1700000001950000', '1700000001950000 + 0');
  check(RAY.toUpperCase(), `${RAY.toUpperCase()} + 0`);
  check(ID.slice(0, -1), `${ID.slice(0, -1)} + 0`);
  check(`x${ID.slice(0, 9)}`, `x${ID.slice(0, 9)} + 0`);
  // More digits than a length byte holds.
  check('a'.repeat(600), '⟨1 255⟩⟨1 45⟩ + 300');
  check('a'.repeat(515), '⟨1 255⟩aaaaa + 255');
  // The mark itself.
  check('\x01\x02', '⟨4⟩\x02 + 0');
});

function randomBytes(random: Random): Buffer {
  const values = [random.hex(32), random.uuid(), random.hex(16)];
  const pieces = Array.from({ length: random.below(40) }, () => {
    switch (random.below(8)) {
      case 0:
        return random.hex(8 * random.between(1, 80)).slice(random.below(3));
      case 1:
        return random.uuid().slice(random.chance(0.2) ? 1 : 0);
      case 2:
      case 3:
        return random.pick(values);
      case 4:
        return String.fromCharCode(...Array.from({ length: random.below(30) }, () => random.below(256)));
      case 5:
        return String.fromCharCode(random.below(5));
      default:
        return random.letters(random.below(20));
    }
  });
  return Buffer.from(pieces.join(''), 'latin1');
}

test.each(Array.from({ length: 20 }, (_, seed) => seed))('what is packed is unpacked: seed %i', (seed) => {
  const random = new Random(seed);
  for (let i = 0; i < 200; i++) {
    const raw = randomBytes(random);
    expect(
      Buffer.compare(unpackHex(packHex(raw), raw.length, NOTHING), raw),
      `seed ${seed}, input ${i}`,
    ).toBe(0);
  }
});

test('text that was changed is refused, or has the length it should: no other end', () => {
  const random = new Random(1);
  let refusedCount = 0;
  for (let i = 0; i < 3_000; i++) {
    const raw = randomBytes(random);
    const { text, hex } = packHex(raw);
    if (text.length === 0) continue;
    const changed = text.slice(0, random.chance(0.3) ? random.below(text.length) : text.length);
    if (changed.length > 0) changed[random.below(changed.length)] = random.below(6);
    try {
      expect(unpackHex({ text: changed, hex }, raw.length, NOTHING)).toHaveLength(raw.length);
    } catch (error) {
      expect(error).toBeInstanceOf(SegmentError);
      refusedCount += 1;
    }
  }
  expect(refusedCount).toBeGreaterThan(500);
});
