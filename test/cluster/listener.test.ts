/** The cluster port: nothing without the key, and whatever comes in is answered or refused. */

import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PartialError } from '../../engine/partial-format.js';
import { ClusterListener, type ClusterListenerPorts } from '../../src/cluster/cluster-listener.js';
import { HOLDINGS_PATH, QUESTION_PATH } from '../../src/cluster/cluster-paths.js';
import { NotGiven } from '../../src/cluster/copy-giver.js';
import { HttpPeerLink } from '../../src/cluster/peer-link.js';
import { POOLED_BODY_BYTES } from '../../src/endpoints/limits.js';
import { KeyRing } from '../../src/http/auth.js';
import { checkedIdentity } from '../../src/http/server/tls-identity.js';
import { eventually } from '../eventually.js';
import { makeCertificate, textOfFile } from '../http/certificates.js';

/** The first byte of what is answered with so many bytes like the second one. */
const LARGE = 2;
const LARGE_BYTES = POOLED_BODY_BYTES;

const bugs: unknown[] = [];
let isSlow = false;
const ports: ClusterListenerPorts = {
  keys: new KeyRing([
    { key: 'new-key', projects: null },
    { key: 'old-key', projects: null },
  ]),
  answer: async (question, allocate) => {
    if (isSlow) await new Promise(() => undefined);
    if (question[0] === 0) throw new PartialError('no question');
    if (question[0] === 1) throw new Error('a bug');
    if (question[0] === LARGE) return allocate(LARGE_BYTES).subarray(0, LARGE_BYTES).fill(question[1]);
    return Buffer.concat([Buffer.from('answered '), question]);
  },
  holdings: () => Buffer.from('holdings'),
  names: () => Promise.reject(new PartialError('no request for names')),
  copies: {
    copy: () => Promise.reject(new NotGiven(404, 'nothing is given')),
    piece: (request) => Promise.resolve(request[0] === 0 ? null : request),
    release: () => Promise.resolve(Buffer.from('')),
  },
  bugs: { report: (error) => bugs.push(error) },
  tls: null,
};
const listener = new ClusterListener(ports);
let url = '';
beforeAll(async () => {
  url = `http://127.0.0.1:${await listener.listen('127.0.0.1', 0)}`;
});
afterAll(() => listener.close(0));

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
  await new Promise<void>((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () =>
      socket.end('\x00\xff GET / HTTP/9\r\n\r\n'),
    );
    socket.on('error', () => undefined);
    socket.once('close', () => resolve());
    socket.resume();
  });
  expect(Buffer.from(await (await post(HOLDINGS_PATH, new Uint8Array(0))).arrayBuffer()).toString()).toBe(
    'holdings',
  );
});

test('a link asks, gives up in time, and says why', async () => {
  const link = new HttpPeerLink(url, 'new-key');
  expect(Buffer.from(await link.ask(Buffer.from('x'), 5_000, false)).toString()).toBe('answered x');
  expect(Buffer.from(await link.holdings(new Uint8Array(0), 5_000)).toString()).toBe('holdings');
  await expect(link.ask(Uint8Array.of(0), 5_000, false)).rejects.toThrow('answered 400: no question');
  isSlow = true;
  await expect(link.ask(Buffer.from('x'), 20, false)).rejects.toThrow('did not answer within 20 ms');
  isSlow = false;
  link.close();
  const refused = new HttpPeerLink('http://127.0.0.1:1', 'new-key');
  await expect(refused.ask(Buffer.from('x'), 5_000, false)).rejects.toThrow(/ECONNREFUSED/);
  refused.close();
  const wrongKey = new HttpPeerLink(url, 'wrong');
  await expect(wrongKey.holdings(new Uint8Array(0), 5_000)).rejects.toThrow('answered 401');
  wrongKey.close();
});

test('a reply is what it was, though its reader takes its time and others are answered meanwhile', async () => {
  const socket = connect(Number(new URL(url).port), '127.0.0.1');
  socket.pause();
  const count = 60;
  for (let i = 0; i < count; i++)
    socket.write(
      Buffer.concat([
        Buffer.from(
          `POST ${QUESTION_PATH} HTTP/1.1\r\nHost: here\r\nX-Logring-Cluster-Key: new-key\r\nContent-Length: 2\r\n\r\n`,
        ),
        Uint8Array.of(LARGE, i),
      ]),
    );
  const link = new HttpPeerLink(url, 'new-key');
  const others = await Promise.all(
    Array.from({ length: 40 }, () => link.ask(Uint8Array.of(LARGE, 200), 30_000, false)),
  );
  for (const bytes of others) expect(Buffer.compare(bytes, Buffer.alloc(LARGE_BYTES, 200))).toBe(0);
  link.close();
  let received = Buffer.alloc(0);
  const seen: number[] = [];
  socket.on('data', (piece) => {
    received = Buffer.concat([received, piece]);
    for (;;) {
      const start = received.indexOf('\r\n\r\n') + 4;
      if (start < 4 || received.length < start + LARGE_BYTES) return;
      const body = received.subarray(start, start + LARGE_BYTES);
      seen.push(body.equals(Buffer.alloc(LARGE_BYTES, body[0])) ? body[0] : -1);
      received = received.subarray(start + LARGE_BYTES);
    }
  });
  socket.resume();
  await eventually(() => seen.length === count);
  expect(seen).toEqual(Array.from({ length: count }, (_, i) => i));
  socket.destroy();
});

test('new connections get the certificate that took the place of the first', async () => {
  const directory = mkdtempSync(join(tmpdir(), 'logring-cluster-tls-'));
  const [one, two] = ['one', 'two'].map((name) => {
    const { certificate, key } = makeCertificate(directory, name);
    return checkedIdentity(textOfFile(certificate), textOfFile(key), null);
  });
  const secured = new ClusterListener({ ...ports, tls: one });
  const port = await secured.listen('127.0.0.1', 0);
  const shown = () =>
    new Promise<string>((resolve, reject) => {
      const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().subject.CN as string);
        socket.destroy();
      });
      socket.once('error', reject);
    });
  expect(await shown()).toBe('one');
  secured.renewIdentity(two);
  expect(await shown()).toBe('two');
  await secured.close(0);
  rmSync(directory, { recursive: true });
});
