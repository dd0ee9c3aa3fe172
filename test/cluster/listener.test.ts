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
import { KeyRing } from '../../src/http/auth.js';
import { checkedIdentity } from '../../src/http/server/tls-identity.js';
import { makeCertificate, textOfFile } from '../http/certificates.js';

const bugs: unknown[] = [];
let isSlow = false;
const ports: ClusterListenerPorts = {
  keys: new KeyRing([
    { key: 'new-key', projects: null },
    { key: 'old-key', projects: null },
  ]),
  answer: async (question) => {
    if (isSlow) await new Promise(() => undefined);
    if (question[0] === 0) throw new PartialError('no question');
    if (question[0] === 1) throw new Error('a bug');
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
