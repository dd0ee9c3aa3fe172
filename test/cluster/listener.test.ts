/** The cluster port: nothing without the key, and whatever comes in is answered or refused. */

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ByteWriter } from '../../engine/bytes.js';
import { PartialError } from '../../engine/partial-format.js';
import { ClusterListener, type ClusterListenerPorts } from '../../src/cluster/cluster-listener.js';
import { HOLDINGS_PATH, QUESTION_PATH, QUESTIONS_PATH } from '../../src/cluster/cluster-paths.js';
import { NotGiven } from '../../src/cluster/copy-giver.js';
import {
  PEER_CONNECTIONS,
  QUESTIONS_TOGETHER,
  REPLY_HEAD_BYTES,
  TOGETHER_QUESTION_BYTES,
} from '../../src/cluster/limits.js';
import { HttpPeerLink } from '../../src/cluster/peer-link.js';
import { answerTogether, writeTogether } from '../../src/cluster/together.js';
import { BodyPool, TakenBuffer } from '../../src/endpoints/body-pool.js';
import { POOLED_BODY_BYTES } from '../../src/endpoints/limits.js';
import { KeyRing } from '../../src/http/auth.js';
import { checkedIdentity } from '../../src/http/server/tls-identity.js';
import { eventually } from '../eventually.js';
import { makeCertificate, textOfFile } from '../http/certificates.js';
import { BACK_ENDS } from '../http/running-server.js';

/** The first byte of what is answered with so many bytes like the second one. */
const LARGE = 2;
const LARGE_BYTES = POOLED_BODY_BYTES;
const ASKING = fileURLToPath(new URL('./asking-process.js', import.meta.url));
/** The first byte of what is not answered. */
const NEVER = 3;
/** The same as LARGE, with so many bytes that several go in one reply. */
const MIDDLE = 4;
const MIDDLE_BYTES = 100_000;

const bugs: unknown[] = [];
/** First bytes of questions, as they came together, in order of requests. */
const asked: number[][] = [];
const ports: Omit<ClusterListenerPorts, 'server'> = {
  keys: new KeyRing([
    { key: 'new-key', projects: null },
    { key: 'old-key', projects: null },
  ]),
  answer: async (question, allocate) => {
    asked.push([question[0]]);
    if (question[0] === NEVER) await new Promise(() => undefined);
    if (question[0] === 0) throw new PartialError('no question');
    if (question[0] === 1) throw new Error('a bug');
    if (question[0] === LARGE) return allocate(LARGE_BYTES).subarray(0, LARGE_BYTES).fill(question[1]);
    if (question[0] === MIDDLE) return allocate(MIDDLE_BYTES).subarray(0, MIDDLE_BYTES).fill(question[1]);
    return Buffer.concat([Buffer.from('answered '), question]);
  },
  answerAll: (questions, allocate) => {
    const together: number[] = [];
    asked.push(together);
    const answer = (question: Uint8Array, out: ByteWriter) => {
      together.push(question[0]);
      if (question[0] === 1) throw new Error('a bug');
      if (question[0] === LARGE) out.bytes(new Uint8Array(LARGE_BYTES).fill(question[1]));
      else if (question[0] === MIDDLE) out.bytes(new Uint8Array(MIDDLE_BYTES).fill(question[1]));
      else if (question[0] > NEVER) out.bytes(Buffer.concat([Buffer.from('answered '), question]));
    };
    return answerTogether(questions, answer, allocate);
  },
  holdings: () => Buffer.from('holdings'),
  names: () => Promise.reject(new PartialError('no request for names')),
  copies: {
    copy: () => Promise.reject(new NotGiven(404, 'nothing is given')),
    piece: (request) => Promise.resolve(request[0] === 0 ? null : request),
    release: () => Promise.resolve(Buffer.from('')),
  },
};
/** For a reply that is looked at until the end of a test. */
const room = () => new TakenBuffer(new BodyPool());
const server = { bugs: { report: (error: unknown) => bugs.push(error) } };

describe.each(BACK_ENDS)('%s', (forced) => {
  const listener = new ClusterListener({ ...ports, server: { ...server, forced } });
  let port = 0;
  let url = '';
  beforeAll(async () => {
    bugs.length = 0;
    port = await listener.server.listen('127.0.0.1', 0);
    url = `http://127.0.0.1:${port}`;
  });
  afterAll(() => listener.server.close(0));

  const post = (path: string, body: Uint8Array, key = 'new-key', method = 'POST') =>
    fetch(`${url}${path}`, {
      method,
      headers: key === '' ? {} : { 'X-Logring-Cluster-Key': key },
      ...(method === 'POST' ? { body } : {}),
    });

  test('each of the keys is taken, no other', async () => {
    for (const key of ['new-key', 'old-key'])
      expect((await post(QUESTION_PATH, Buffer.from('what'), key)).status).toBe(200);
    for (const key of ['', 'new-ke', 'new-key2', 'other'])
      for (const path of [QUESTION_PATH, HOLDINGS_PATH, '/'])
        expect((await post(path, Buffer.from('what'), key)).status).toBe(401);
  });

  test('what is no question is refused, a bug is reported, and the listener goes on', async () => {
    expect((await post(QUESTION_PATH, Uint8Array.of(0))).status).toBe(400);
    expect(bugs).toHaveLength(0);
    expect((await post(QUESTION_PATH, Uint8Array.of(1))).status).toBe(500);
    expect(bugs).toHaveLength(1);
    expect((await post('/cluster/2/question', Uint8Array.of(9))).status).toBe(404);
    expect((await post(QUESTION_PATH, Uint8Array.of(9), 'new-key', 'GET')).status).toBe(405);
    expect((await post(QUESTION_PATH, new Uint8Array(100_000))).status).toBe(413);
    const chunked = `POST ${QUESTION_PATH} HTTP/1.1\r\nHost: here\r\nX-Logring-Cluster-Key: new-key\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n`;
    expect(await sent(port, chunked)).toContain('HTTP/1.1 400');
    await sent(port, '\x00\xff GET / HTTP/9\r\n\r\n', true);
    const holdings = await (await post(HOLDINGS_PATH, new Uint8Array(0))).arrayBuffer();
    expect(Buffer.from(holdings).toString()).toBe('holdings');
  });

  test('a link asks, gives up in time, and says why', async () => {
    const link = new HttpPeerLink(url, 'new-key');
    expect(Buffer.from(await link.ask(Buffer.from('x'), 5_000, false, room())).toString()).toBe('answered x');
    expect(Buffer.from(await link.holdings(new Uint8Array(0), 5_000)).toString()).toBe('holdings');
    expect(await link.piece(Uint8Array.of(0), Buffer.alloc)).toBe(null);
    await expect(link.ask(Uint8Array.of(0), 5_000, false, room())).rejects.toThrow(
      'answered 400: no question',
    );
    await expect(link.ask(Uint8Array.of(NEVER), 20, false, room())).rejects.toThrow(
      'did not answer within 20 ms',
    );
    const asked = link.ask(Uint8Array.of(NEVER), 5_000, false, room());
    link.close();
    await expect(asked).rejects.toThrow('the link to it was closed');
    await expect(link.ask(Buffer.from('x'), 5_000, false, room())).rejects.toThrow(
      'the link to it was closed',
    );
    const wrongKey = new HttpPeerLink(url, 'wrong');
    await expect(wrongKey.holdings(new Uint8Array(0), 5_000)).rejects.toThrow('answered 401');
    wrongKey.close();
  });

  test('questions that are asked while another is under way go in one request; what can not be answered there, alone', async () => {
    const link = new HttpPeerLink(url, 'new-key');
    const ask = async (...bytes: number[]) =>
      Buffer.from(await link.ask(Buffer.from(bytes), 5_000, false, room()));
    asked.length = 0;
    const replies = [ask(65), ask(66), ask(1), ask(67), ask(LARGE, 9), ask(LARGE, 8), ask(100)];
    const never = link.ask(Uint8Array.of(NEVER), 30_000, false, room());
    await expect(replies[2]).rejects.toThrow('answered 500');
    for (const [i, letter] of [65, 66, null, 67, null, null, 100].entries())
      if (letter !== null)
        expect((await replies[i]).toString()).toBe(`answered ${String.fromCharCode(letter)}`);
    expect((await replies[4]).equals(Buffer.alloc(LARGE_BYTES, 9))).toBe(true);
    expect((await replies[5]).equals(Buffer.alloc(LARGE_BYTES, 8))).toBe(true);
    expect(asked.slice(0, 2)).toEqual([[65], [66, 1, 67, LARGE]]);
    expect(asked.flat().filter((first) => first === 66 || first === 67)).toEqual([66, 67]);
    expect(asked).toContainEqual([1]);
    await eventually(() => asked.some(([first, ...others]) => first === NEVER && others.length === 0));
    const many = Array.from({ length: 3 * QUESTIONS_TOGETHER }, (_, i) => ask(100, i));
    for (const [i, reply] of (await Promise.all(many)).entries()) expect(reply.at(-1)).toBe(i);
    expect(Math.max(...asked.map(({ length }) => length))).toBe(QUESTIONS_TOGETHER);
    link.close();
    await expect(never).rejects.toThrow('the link to it was closed');
  });

  test('replies that came together are in one buffer, which is used again when nobody looks at any of them', async () => {
    const link = new HttpPeerLink(url, 'new-key');
    const pool = new BodyPool();
    const rooms = Array.from({ length: 4 }, () => new TakenBuffer(pool));
    const [, ...together] = await Promise.all(
      rooms.map((one, i) => link.ask(Uint8Array.of(MIDDLE, i), 5_000, false, one)),
    );
    for (const [i, bytes] of together.entries()) {
      expect(Buffer.compare(bytes, Buffer.alloc(MIDDLE_BYTES, i + 1))).toBe(0);
      expect(bytes.buffer === together[0].buffer).toBe(true);
    }
    const isFree = () => pool.take(POOLED_BODY_BYTES).buffer === together[0].buffer;
    for (const one of rooms.slice(1)) {
      expect(isFree()).toBe(false);
      one.giveBack();
      // Once more is not for another.
      one.giveBack();
    }
    expect(isFree()).toBe(true);
    link.close();
  });

  test('what says that it is several questions is refused where it is not', async () => {
    const whole = writeTogether([Uint8Array.of(65), Uint8Array.of(66)]);
    expect((await post(QUESTIONS_PATH, whole)).status).toBe(200);
    const tooMany = writeTogether(Array.from({ length: QUESTIONS_TOGETHER + 1 }, () => Uint8Array.of(65)));
    for (const bytes of [Uint8Array.of(9), whole.subarray(0, -1), Buffer.concat([whole, whole]), tooMany])
      expect((await post(QUESTIONS_PATH, bytes)).status).toBe(400);
  });

  test('more questions than connections wait for one, and those that are given up free it', async () => {
    const link = new HttpPeerLink(url, 'new-key');
    // Too long to go with others.
    const long = (first: number) => Buffer.alloc(TOGETHER_QUESTION_BYTES + 1, first);
    const never = Array.from({ length: PEER_CONNECTIONS }, () => link.ask(long(NEVER), 300, false, room()));
    const all = Promise.allSettled(never);
    await expect(link.ask(long(65), 20, false, room())).rejects.toThrow('did not answer within 20 ms');
    const waiting = link.ask(long(66), 30_000, false, room());
    for (const { status } of await all) expect(status).toBe('rejected');
    expect(Buffer.from(await waiting).toString()).toBe(`answered ${long(66)}`);
    link.close();
  });

  test('a reply is what it was, though its reader takes its time and others are answered meanwhile', async () => {
    const readers = Array.from({ length: 20 }, (_, i) => {
      const socket = connect(port, '127.0.0.1');
      socket.pause();
      const head = `POST ${QUESTION_PATH} HTTP/1.1\r\nHost: here\r\nX-Logring-Cluster-Key: new-key\r\nContent-Length: 2\r\n\r\n`;
      socket.write(Buffer.concat([Buffer.from(head), Uint8Array.of(LARGE, i)]));
      return socket;
    });
    const link = new HttpPeerLink(url, 'new-key');
    const others = await Promise.all(
      Array.from({ length: 40 }, () => link.ask(Uint8Array.of(LARGE, 200), 30_000, false, room())),
    );
    for (const bytes of others) expect(Buffer.compare(bytes, Buffer.alloc(LARGE_BYTES, 200))).toBe(0);
    link.close();
    for (const [i, socket] of readers.entries()) {
      const body = await bodyOf(socket, LARGE_BYTES);
      expect(body.equals(Buffer.alloc(LARGE_BYTES, i))).toBe(true);
      socket.destroy();
    }
  });

  test('new connections get the certificate that took the place of the first', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'logring-cluster-tls-'));
    const [one, two] = ['one', 'two'].map((name) => {
      const { certificate, key } = makeCertificate(directory, name);
      return checkedIdentity(textOfFile(certificate), textOfFile(key), { certificate, key });
    });
    const secured = new ClusterListener({ ...ports, server: { ...server, forced, identity: one } });
    const securedPort = await secured.server.listen('127.0.0.1', 0);
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
    secured.server.renewIdentity(two);
    expect(await shown()).toBe('two');
    // Nobody whom this process trusts has signed it.
    const link = new HttpPeerLink(`https://127.0.0.1:${securedPort}`, 'new-key');
    await expect(link.holdings(new Uint8Array(0), 5_000)).rejects.toThrow(/self.signed/);
    link.close();
    await secured.server.close(0);
    rmSync(directory, { recursive: true });
  });

  test('over TLS a link reads what it reads without', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'logring-cluster-tls-'));
    const { certificate, key } = makeCertificate(directory, 'trusted');
    const identity = checkedIdentity(textOfFile(certificate), textOfFile(key), { certificate, key });
    const secured = new ClusterListener({ ...ports, server: { ...server, forced, identity } });
    const securedUrl = `https://127.0.0.1:${await secured.server.listen('127.0.0.1', 0)}`;
    // Only what it is told at its start does a process trust more.
    const asking = spawn(process.execPath, [ASKING, securedUrl, String(LARGE), '5'], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: certificate },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let said = '';
    for await (const piece of asking.stdout) said += piece;
    const whole = { byteCount: LARGE_BYTES, isSame: true };
    expect(JSON.parse(said)).toEqual({ large: new Array(5).fill(whole), small: 'answered x' });
    await secured.server.close(0);
    rmSync(directory, { recursive: true });
  });
});

test('a link that reaches nobody says so', async () => {
  const refused = new HttpPeerLink('http://127.0.0.1:1', 'new-key');
  await expect(refused.ask(Buffer.from('x'), 5_000, false, room())).rejects.toThrow(/ECONNREFUSED/);
  refused.close();
});

test('replies in pieces of any size are put together, and what is no reply ends the request and its connection', async () => {
  let replies: readonly string[] = [];
  const sockets: Socket[] = [];
  const peer = createServer((socket) => {
    sockets.push(socket);
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    socket.on('data', async () => {
      for (const piece of replies) {
        socket.write(piece);
        await new Promise(setImmediate);
      }
    });
  });
  const port = await new Promise<number>((resolve) => {
    peer.listen(0, '127.0.0.1', () => resolve((peer.address() as AddressInfo).port));
  });
  const link = new HttpPeerLink(`http://127.0.0.1:${port}`, 'key');
  const ask = async (...pieces: string[]): Promise<string> => {
    replies = pieces;
    return Buffer.from(await link.ask(Buffer.from('x'), 5_000, false, room())).toString();
  };
  const reply = 'HTTP/1.1 200 OK\r\nX: y\r\ncontent-length: 10\r\n\r\n0123456789';
  for (let cut = 1; cut < reply.length; cut++)
    expect(await ask(reply.slice(0, cut), reply.slice(cut))).toBe('0123456789');
  expect(await ask(...reply)).toBe('0123456789');
  expect(await ask('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')).toBe('');
  expect(sockets).toHaveLength(1);
  for (const [wrong, problem] of [
    ['HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nfour', 'sent more than a reply has'],
    ['HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n', 'sent more than a reply has'],
    ['HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n', 'sent no reply'],
    ['HTTP/1.1 200 OK\r\n\r\n', 'sent no reply'],
    ['HTTP/2 200\r\nContent-Length: 1\r\n\r\nx', 'sent no reply'],
    ['x'.repeat(REPLY_HEAD_BYTES), 'sent no reply'],
  ] as const)
    await expect(ask(wrong)).rejects.toThrow(problem);
  // One that says that it is the last of its connection, and one that comes unasked.
  const count = sockets.length;
  await ask('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx');
  await ask(reply);
  sockets.at(-1)!.write(reply);
  await new Promise((resolve) => sockets.at(-1)!.once('close', resolve));
  await ask(reply);
  expect(sockets).toHaveLength(count + 3);
  link.close();
  await new Promise((resolve) => peer.close(resolve));
});

test('a request that crosses the end of a connection that was used before is sent again, on a new one, any other not', async () => {
  const reply = 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n';
  /** Of each connection, what comes of its requests in turn; nothing: it is closed. */
  const plans: string[][] = [];
  let opened = 0;
  const peer = createServer((socket) => {
    const plan = plans.shift() ?? [];
    opened++;
    socket.on('error', () => undefined);
    socket.on('data', () => {
      const next = plan.shift();
      if (next === undefined) socket.destroy();
      else socket.write(next, () => next.endsWith('…') && socket.destroy());
    });
  });
  const port = await new Promise<number>((resolve) => {
    peer.listen(0, '127.0.0.1', () => resolve((peer.address() as AddressInfo).port));
  });
  const link = new HttpPeerLink(`http://127.0.0.1:${port}`, 'key');
  const ask = async () => Buffer.from(await link.ask(Buffer.from('x'), 5_000, false, room())).toString();

  plans.push([`${reply}a`], [`${reply}b`, 'HTTP/1.1 200…']);
  expect(await ask()).toBe('a');
  expect([await ask(), opened]).toEqual(['b', 2]);
  // Something had come of it.
  await expect(ask()).rejects.toThrow('closed the connection');
  expect(opened).toBe(2);
  // A new connection that is closed is no accident.
  await expect(ask()).rejects.toThrow('closed the connection');
  expect(opened).toBe(3);
  // Nor is the second one in a row.
  plans.push([`${reply}c`]);
  expect(await ask()).toBe('c');
  await expect(ask()).rejects.toThrow('closed the connection');
  expect(opened).toBe(5);
  link.close();
  await new Promise((resolve) => peer.close(resolve));
});

/** All that comes back until the other side closes. */
function sent(port: number, text: string, isEnd = false): Promise<string> {
  return new Promise((resolve) => {
    let received = '';
    const socket = connect(port, '127.0.0.1', () => {
      const bytes = Buffer.from(text, 'latin1');
      isEnd ? socket.end(bytes) : socket.write(bytes);
    });
    socket.setEncoding('latin1').on('data', (piece) => {
      received += piece;
    });
    socket.on('error', () => undefined);
    socket.once('close', () => resolve(received));
  });
}

/** Of the one reply that comes. */
function bodyOf(socket: Socket, byteCount: number): Promise<Buffer> {
  return new Promise((resolve) => {
    let received = Buffer.alloc(0);
    socket.on('data', (piece) => {
      received = Buffer.concat([received, piece]);
      const start = received.indexOf('\r\n\r\n') + 4;
      if (start >= 4 && received.length === start + byteCount) resolve(received.subarray(start));
    });
    socket.resume();
  });
}
