/** The cluster port: nothing without the key, and whatever comes in is answered or refused. */

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PartialError } from '../../engine/partial-format.js';
import { ClusterListener, type ClusterListenerPorts } from '../../src/cluster/cluster-listener.js';
import { NotGiven } from '../../src/cluster/copy-giver.js';
import { CODES, type FrameHead, FrameReader } from '../../src/cluster/frames.js';
import {
  KEY_BYTES,
  QUESTION_BYTES,
  QUESTIONS_AT_ONCE,
  REQUESTS_A_TURN,
  REQUESTS_AT_ONCE,
  UNSENT_REPLY_BYTES,
} from '../../src/cluster/limits.js';
import { TcpPeerLink } from '../../src/cluster/peer-link.js';
import { POOLED_BODY_BYTES } from '../../src/endpoints/limits.js';
import { KeyRing } from '../../src/http/auth.js';
import { checkedIdentity } from '../../src/http/server/tls-identity.js';
import { eventually } from '../eventually.js';
import { makeCertificate, textOfFile } from '../http/certificates.js';
import { ask, framed, room } from './framed-asks.js';

/** The first byte of what is answered with so many bytes like the second one. */
const LARGE = 2;
const LARGE_BYTES = POOLED_BODY_BYTES;
const ASKING = fileURLToPath(new URL('./asking-process.js', import.meta.url));
/** The first byte of what is not answered. */
const NEVER = 3;
/** The first byte of what is answered in a later turn. */
const LATER = 4;

const bugs: unknown[] = [];
/** First bytes of questions. */
const asked: number[] = [];
const ports: ClusterListenerPorts = {
  keys: new KeyRing([
    { key: 'new-key', projects: null },
    { key: 'old-key', projects: null },
  ]),
  answer: (question, allocate) => {
    asked.push(question[0]);
    const answered = Buffer.concat([Buffer.from('answered '), question]);
    switch (question[0]) {
      case 0:
        throw new PartialError('no question');
      case 1:
        return Promise.reject(new Error('a bug'));
      case LARGE:
        return allocate(LARGE_BYTES).subarray(0, LARGE_BYTES).fill(question[1]);
      case NEVER:
        return new Promise(() => undefined);
      case LATER:
        return new Promise((resolve) => setImmediate(() => resolve(answered)));
      default:
        return answered;
    }
  },
  holdings: () => Buffer.from('holdings'),
  names: () => Promise.reject(new PartialError('no request for names')),
  copies: {
    copy: () => Promise.reject(new NotGiven(404, 'nothing is given')),
    piece: (request) => Promise.resolve(request[0] === 0 ? null : request),
    release: () => Promise.resolve(Buffer.from('')),
  },
  bugs: { report: (error) => bugs.push(error) },
  identity: null,
};
const listener = new ClusterListener(ports);
let port = 0;
let url = '';
beforeAll(async () => {
  port = await listener.listen('127.0.0.1', 0);
  url = `http://127.0.0.1:${port}`;
});
afterAll(() => listener.close(0));

test('each of the keys is taken, no other', async () => {
  for (const key of ['new-key', 'old-key']) {
    const link = new TcpPeerLink(url, key);
    expect(await ask(link, 65)).toBe('answered A');
    link.close();
  }
  asked.length = 0;
  for (const key of ['', 'new-ke', 'new-key2', 'other', 'x'.repeat(KEY_BYTES)]) {
    const link = new TcpPeerLink(url, key);
    await expect(ask(link, 65)).rejects.toThrow('answered 401: a key of LOGRING_CLUSTER_KEYS is needed');
    link.close();
  }
  expect(asked).toEqual([]);
});

const KEY = framed(CODES.key, 0, Buffer.from('new-key'));

test.each([
  ['a request without a key', framed(CODES.question, 1, Buffer.from('A'))],
  ['a key that is longer than any', framed(CODES.key, 0, Buffer.alloc(KEY_BYTES + 1))],
  ['a second key', Buffer.concat([KEY, KEY])],
  ['a request of no kind', Buffer.concat([KEY, framed(99, 1, Buffer.from('A'))])],
  [
    'a question that is too long',
    Buffer.concat([KEY, framed(CODES.question, 1, Buffer.alloc(QUESTION_BYTES + 1))]),
  ],
  ['bytes of HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: here\r\n\r\n')],
])('%s ends the connection, and nothing of it is asked', async (_name, bytes) => {
  asked.length = 0;
  const said = await saidTo(port, bytes);
  expect(said === '' || said.startsWith('HTTP/1.1 400')).toBe(true);
  expect(said === '').toBe(bytes.subarray(0, KEY.length).equals(KEY));
  expect(asked).toEqual([]);
});

test('what is no question is refused, a bug is reported, and the connection goes on', async () => {
  const link = new TcpPeerLink(url, 'new-key');
  bugs.length = 0;
  await expect(ask(link, 0)).rejects.toThrow('answered 400: no question');
  expect(bugs).toHaveLength(0);
  await expect(ask(link, 1)).rejects.toThrow('answered 500');
  expect(bugs).toHaveLength(1);
  await expect(link.names(new Uint8Array(0), 5_000)).rejects.toThrow('answered 400: no request for names');
  await expect(link.copy(new Uint8Array(0))).rejects.toThrow('answered 404: nothing is given');
  expect(Buffer.from(await link.holdings(new Uint8Array(0), 5_000)).toString()).toBe('holdings');
  expect(await ask(link, 65)).toBe('answered A');
  link.close();
});

test('a link asks, gives up in time, and says why', async () => {
  const link = new TcpPeerLink(url, 'new-key');
  expect(await ask(link, 65)).toBe('answered A');
  expect(await link.piece(Uint8Array.of(0), Buffer.alloc)).toBe(null);
  await expect(link.ask(Uint8Array.of(NEVER), 20, false, room())).rejects.toThrow(
    'did not answer within 20 ms',
  );
  const never = link.ask(Uint8Array.of(NEVER), 5_000, false, room());
  await eventually(() => asked.at(-1) === NEVER);
  link.close();
  await expect(never).rejects.toThrow('the link to it was closed');
  await expect(ask(link, 65)).rejects.toThrow('the link to it was closed');
});

test('replies come in the order in which they are ready, each to its request, and of many as of one', async () => {
  const link = new TcpPeerLink(url, 'new-key');
  const ready: string[] = [];
  const noting = async (reply: Promise<string>) => ready.push(await reply);
  const never = link.ask(Uint8Array.of(NEVER), 30_000, false, room());
  await Promise.all([noting(ask(link, LATER, 65)), noting(ask(link, 66)), noting(ask(link, 67))]);
  expect(ready).toEqual(['answered B', 'answered C', `answered ${String.fromCharCode(LATER)}A`]);
  const many = Array.from({ length: 3 * REQUESTS_A_TURN + 1 }, (_, i) => ask(link, 100, 32 + i));
  for (const [i, reply] of (await Promise.all(many)).entries())
    expect(reply).toBe(`answered d${String.fromCharCode(32 + i)}`);
  link.close();
  await expect(never).rejects.toThrow('the link to it was closed');
});

test('more questions than may be under way are refused, and of one connection wait', async () => {
  const own = new ClusterListener(ports);
  const ownUrl = `http://127.0.0.1:${await own.listen('127.0.0.1', 0)}`;
  const links = Array.from(
    { length: QUESTIONS_AT_ONCE / REQUESTS_AT_ONCE },
    () => new TcpPeerLink(ownUrl, 'new-key'),
  );
  asked.length = 0;
  const never = links.flatMap((link) =>
    Array.from({ length: REQUESTS_AT_ONCE }, () => link.ask(Uint8Array.of(NEVER), 30_000, false, room())),
  );
  await eventually(() => asked.length === QUESTIONS_AT_ONCE);
  const waiting = links.map((link) => link.ask(Uint8Array.of(65), 30_000, false, room()));
  const another = new TcpPeerLink(ownUrl, 'new-key');
  await expect(ask(another, 65)).rejects.toThrow('answered 503: too many questions at once');
  expect(asked).toHaveLength(QUESTIONS_AT_ONCE);
  for (const link of [...links, another]) link.close();
  for (const { status } of await Promise.allSettled([...never, ...waiting])) expect(status).toBe('rejected');
  await own.close(0);
});

test('what waits for others of its connection is answered once one of them is', async () => {
  const answers: (() => void)[] = [];
  const own = new ClusterListener({
    ...ports,
    answer: (question) => new Promise((resolve) => answers.push(() => resolve(question))),
  });
  const link = new TcpPeerLink(`http://127.0.0.1:${await own.listen('127.0.0.1', 0)}`, 'new-key');
  const count = REQUESTS_AT_ONCE + 10;
  const all = Array.from({ length: count }, (_, i) => ask(link, 32 + i));
  for (let i = 0; i < count; i++) {
    await eventually(() => answers.length === Math.min(count, REQUESTS_AT_ONCE + i));
    answers[i]();
    expect(await all[i]).toBe(String.fromCharCode(32 + i));
  }
  link.close();
  await own.close(0);
});

test('of a connection only so many are answered in one turn', async () => {
  let turn = 0;
  let isGoing = true;
  const counts = new Map<number, number>();
  const countTurns = () => {
    turn++;
    if (isGoing) setImmediate(countTurns);
  };
  countTurns();
  const own = new ClusterListener({
    ...ports,
    answer: () => {
      counts.set(turn, (counts.get(turn) ?? 0) + 1);
      return Buffer.alloc(5_000);
    },
  });
  const link = new TcpPeerLink(`http://127.0.0.1:${await own.listen('127.0.0.1', 0)}`, 'new-key');
  await Promise.all(Array.from({ length: 20 * REQUESTS_A_TURN }, () => ask(link, 65)));
  isGoing = false;
  // Some as they come, and some of those that waited.
  expect(Math.max(...counts.values())).toBeLessThanOrEqual(2 * REQUESTS_A_TURN);
  link.close();
  await own.close(0);
});

test('a reply is what it was, though its reader takes its time and others are answered meanwhile', async () => {
  const readers = Array.from({ length: 20 }, (_, i) => {
    const socket = connect(port, '127.0.0.1');
    socket.pause();
    socket.write(Buffer.concat([KEY, framed(CODES.question, 7, Uint8Array.of(LARGE, i))]));
    return socket;
  });
  const link = new TcpPeerLink(url, 'new-key');
  const others = await Promise.all(
    Array.from({ length: 40 }, () => link.ask(Uint8Array.of(LARGE, 200), 30_000, false, room())),
  );
  for (const bytes of others) expect(Buffer.compare(bytes, Buffer.alloc(LARGE_BYTES, 200))).toBe(0);
  link.close();
  for (const [i, socket] of readers.entries()) {
    const [[head, body]] = await framesOf(socket, 1);
    expect(head).toEqual({ byteCount: LARGE_BYTES, number: 7, code: 200 });
    expect(Buffer.compare(body, Buffer.alloc(LARGE_BYTES, i))).toBe(0);
    socket.destroy();
  }
});

test('of a member that takes no replies no more is read than a bound, until it takes them', async () => {
  asked.length = 0;
  const socket = connect(port, '127.0.0.1');
  socket.pause();
  // More than all of the system's buffers hold.
  const count = 200;
  const questions = Array.from({ length: count }, (_, i) =>
    framed(CODES.question, i + 1, Uint8Array.of(LARGE, i)),
  );
  await new Promise<unknown>((resolve) => socket.write(Buffer.concat([KEY, ...questions]), resolve));
  const link = new TcpPeerLink(url, 'new-key');
  let largeCount = 0;
  for (let sameCount = 0; sameCount < 100; sameCount++) {
    await ask(link, 65);
    const now = asked.filter((first) => first === LARGE).length;
    if (now > largeCount) sameCount = 0;
    largeCount = now;
  }
  const inBuffers = 20 * 2 ** 20;
  expect(largeCount * LARGE_BYTES).toBeLessThan(
    UNSENT_REPLY_BYTES + inBuffers + REQUESTS_A_TURN * LARGE_BYTES,
  );
  const replies = await framesOf(socket, count);
  expect(replies.map(([{ number }]) => number)).toEqual(questions.map((_, i) => i + 1));
  for (const [i, [, body]] of replies.entries()) expect(body.every((byte) => byte === i)).toBe(true);
  socket.destroy();
  link.close();
});

test('what is under way when it is closed is answered, what is asked then refused, and idle connections end', async () => {
  let answer: (reply: Uint8Array) => void = () => undefined;
  const own = new ClusterListener({
    ...ports,
    answer: (question) =>
      question[0] === LATER ? new Promise((resolve) => (answer = resolve)) : Buffer.from(`of ${question[0]}`),
  });
  const ownUrl = `http://127.0.0.1:${await own.listen('127.0.0.1', 0)}`;
  const [idle, busy] = [new TcpPeerLink(ownUrl, 'new-key'), new TcpPeerLink(ownUrl, 'new-key')];
  const stranger = connect({ port: Number(new URL(ownUrl).port), host: '127.0.0.1', allowHalfOpen: true });
  expect(await ask(idle, 65)).toBe('of 65');
  const [later] = [ask(busy, LATER), await ask(busy, 66)];
  const closed = own.close(60_000);
  stranger.resume();
  await new Promise((resolve) => stranger.once('end', resolve));
  await expect(ask(busy, 67)).rejects.toThrow('answered 503: it is being stopped');
  await expect(ask(idle, 65)).rejects.toThrow(/ECONNREFUSED/);
  answer(Buffer.from('at last'));
  expect(await later).toBe('at last');
  await closed;
  stranger.destroy();
  for (const link of [idle, busy]) link.close();
});

test('what is not answered in time when it is closed is cut off', async () => {
  const own = new ClusterListener(ports);
  const link = new TcpPeerLink(`http://127.0.0.1:${await own.listen('127.0.0.1', 0)}`, 'new-key');
  asked.length = 0;
  const never = ask(link, NEVER);
  await eventually(() => asked.includes(NEVER));
  await Promise.all([own.close(0), expect(never).rejects.toThrow('closed the connection')]);
  link.close();
});

test('new connections get the certificate that took the place of the first', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-cluster-tls-'));
  const [one, two] = ['one', 'two'].map((name) => {
    const { certificate, key } = makeCertificate(directory, name);
    return checkedIdentity(textOfFile(certificate), textOfFile(key), { certificate, key });
  });
  const secured = new ClusterListener({ ...ports, identity: one });
  const securedPort = await secured.listen('127.0.0.1', 0);
  const shown = () =>
    new Promise<string>((resolve, reject) => {
      const options = { port: securedPort, host: '127.0.0.1', rejectUnauthorized: false };
      const socket = connectTls(options, () => {
        resolve(socket.getPeerCertificate().subject.CN as string);
        socket.destroy();
      });
      socket.once('error', reject);
    });
  expect(await shown()).toBe('one');
  secured.renewIdentity(two);
  expect(await shown()).toBe('two');
  // Nobody whom this process trusts has signed it.
  const link = new TcpPeerLink(`https://127.0.0.1:${securedPort}`, 'new-key');
  await expect(link.holdings(new Uint8Array(0), 5_000)).rejects.toThrow(/self.signed/);
  link.close();
  await secured.close(0);
  rmSync(directory, { recursive: true });
});

test('over TLS a link reads what it reads without', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-cluster-tls-'));
  const { certificate, key } = makeCertificate(directory, 'trusted');
  const identity = checkedIdentity(textOfFile(certificate), textOfFile(key), { certificate, key });
  const secured = new ClusterListener({ ...ports, identity });
  const securedUrl = `https://127.0.0.1:${await secured.listen('127.0.0.1', 0)}`;
  // Only what it is told at its start does a process trust more.
  const asking = spawn(process.execPath, [ASKING, securedUrl, String(LARGE), '5'], {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: certificate },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  for await (const piece of asking.stdout) said += piece;
  const whole = { byteCount: LARGE_BYTES, isSame: true };
  expect(JSON.parse(said)).toEqual({ large: new Array(5).fill(whole), small: 'answered x' });
  await secured.close(0);
  rmSync(directory, { recursive: true });
});

/** All that comes back until the other side closes. */
function saidTo(to: number, bytes: Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connect(to, '127.0.0.1', () => socket.write(bytes));
    socket.setEncoding('latin1').on('data', (piece) => {
      received += piece;
    });
    socket.on('error', () => undefined);
    socket.once('close', () => resolve(received));
  });
}

/** The next frames that come. */
function framesOf(socket: Socket, count: number): Promise<[FrameHead, Uint8Array<ArrayBufferLike>][]> {
  return new Promise((resolve) => {
    const frames: [FrameHead, Uint8Array][] = [];
    const reader = new FrameReader({
      begin: () => Buffer.alloc,
      end: (head, body) => {
        frames.push([head, body]);
        if (frames.length === count) resolve(frames);
      },
    });
    socket.on('data', (piece) => reader.take(piece));
    socket.resume();
  });
}
