/** Replies that come after their question was answered otherwise: nothing of them gets into another answer. */

import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CODES, FrameReader, frameHead } from '../../src/cluster/frames.js';
import { HedgeBudget } from '../../src/cluster/hedge-budget.js';
import { writeReply } from '../../src/cluster/messages.js';
import { Peer } from '../../src/cluster/peer.js';
import { TcpPeerLink } from '../../src/cluster/peer-link.js';
import { type Outcome, PeerRequests, type ReadPartial } from '../../src/cluster/peer-requests.js';
import { BodyPool, TakenBuffer } from '../../src/endpoints/body-pool.js';
import { POOLED_BODY_BYTES } from '../../src/endpoints/limits.js';
import { monotonicUs } from '../../src/system-clock.js';

/** So large that it comes in several chunks, and is put together in memory that is used again. */
const PARTIAL_BYTES = 200_000;
const DETAIL = { count: 0, byteLimit: 0 };

/** Answers with many times a letter: the first half at once, the second when it is told to. */
class HalvingPeer {
  readonly #server: Server;
  readonly #reply: Uint8Array;
  #socket: Socket | null = null;
  #onHalf: () => void = () => undefined;
  peer: Peer | null = null;

  constructor(letter: string) {
    this.#reply = writeReply({
      kind: 'answer',
      partitionCount: 1,
      partitions: [{ partition: 0, status: 'counted', nextOffset: 1, ageMs: 1, projects: null }],
      dropped: [],
      partials: [(out) => out.bytes(Buffer.alloc(PARTIAL_BYTES, letter))],
    });
    this.#server = createServer((socket) => {
      this.#socket = socket;
      socket.on('error', () => undefined);
      const reader = new FrameReader({
        begin: () => Buffer.allocUnsafe,
        end: ({ number, code }) => {
          if (code !== CODES.question) return;
          socket.write(frameHead({ byteCount: this.#reply.length, number, code: 200 }));
          socket.write(this.#reply.subarray(0, PARTIAL_BYTES / 2), () => this.#onHalf());
        },
      });
      socket.on('data', (piece) => reader.take(piece));
    });
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    const member = { storeId: url, zone: '', url, wireVersion: 0, assigned: [], beside: [] };
    this.peer = new Peer(member, new TcpPeerLink(url, 'key'));
  }

  /** Asks it; resolves once the half of its reply is here. */
  async ask(requests: PeerRequests): Promise<{ readonly outcome: Promise<Outcome> }> {
    const half = new Promise<void>((resolve) => {
      this.#onHalf = resolve;
    });
    const outcome = requests.request(this.peer!, [0], 100, DETAIL);
    await half;
    for (let turn = 0; turn < 10; turn++) await nextTurn();
    return { outcome };
  }

  /** Resolves once all of it is on its way. */
  goOn(): Promise<void> {
    return new Promise((resolve) =>
      this.#socket!.write(this.#reply.subarray(PARTIAL_BYTES / 2), () => resolve()),
    );
  }

  async close(): Promise<void> {
    this.peer?.link.close();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

const late = new HalvingPeer('l');
const quick = new HalvingPeer('q');
beforeAll(() => Promise.all([late.listen(), quick.listen()]));
afterAll(() => Promise.all([late.close(), quick.close()]));

const ports = {
  floorOf: () => 0,
  hedges: new HedgeBudget(),
  replies: new BodyPool(),
  monotonicUs,
  onAsked: () => undefined,
  onGrown: () => undefined,
};

function question(): PeerRequests {
  const asked = { endpoint: 'e', query: '', topic: 't', topicId: '', nowUs: 1 };
  return new PeerRequests(ports, asked, { limitMs: 60_000, isSlow: false, read: (bytes) => bytes });
}

test('a reply that was given up half-way is not written into the memory of the next question', async () => {
  const first = question();
  const given = await late.ask(first);
  // Another one was asked beside it, and has answered.
  first.release();

  const second = question();
  const asked = await quick.ask(second);
  await quick.goOn();
  const [{ partials }] = (await asked.outcome).pieces;
  await late.goOn();
  await given.outcome;
  const read = (partials[0] as ReadPartial).partial as Uint8Array;
  expect(Buffer.compare(read, Buffer.alloc(PARTIAL_BYTES, 'q'))).toBe(0);
  second.release();
});

test('a reply that grows holds one buffer, not all that were too small for it', () => {
  const pool = new BodyPool();
  const taken = new TakenBuffer(pool);
  const small = taken.take(POOLED_BODY_BYTES);
  const large = taken.take(POOLED_BODY_BYTES);
  expect(large === small).toBe(false);
  expect(pool.take(POOLED_BODY_BYTES) === small).toBe(true);
  taken.giveBack();
  expect(pool.take(POOLED_BODY_BYTES) === large).toBe(true);
});
