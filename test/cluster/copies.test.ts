/**
 * A partition is copied whole or not at all, whichever side is killed when; what was fetched is not fetched again.
 *
 *   LOGRING_TEST_COPY_MB=1000 npx vitest run dist/test/cluster/copies      one of a gigabyte, killed some seventy times
 */

import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { PartialError } from '../../engine/partial-format.js';
import { SegmentError } from '../../engine/segments.js';
import { checkStore } from '../../src/check/store-check.js';
import { ClusterListener } from '../../src/cluster/cluster-listener.js';
import { CopyGiver } from '../../src/cluster/copy-giver.js';
import { CopyTaker, type CopyTakerPorts } from '../../src/cluster/copy-taker.js';
import {
  BUSY_STATUS,
  PIECE_CHECKSUM_BYTES,
  readCopy,
  writePieceChecksum,
} from '../../src/cluster/hand-over.js';
import { type Holding, writeHoldings } from '../../src/cluster/holdings.js';
import { writeMessage } from '../../src/cluster/json-message.js';
import {
  COPIES_TAKEN_AT_ONCE,
  COPY_PROGRESS_BYTES,
  COPY_TRIES,
  COPY_WAIT_MS,
  PIECE_BYTES,
  PIECES_AT_ONCE,
  WIRE_VERSION,
} from '../../src/cluster/limits.js';
import type { PeerLink } from '../../src/cluster/peer.js';
import { PeerStatusError, TcpPeerLink } from '../../src/cluster/peer-link.js';
import { Peers } from '../../src/cluster/peers.js';
import { Random } from '../../src/demo/random.js';
import { KeyRing } from '../../src/http/auth.js';
import type { ClockPair } from '../../src/service/whole-answers.js';
import { Store } from '../../src/store/store.js';
import { monotonicUs } from '../../src/system-clock.js';
import type { FailPoint } from '../crash/fail-point.js';
import { eventually } from '../eventually.js';
import { NO_COPIES } from './no-copies.js';

const TAKER = fileURLToPath(new URL('./taking-process.js', import.meta.url));
const SCOPE = 'edge/0';
const HOLDING: Holding = {
  topic: 'edge',
  partition: 0,
  nextOffset: 5,
  ageMs: 5_000,
  isReached: true,
  received: 5,
};
const MEMBER = { zone: '', wireVersion: WIRE_VERSION, assigned: [], beside: [] };
/** 2026-11-21T07:00:00Z */
const GIVER_NOW_US = 1_795_244_400_000_000;
const COPY_MB = Number(process.env.LOGRING_TEST_COPY_MB ?? 12);
const BLOCK_BYTES = 500_000;
const BLOCKS = (COPY_MB * 1e6) / BLOCK_BYTES;
const CAMPAIGN = { timeout: 900_000 + 10_000 * COPY_MB };
/** Times that a taker is killed amid the pieces, at most. */
const PIECE_KILLS = 50;
const CACHE_BYTES = 1 << 20;
/** What a taker does to its disk after the last piece. */
const POINTS: readonly FailPoint[] = [
  'before rename',
  'after rename',
  'before sync-folder',
  'after sync-folder',
  'before write of journal',
  'amid write of journal',
  'after write of journal',
  'before sync of journal',
  'after sync of journal',
  'before unlink of journal',
  'after unlink of journal',
];

const root = mkdtempSync(join(tmpdir(), 'logring-copies-'));
let giving: Store;
let giver: CopyGiver;
let listener: ClusterListener;
let url = '';
let pieceCount = 0;
let onPiece: () => void = () => undefined;
let onCopy: () => void = () => undefined;

function newGiver(isRepaired = false): CopyGiver {
  return new CopyGiver({
    own: { copy: () => HOLDING, isOfLog: () => true },
    store: giving,
    directory: join(root, 'giver'),
    isRepaired: () => isRepaired,
    bytesPerSecond: Number.POSITIVE_INFINITY,
    monotonicUs,
    nowUs: () => GIVER_NOW_US,
    after: (delayMs, task) => {
      const timer = setTimeout(task, delayMs);
      return () => clearTimeout(timer);
    },
  });
}

beforeAll(async () => {
  giving = await Store.open(join(root, 'giver'), CACHE_BYTES);
  const random = new Random(1);
  const noise = Buffer.from(Array.from({ length: BLOCK_BYTES }, () => random.below(256)));
  // In several commits, some of which remove what others have written.
  for (let commit = 0; commit < 3; commit++)
    await giving.commit((writerOf) => {
      const writer = writerOf(SCOPE);
      for (let i = 0; i < BLOCKS / 3; i++) {
        const block = Buffer.from(noise);
        block.writeUInt32LE(random.below(2 ** 32));
        writer.append('90d/rows', block);
      }
      writer.append(`one-${commit}`, Buffer.from(`block ${commit}`));
      if (commit > 0) writer.remove(`one-${commit - 1}`);
      writer.put('state', Buffer.from(`commit ${commit}`));
      writerOf('edge/1').put('state', Buffer.from('of another'));
    });
  giver = newGiver();
  listener = new ClusterListener({
    keys: new KeyRing([{ key: 'key', projects: null }]),
    answer: () => Promise.reject(new Error('nothing is asked')),
    holdings: () =>
      writeHoldings({
        topics: [{ topic: 'edge', topicId: '', partitionCount: 1 }],
        copies: [{ ...HOLDING, projects: null, from: 0, hashes: new Uint32Array(0) }],
      }),
    names: () => Promise.reject(new Error('nobody asks for names')),
    copies: {
      copy: (request) => {
        onCopy();
        return giver.copy(request);
      },
      piece: async (request, allocate) => {
        const piece = await giver.piece(request, allocate);
        if (piece !== null) pieceCount++;
        onPiece();
        return piece;
      },
      release: (request) => giver.release(request),
    },
    bugs: { report: (error) => expect.unreachable(String(error)) },
    identity: null,
  });
  url = `http://127.0.0.1:${await listener.listen('127.0.0.1', 0)}`;
});
beforeEach(() => {
  pieceCount = 0;
  onPiece = () => undefined;
  onCopy = () => undefined;
});
afterAll(async () => {
  giver.close();
  await listener.close(0);
  await giving.close();
  rmSync(root, { recursive: true });
});

interface Taken {
  readonly code: number | null;
  readonly said: { readonly fetched: number; readonly failed: number } | null;
}

function take(directory: string, order = 'never 1', onStart: (kill: () => void) => void = () => undefined) {
  return new Promise<Taken>((resolve, reject) => {
    const child = spawn(process.execPath, [TAKER, order, directory, url], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [output, errors] = ['', ''];
    child.stdout.on('data', (piece) => {
      output += piece;
    });
    child.stderr.on('data', (piece) => {
      errors += piece;
    });
    child.once('close', (code) => {
      if (code !== 0 && code !== null) reject(new Error(errors));
      else resolve({ code, said: output === '' ? null : JSON.parse(output) });
    });
    onStart(() => child.kill('SIGKILL'));
  });
}

/** Of a member that knows no other, unless it is told of some. */
function newTaker(directory: string, more: Partial<CopyTakerPorts> = {}): CopyTaker {
  const peers = new Peers({
    storeId: 'taker',
    zone: '',
    linkTo: () => expect.unreachable('nobody is asked'),
    monotonicUs,
    freshMs: 10_000,
  });
  return new CopyTaker({
    peers,
    storeId: 'taker',
    topicId: () => '',
    nextOffset: () => 0,
    isReadBeside: () => false,
    directory,
    adopt: () => expect.unreachable('nothing is adopted'),
    logger: pino({ level: 'silent' }),
    monotonicUs,
    // It waits for members that it does not know yet.
    after: () => () => undefined,
    ...more,
  });
}

/** A digest of all of a partition; null where there is nothing. */
function contentOf(store: Store): string | null {
  if (!store.scopes().includes(SCOPE)) return null;
  const digest = createHash('sha256');
  const reader = store.reader(SCOPE);
  for (const { name, bytes } of reader.list('')) digest.update(`${name} `).update(bytes);
  for (const file of ['90d/rows', 'one-0', 'one-1', 'one-2'])
    for (let i = 0; i < reader.blockCount(file); i++)
      digest.update(`${file} ${i} `).update(reader.block(file, i));
  return digest.digest('hex');
}

async function storedIn(directory: string): Promise<string | null> {
  const store = await Store.open(directory, CACHE_BYTES);
  try {
    expect(store.damage.fileCount).toBe(0);
    return contentOf(store);
  } finally {
    await store.close();
  }
}

async function expectWhole(directory: string): Promise<void> {
  expect(await storedIn(directory)).toEqual(contentOf(giving));
  expect(readdirSync(join(directory, 'shards'))).toEqual(['edge+0']);
  expect(readdirSync(join(directory, 'incoming'))).toEqual([]);
}

test('what is given is adopted with the clock of who gives it, as it was when it was asked', async () => {
  const request = writeMessage({ topic: 'edge', topicId: '', partition: 0, store: 'taker' });
  expect(readCopy(await giver.copy(request), 'shards/edge+0').nowUs).toBe(GIVER_NOW_US);
  const adopted: ClockPair[] = [];
  let nowUs = 1e12;
  const peers = new Peers({
    storeId: 'taker',
    zone: '',
    linkTo: (of) => new TcpPeerLink(of, 'key'),
    monotonicUs: () => nowUs,
    freshMs: 10_000,
  });
  peers.update([
    { ...MEMBER, storeId: 'taker', url: 'http://127.0.0.1:1' },
    { ...MEMBER, storeId: 'giver', url },
  ]);
  await peers.poll();
  onPiece = () => {
    nowUs += 1e6;
  };
  onCopy = onPiece;
  const adopt = async (_: unknown, __: string, clocks: ClockPair) => {
    adopted.push(clocks);
    return true;
  };
  const ages = newTaker(join(root, 'ages'), { peers, adopt, monotonicUs: () => nowUs });
  expect(await ages.obtain(HOLDING)).toBe(true);
  expect(nowUs).toBeGreaterThan(1e12);
  expect(adopted).toEqual([{ nowUs: GIVER_NOW_US, monotonicUs: 1e12 }]);
  expect(giver.hasCopied(HOLDING, 'taker')).toBe(true);
  // Of what it has no use for, it is asked once, and lets go.
  const refuse = () => Promise.reject(new SegmentError('it is of fewer entries'));
  const other = newTaker(join(root, 'refused'), { peers, adopt: refuse, storeId: 'other' });
  expect(await other.obtain(HOLDING)).toBe(false);
  expect([other.failedCount, giver.hasCopied(HOLDING, 'other')]).toEqual([1, false]);
  expect(readdirSync(join(root, 'giver', 'snapshot'))).toEqual([]);
  const given = readCopy(await giver.copy(request), 'shards/edge+0');
  giver.forget(HOLDING);
  expect(giver.hasCopied(HOLDING, 'taker')).toBe(false);
  // It was of what is not here any more.
  await giver.release(writeMessage({ snapshot: given.id }));
  expect(giver.hasCopied(HOLDING, 'taker')).toBe(false);
  // So is one whose snapshot is being made when that goes.
  const making = giver.copy(request);
  giver.forget(HOLDING);
  await giver.release(writeMessage({ snapshot: readCopy(await making, 'shards/edge+0').id }));
  expect(giver.hasCopied(HOLDING, 'taker')).toBe(false);
  peers.close();
});

test('a piece may be as large as builds of before asked for, and no larger', async () => {
  const request = writeMessage({ topic: 'edge', topicId: '', partition: 0, store: 'of-before' });
  const { id: snapshot, files } = readCopy(await giver.copy(request), 'shards/edge+0');
  const { name } = files.reduce((a, b) => (a.byteCount > b.byteCount ? a : b));
  const piece = (byteCount: number) =>
    giver.piece(writeMessage({ snapshot, name, at: 0, byteCount, sha256: null }), Buffer.allocUnsafe);
  expect((await piece(2 ** 20))?.length).toBe(2 ** 20 + PIECE_CHECKSUM_BYTES);
  await expect(piece(2 ** 20 + 1)).rejects.toThrow(PartialError);
  await giver.release(writeMessage({ snapshot }));
});

/** Members that a taker knows, each with what it holds of some partitions; `copy`: when one is asked for a copy. */
async function peersHolding(
  holdings: Readonly<Record<string, Partial<Holding>>>,
  partitionCount: number,
  copy: (storeId: string) => Promise<Uint8Array>,
  more: Partial<PeerLink> = {},
): Promise<Peers> {
  const copies = (holding: Partial<Holding> | undefined) =>
    Array.from({ length: holding === undefined ? 0 : partitionCount }, (_, partition) => ({
      ...HOLDING,
      ...holding,
      partition,
      projects: null,
      from: 0,
      hashes: new Uint32Array(0),
    }));
  const peers = new Peers({
    storeId: 'taker',
    zone: '',
    linkTo: (of) => ({
      ...NO_COPIES,
      ask: () => expect.unreachable('no question is asked'),
      holdings: async () =>
        writeHoldings({
          topics: [{ topic: 'edge', topicId: '', partitionCount }],
          copies: copies(holdings[new URL(of).hostname]),
        }),
      copy: () => copy(new URL(of).hostname),
      close: () => undefined,
      ...more,
    }),
    monotonicUs,
    freshMs: 10_000,
  });
  peers.update(
    ['taker', ...Object.keys(holdings)].map((storeId) => ({
      ...MEMBER,
      storeId,
      url: `http://${storeId}:1`,
    })),
  );
  await peers.poll();
  return peers;
}

/** Runs what is to be run later at once. */
const atOnce: CopyTakerPorts['after'] = (_, task) => {
  setImmediate(task);
  return () => undefined;
};

test('a giver that serves others first is waited for, however long that takes', async () => {
  let askedCount = 0;
  const peers = await peersHolding({ giver: {} }, 1, async () => {
    if (++askedCount <= 3 * COPY_TRIES) throw new PeerStatusError(BUSY_STATUS, 'other members are copying');
    throw new PeerStatusError(404, 'not here any more');
  });
  const taker = newTaker(join(root, 'busy'), { peers, after: atOnce });
  expect(await taker.obtain(HOLDING)).toBe(false);
  expect([askedCount, taker.failedCount]).toEqual([3 * COPY_TRIES + 1, 1]);
});

test('of several that have a partition the one is asked that is not busy', async () => {
  const asked: string[] = [];
  const peers = await peersHolding({ busy: {}, other: {} }, 1, async (storeId) => {
    asked.push(storeId);
    throw new PeerStatusError(storeId === 'busy' ? BUSY_STATUS : 404, 'no');
  });
  const taker = newTaker(join(root, 'not-busy'), { peers, after: atOnce });
  const obtained = taker.obtain(HOLDING);
  await eventually(() => asked.includes('other'));
  expect(asked.slice(0, 2).sort()).toEqual(['busy', 'other']);
  taker.close();
  void obtained;
});

test('tries that have got far count from the beginning', async () => {
  const request = writeMessage({ topic: 'edge', topicId: '', partition: 0, store: 'far' });
  const { files, ...given } = readCopy(await giver.copy(request), 'shards/edge+0');
  await giver.release(writeMessage({ snapshot: given.id }));
  const large = writeMessage({ ...given, files: [{ ...files[0], byteCount: 2 * COPY_PROGRESS_BYTES }] });
  let askedCount = 0;
  let pieces = 0;
  const peers = await peersHolding(
    { giver: {} },
    1,
    async () => {
      // Once it begins, and breaks off when it has got far.
      if (++askedCount === COPY_TRIES - 1) return large;
      throw new Error('it is started again');
    },
    {
      piece: async () => {
        if (++pieces > COPY_PROGRESS_BYTES / PIECE_BYTES) throw new Error('it breaks off');
        const piece = Buffer.alloc(PIECE_BYTES + PIECE_CHECKSUM_BYTES);
        writePieceChecksum(piece);
        return piece;
      },
    },
  );
  const taker = newTaker(join(root, 'far'), { peers, after: atOnce });
  expect(await taker.obtain(HOLDING)).toBe(false);
  expect(askedCount).toBe(COPY_TRIES - 1 + COPY_TRIES - 1);
});

test('a try that fails leaves its place at the giver to others', async () => {
  const link = new TcpPeerLink(url, 'key');
  const copy = () => link.copy(writeMessage({ topic: 'edge', topicId: '', partition: 0, store: 'breaking' }));
  const peers = await peersHolding({ giver: {} }, 1, copy, {
    piece: () => Promise.reject(new Error('it breaks off')),
    release: (request) => link.release(request),
  });
  const taker = newTaker(join(root, 'breaking'), { peers });
  void taker.obtain(HOLDING);
  await eventually(() => taker.failedCount === 1);
  await eventually(() => readdirSync(join(root, 'giver', 'snapshot')).length === 0);
  taker.close();
  link.close();
});

test('a piece that is changed on its way is asked for again', async () => {
  const link = new TcpPeerLink(url, 'key');
  let isChanged = false;
  const peers = await peersHolding(
    { giver: {} },
    1,
    () => link.copy(writeMessage({ topic: 'edge', topicId: '', partition: 0, store: 'changed' })),
    {
      piece: async (request, allocate) => {
        const piece = await link.piece(request, allocate);
        if (piece !== null && piece.length > 100_000 && !isChanged) {
          isChanged = true;
          piece[50_000] ^= 1;
        }
        return piece;
      },
      release: (request) => link.release(request),
    },
  );
  const directory = join(root, 'changed');
  const store = await Store.open(directory, CACHE_BYTES);
  const adopt: CopyTakerPorts['adopt'] = async (_, folder) => {
    await store.adopt(SCOPE, folder, async () => undefined);
    return true;
  };
  const taker = newTaker(directory, { peers, adopt, after: atOnce });
  expect(await taker.obtain(HOLDING)).toBe(true);
  await store.close();
  expect([isChanged, taker.failedCount, taker.adoptedCount]).toEqual([true, 1, 1]);
  await expectWhole(directory);
  link.close();
});

test('an old copy is for when there is no other, however often others have failed', async () => {
  const asked: string[] = [];
  const peers = await peersHolding(
    { fresh: {}, old: { isReached: false, nextOffset: 9 } },
    1,
    async (storeId) => {
      asked.push(storeId);
      throw new Error('it is started again');
    },
  );
  expect(await newTaker(join(root, 'old'), { peers, after: atOnce }).obtain(HOLDING)).toBe(false);
  expect(asked).toEqual([...new Array(COPY_TRIES).fill('fresh'), ...new Array(COPY_TRIES).fill('old')]);
});

test('a copy that began later is for when no other is left, also where it is the only fresh one', async () => {
  const asked: string[] = [];
  const peers = await peersHolding(
    { later: { nextOffset: 9, received: 2 }, whole: { isReached: false } },
    1,
    async (storeId) => {
      asked.push(storeId);
      throw new Error('it is started again');
    },
  );
  expect(await newTaker(join(root, 'later'), { peers, after: atOnce }).obtain(HOLDING)).toBe(false);
  expect(asked).toEqual([...new Array(COPY_TRIES).fill('whole'), ...new Array(COPY_TRIES).fill('later')]);
});

test('one that had more, and is gone before all of it was copied, is not forgotten: what it had is missed', async () => {
  const holdings: Record<string, Partial<Holding>> = { giver: {} };
  const peers: Peers = await peersHolding(holdings, 1, async () => {
    delete holdings.giver;
    await peers.poll();
    throw new Error('it is gone');
  });
  expect(await newTaker(join(root, 'gone'), { peers, after: atOnce }).obtain(HOLDING)).toBe(false);
});

test('what a member of the zone reads beside this one is not read from the log instead, however often it fails', async () => {
  let nowUs = 0;
  let askedCount = 0;
  let isBeside = true;
  const peers = await peersHolding({ giver: {} }, 1, async () => {
    askedCount++;
    if (askedCount === 3) isBeside = false;
    throw new PeerStatusError(404, 'there is too much of it');
  });
  const taker = newTaker(join(root, 'beside'), {
    peers,
    isReadBeside: () => isBeside,
    monotonicUs: () => nowUs,
    after: (delayMs, task) => {
      nowUs += 1000 * delayMs;
      return atOnce(delayMs, task);
    },
  });
  expect(await taker.obtain(HOLDING)).toBe(false);
  expect([askedCount, nowUs]).toEqual([3, 2 * 1000 * COPY_WAIT_MS]);
});

test('a stop ends the wait for a copy that is only for balance', async () => {
  const peers = await peersHolding({ giver: {} }, 1, async () => {
    throw new PeerStatusError(404, 'there is too much of it');
  });
  let pauseCount = 0;
  const taker: CopyTaker = newTaker(join(root, 'stopped-beside'), {
    peers,
    isReadBeside: () => true,
    monotonicUs: () => 0,
    after: (delayMs, task) => {
      if (++pauseCount === 3) taker.close();
      return atOnce(delayMs, task);
    },
  });
  void taker.obtain(HOLDING);
  await eventually(() => pauseCount >= 3);
  for (let turn = 0; turn < 10; turn++) await nextTurn();
  expect(pauseCount).toBe(3);
});

test('some partitions are copied at the same time, and another begins when one of them ends', async () => {
  const fail: (() => void)[] = [];
  const peers = await peersHolding(
    { giver: {} },
    5,
    () =>
      new Promise((_, reject) => {
        fail.push(() => reject(new PeerStatusError(404, 'not here any more')));
      }),
  );
  const taker = newTaker(join(root, 'lanes'), { peers });
  const done = Array.from({ length: 5 }, (_, partition) => taker.obtain({ topic: 'edge', partition }));
  for (let begun = COPIES_TAKEN_AT_ONCE; begun <= 5; begun++) {
    await eventually(() => fail.length >= begun);
    expect(fail.length).toBe(begun);
    fail[begun - COPIES_TAKEN_AT_ONCE]();
  }
  for (const last of fail.slice(-COPIES_TAKEN_AT_ONCE)) last();
  await Promise.all(done);
});

test(
  'killed at any point of its own after the last piece, it has all or nothing, and then all',
  CAMPAIGN,
  async () => {
    let killCount = 0;
    for (const point of POINTS) {
      for (let pass = 1; pass <= 2; pass++) {
        const directory = join(root, `${point}-${pass}`.replaceAll(' ', '-'));
        const { code, said } = await take(directory, `${point} ${pass}`);
        if (code === 0) {
          expect(said).toEqual({ fetched: expect.any(Number), failed: 0 });
          rmSync(directory, { recursive: true });
          break;
        }
        killCount++;
        const stored = await storedIn(directory);
        if (stored !== null) expect(stored).toEqual(contentOf(giving));
        // What was there by then is not fetched again, and what is there already is replaced by the same.
        pieceCount = 0;
        expect((await take(directory)).code).toBe(0);
        if (existsSync(join(directory, 'incoming', 'edge+0'))) expect(pieceCount).toBe(0);
        await expectWhole(directory);
        rmSync(directory, { recursive: true });
      }
    }
    expect(killCount).toBeGreaterThan(POINTS.length);
  },
);

/** A store that has something else of the partition. */
async function oldStore(name: string): Promise<string> {
  const directory = join(root, name);
  const store = await Store.open(directory, CACHE_BYTES);
  for (const state of ['older', 'old'])
    await store.commit((writerOf) => {
      writerOf(SCOPE).append('one-0', Buffer.from(state));
      writerOf(SCOPE).put('state', Buffer.from(state));
    });
  await store.close();
  return directory;
}

/** As a start does it. */
async function startedIn(directory: string): Promise<string | null> {
  await storedIn(directory);
  await newTaker(directory).tidy();
  const incoming = join(directory, 'incoming');
  if (existsSync(incoming)) expect(['', 'edge+0']).toContain(readdirSync(incoming).join());
  return storedIn(directory);
}

test('killed while it replaces what it has, it has the old or the new, with or without anybody to copy from', async () => {
  const old = await oldStore('old');
  const contents = [await storedIn(old), contentOf(giving)];
  const found = new Set<string | null>();
  let amidCount = 0;
  for (const point of ['before rename', 'after rename', 'after sync-folder']) {
    for (let pass = 1; ; pass++) {
      const directory = join(root, 'replacing');
      cpSync(old, directory, { recursive: true });
      const { code } = await take(directory, `${point} ${pass}`);
      const isAmid = !existsSync(join(directory, 'shards', 'edge+0'));
      if (isAmid) {
        amidCount++;
        // What comes in is not whole any more.
        const damaged = join(root, 'damaged');
        cpSync(directory, damaged, { recursive: true, filter: (path) => !path.includes('/lock-') });
        truncateSync(join(damaged, 'incoming', 'edge+0', '90d', 'rows'), 5);
        expect(await startedIn(damaged)).toBe(contents[0]);
        rmSync(damaged, { recursive: true });
      }
      const stored = await startedIn(directory);
      expect(contents).toContain(stored);
      found.add(stored);
      rmSync(directory, { recursive: true });
      if (code === 0) break;
    }
  }
  expect(found.size).toBe(2);
  expect(amidCount).toBeGreaterThan(2);
});

test('where a copy cannot be loaded, what was here is here again, and goes on', async () => {
  const directory = await oldStore('not-loaded');
  const before = await storedIn(directory);
  const incoming = join(directory, 'incoming', 'edge+0');
  cpSync(join(root, 'giver', 'shards', 'edge+0'), incoming, { recursive: true });
  const store = await Store.open(directory, CACHE_BYTES);
  const adopting = store.adopt(SCOPE, incoming, async () => {
    expect(contentOf(store)).toBe(contentOf(giving));
    throw new SegmentError('it is of no use');
  });
  await expect(adopting).rejects.toThrow(/of no use/);
  expect(contentOf(store)).toBe(before);
  await store.commit((writerOf) => writerOf(SCOPE).append('one-0', Buffer.from('new')));
  const after = contentOf(store);
  await store.close();
  expect(after).not.toBe(before);
  expect(await startedIn(directory)).toBe(after);
});

test('who read what was here reads nothing of what took its place, and no damage either', async () => {
  const directory = await oldStore('read-on');
  const incoming = join(directory, 'incoming', 'edge+0');
  cpSync(join(root, 'giver', 'shards', 'edge+0'), incoming, { recursive: true });
  const store = await Store.open(directory, CACHE_BYTES);
  const before = store.reader(SCOPE);
  expect(before.block('one-0', 0).length).toBeGreaterThan(0);
  await store.adopt(SCOPE, incoming, async () => undefined);
  for (const read of [
    () => before.block('one-0', 0),
    () => before.block('one-0', 1_000),
    () => before.blockCount('one-0'),
    () => before.get('state'),
    () => before.list(''),
  ])
    expect(read).toThrow(/has gone/);
  expect(store.reader(SCOPE).blockCount('one-2')).toBeGreaterThan(0);
  expect(store.damage.fileCount).toBe(0);
  await store.close();
});

test('killed while it loads the new one, it has the old one, and what came in is still there', async () => {
  const directory = await oldStore('killed-amid-load');
  const before = await storedIn(directory);
  const incoming = join(directory, 'incoming', 'edge+0');
  cpSync(join(root, 'giver', 'shards', 'edge+0'), incoming, { recursive: true });
  const killed = join(root, 'killed-amid-load-then');
  const store = await Store.open(directory, CACHE_BYTES);
  await store.adopt(SCOPE, incoming, async () => {
    cpSync(directory, killed, { recursive: true, filter: (path) => !path.includes('/lock-') });
  });
  await store.close();
  expect(existsSync(join(killed, 'shards', 'edge+0'))).toBe(true);
  const { findings } = checkStore(killed, GIVER_NOW_US);
  expect(findings.map(({ what }) => what)).toContainEqual(
    expect.stringMatching(/edge\+0\.replaced was being/),
  );
  expect(await startedIn(killed)).toBe(before);
  expect(readdirSync(join(killed, 'incoming'))).toEqual(['edge+0']);
  expect(await startedIn(directory)).toBe(contentOf(giving));
});

test('a copy that cannot be loaded, or is being loaded, is not there for a start, also where nothing was', async () => {
  const directory = join(root, 'was-nothing');
  const incoming = join(directory, 'incoming', 'edge+0');
  const killed = join(root, 'was-nothing-killed');
  const store = await Store.open(directory, CACHE_BYTES);
  for (const isUseless of [true, false]) {
    cpSync(join(root, 'giver', 'shards', 'edge+0'), incoming, { recursive: true });
    const load = async () => {
      rmSync(killed, { recursive: true, force: true });
      cpSync(directory, killed, { recursive: true, filter: (path) => !path.includes('/lock-') });
      if (isUseless) throw new SegmentError('it is of no use');
    };
    const adopting = store.adopt(SCOPE, incoming, load);
    if (isUseless) await expect(adopting).rejects.toThrow(/of no use/);
    else await adopting;
    expect(readdirSync(join(directory, 'incoming')).every((name) => name.endsWith('.dropped'))).toBe(true);
    expect(await startedIn(killed)).toBeNull();
    expect(readdirSync(join(killed, 'incoming'))).toEqual(['edge+0']);
  }
  await store.close();
  expect(await startedIn(directory)).toBe(contentOf(giving));
});

test('killed at any piece it goes on where it was', CAMPAIGN, async () => {
  const startUs = monotonicUs();
  await take(join(root, 'whole'));
  if (process.env.LOGRING_TEST_COPY_MB !== undefined)
    process.stdout.write(
      `${COPY_MB} MB: a process has started, copied them and ended after ${(monotonicUs() - startUs) / 1e6} s\n`,
    );
  const all = pieceCount;
  expect(all).toBeGreaterThanOrEqual(Math.floor((COPY_MB * 1e6) / PIECE_BYTES));
  for (let last = 1; last < all; last += Math.max(5, Math.ceil(all / PIECE_KILLS))) {
    const directory = join(root, `piece-${last}`);
    pieceCount = 0;
    const { code } = await take(directory, 'never 1', (kill) => {
      onPiece = () => {
        if (pieceCount === last) kill();
      };
    });
    expect(code).toBeNull();
    expect(await storedIn(directory)).toBeNull();
    pieceCount = 0;
    onPiece = () => undefined;
    await take(directory);
    // Those that were on their way may not have been written.
    expect(pieceCount).toBeLessThanOrEqual(all - last + PIECES_AT_ONCE + 1);
    await expectWhole(directory);
    rmSync(directory, { recursive: true });
  }
});

test('a giver that is started again in between gives the rest', async () => {
  let hasRestarted = false;
  onPiece = () => {
    if (pieceCount !== 4 || hasRestarted) return;
    hasRestarted = true;
    giver.close();
    giver = newGiver();
  };
  const directory = join(root, 'restarted');
  const { said } = await take(directory);
  expect(hasRestarted).toBe(true);
  expect(said?.failed).toBe(1);
  expect(said?.fetched).toBeLessThan(2 * BLOCKS * BLOCK_BYTES);
  expect(pieceCount).toBeLessThan((BLOCKS * BLOCK_BYTES) / PIECE_BYTES + 6);
  await expectWhole(directory);
});

test('of a store that was repaired there is no copy, and nothing waits for one', async () => {
  giver.close();
  giver = newGiver(true);
  const directory = join(root, 'of-repaired');
  expect(await take(directory)).toEqual({ code: 0, said: { fetched: 0, failed: 1 } });
  expect(await storedIn(directory)).toBeNull();
  giver.close();
  giver = newGiver();
});

test('what is there of other tries, of another store or damaged, does not get in', async () => {
  const directory = join(root, 'old-try');
  const incoming = join(directory, 'incoming', 'edge+0');
  mkdirSync(incoming, { recursive: true });
  cpSync(join(root, 'giver', 'shards', 'edge+1', '0.journal'), join(incoming, '0.journal'));
  cpSync(join(root, 'giver', 'shards', 'edge+0', '0.journal'), join(incoming, '7.journal'));
  await take(directory);
  await expectWhole(directory);
});

test('parts of copies that nobody goes on with are removed; what a killed process moved away, at once', async () => {
  const directory = join(root, 'leftovers');
  const left = () => readdirSync(join(directory, 'incoming')).sort();
  for (const name of ['edge+0', 'edge+1', 'edge+2.replaced', 'edge+3.dropped'])
    mkdirSync(join(directory, 'incoming', name, 'folder'), { recursive: true });
  const taker = newTaker(directory);
  void taker.obtain({ topic: 'edge', partition: 0 });
  await taker.tidy();
  expect(left()).toEqual(['edge+0', 'edge+1']);
  await taker.removeLeftovers();
  expect(left()).toEqual(['edge+0']);
});
