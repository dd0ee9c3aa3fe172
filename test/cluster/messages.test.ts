/** Messages between members: what is written is read, and nothing else is taken for one. */

import { crc32 } from 'node:zlib';
import { AssignerProtocol } from 'kafkajs';
import { expect, test } from 'vitest';
import { ByteWriter } from '../../engine/bytes.js';
import { PartialError } from '../../engine/partial-format.js';
import { decodeMemberData, encodeMemberData, memberDataOf } from '../../ingest/kafka/group/member-data.js';
import { readHoldings, readKnown, writeHoldings, writeKnown } from '../../src/cluster/holdings.js';
import {
  type Question,
  type Reply,
  readQuestion,
  readReply,
  writeQuestion,
} from '../../src/cluster/messages.js';
import { Random } from '../../src/demo/random.js';
import { MOST_PARTITIONS } from '../../src/limits.js';
import { writeReadReply } from '../written.js';

const QUESTION: Question = {
  endpoint: 'logs.all',
  query: 'project=%C3%A4&project_tier=PRO',
  topic: 'edge',
  topicId: 'id',
  nowUs: 1_700_000_000_000_000,
  limitMs: 2_000,
  detail: { count: 51, byteLimit: 1_000_000 },
  oldestMs: Infinity,
  partitions: [
    { partition: 3, atLeast: 17 },
    { partition: 0, atLeast: 0 },
  ],
};
const REPLIES: readonly Reply[] = [
  {
    kind: 'answer',
    partitionCount: 4,
    partitions: [
      { partition: 0, status: 'not-here', nextOffset: 0, ageMs: Infinity, projects: null },
      { partition: 3, status: 'counted', nextOffset: 17, ageMs: 3.5, projects: { count: 2, mark: 99 } },
    ],
    dropped: [{ startUs: -Infinity, endUs: 5 }],
    partials: [Uint8Array.of(1, 2, 3)],
  },
  { kind: 'unavailable', reason: 'so many questions', retryAfterSeconds: 7 },
  { kind: 'refused', reason: 'no' },
];
const HOLDINGS = {
  topics: [{ topic: 'edge', topicId: '', partitionCount: 3 }],
  copies: [
    {
      topic: 'edge',
      partition: 1,
      nextOffset: 5,
      ageMs: 12,
      isReached: true,
      received: 7,
      projects: { count: 3, mark: 0xffff_ffff },
      from: 1,
      hashes: Uint32Array.of(7, 0xffff_fffe),
    },
    {
      topic: 'ä',
      partition: 0,
      nextOffset: 0,
      ageMs: Infinity,
      isReached: false,
      received: 0,
      projects: null,
      from: 0,
      hashes: new Uint32Array(0),
    },
  ],
};
const KNOWN = [
  { topic: 'edge', partition: 1, count: 1 },
  { topic: 'edge', partition: 7, count: 0 },
  { topic: 'ä', partition: 0, count: 65_536 },
];

const FORMS: readonly { readonly written: Uint8Array; readonly read: (bytes: Uint8Array) => unknown }[] = [
  { written: writeQuestion(QUESTION), read: readQuestion },
  ...REPLIES.map((reply) => ({
    written: writeReadReply(reply),
    read: (bytes: Uint8Array) => readReply(bytes, QUESTION.partitions),
  })),
  { written: writeHoldings(HOLDINGS), read: readHoldings },
  { written: writeKnown(KNOWN), read: readKnown },
];

/** The last four bytes made right again, as somebody would who means harm. */
function withChecksum(bytes: Uint8Array): Uint8Array {
  const end = bytes.length - 4;
  const out = new ByteWriter();
  out.bytes(bytes.subarray(0, end));
  out.u32(crc32(bytes.subarray(0, end)));
  return out.finish();
}

test('what is written is read', () => {
  expect(readQuestion(writeQuestion(QUESTION))).toEqual(QUESTION);
  for (const reply of REPLIES) expect(readReply(writeReadReply(reply), QUESTION.partitions)).toEqual(reply);
  expect(readHoldings(writeHoldings(HOLDINGS))).toEqual(HOLDINGS);
  expect(readKnown(writeKnown(KNOWN))).toEqual(KNOWN);
});

test('of each message every flipped bit and every cut is an error', () => {
  for (const { written, read } of FORMS)
    for (let at = 0; at < written.length; at++) {
      const flipped = written.slice();
      flipped[at] ^= 1 << (at % 8);
      expect(() => read(flipped)).toThrow(PartialError);
      expect(() => read(written.subarray(0, at))).toThrow(PartialError);
    }
});

test('hostile messages with a right checksum are read or refused, never anything else', () => {
  const random = new Random(1);
  let refusedCount = 0;
  for (let i = 0; i < 20_000; i++) {
    const { written, read } = FORMS[i % FORMS.length];
    const changed = written.slice();
    for (let left = 1 + random.below(4); left > 0; left--)
      changed[random.below(changed.length - 4)] = random.pick([0, 0xff, 0x7f, random.below(256)]);
    try {
      read(withChecksum(changed));
    } catch (error) {
      expect(error).toBeInstanceOf(PartialError);
      refusedCount++;
    }
  }
  expect(refusedCount).toBeGreaterThan(1_000);
});

test('a reply must be about what was asked, and count nothing that is behind', () => {
  const partitions = [{ partition: 1, atLeast: 10 }];
  const reply = (change: object): Uint8Array =>
    writeReadReply({
      kind: 'answer',
      partitionCount: 2,
      partitions: [{ partition: 1, status: 'counted', nextOffset: 10, ageMs: 0, projects: null, ...change }],
      dropped: [],
      partials: [],
    });
  const check = (change: object, ok: boolean) => {
    const read = () => readReply(reply(change), partitions);
    if (ok) read();
    else expect(read).toThrow(PartialError);
  };
  check({}, true);
  check({ nextOffset: 9, status: 'behind' }, true);
  // Not as far as it must be, never whole, of another partition, no offset, no age.
  check({ nextOffset: 9 }, false);
  check({ ageMs: Infinity }, false);
  check({ partition: 2 }, false);
  check({ nextOffset: 10.5 }, false);
  check({ ageMs: Number.NaN }, false);
  check({ ageMs: -1 }, false);
  expect(() => readReply(reply({}), [...partitions, { partition: 2, atLeast: 0 }])).toThrow(PartialError);
});

test('numbers that would cost memory or mean nothing are refused', () => {
  const topicOf = (partitionCount: number) =>
    writeHoldings({ ...HOLDINGS, topics: [{ topic: 'edge', topicId: 'one', partitionCount }] });
  expect(readHoldings(topicOf(MOST_PARTITIONS)).topics[0].partitionCount).toBe(MOST_PARTITIONS);
  expect(() => readHoldings(topicOf(MOST_PARTITIONS + 1))).toThrow(PartialError);
  const dropped = (startUs: number, endUs: number) =>
    writeReadReply({
      kind: 'answer',
      partitionCount: 1,
      partitions: [],
      dropped: [{ startUs, endUs }],
      partials: [],
    });
  expect(readReply(dropped(-Infinity, 1), [])).toMatchObject({ dropped: [{ startUs: -Infinity, endUs: 1 }] });
  for (const [startUs, endUs] of [
    [0, Infinity],
    [Number.NaN, 0],
    [0, 8.7e18],
  ])
    expect(() => readReply(dropped(startUs, endUs), [])).toThrow(PartialError);
});

test('what no member of this program told its group is nobody, and takes no other with it', () => {
  for (const bytes of [Buffer.alloc(0), Buffer.alloc(1), Buffer.alloc(40, 0xff), Buffer.from('no member')])
    expect(memberDataOf(bytes)).toBeNull();
  const told = (userData: Buffer) =>
    AssignerProtocol.MemberMetadata.encode({ version: 1, topics: [], userData });
  expect(memberDataOf(told(Buffer.alloc(0)))).toBeNull();
  const data = { storeId: 's', url: 'http://here:1', wireVersion: 1, held: [] };
  expect(memberDataOf(told(encodeMemberData(data)))).toEqual(data);
});

test('what a member says of itself when it joins is read; what does not fit of what it holds is left out', () => {
  const held = Array.from({ length: 2_000 }, (_, partition) => ({
    topic: 'edge',
    partition,
    nextOffset: partition,
    isWhole: partition % 3 === 0,
  }));
  const data = { storeId: 'store', url: 'http://a:4100', wireVersion: 1, held };
  const bytes = encodeMemberData(data);
  expect(bytes.length).toBeLessThanOrEqual(8 * 1024);
  const read = decodeMemberData(bytes)!;
  expect(read).toEqual({ ...data, held: held.slice(0, read.held.length) });
  expect(read.held.length).toBeGreaterThan(300);
  for (let at = 0; at < 60; at++) expect(decodeMemberData(bytes.subarray(0, at))).toBeNull();
  const random = new Random(2);
  for (let i = 0; i < 5_000; i++) {
    const changed = bytes.slice(0, 200);
    changed[random.below(200)] = random.below(256);
    decodeMemberData(changed);
  }
});
