/** A link to another member: what comes of its requests, whatever the other side does. */

import { type AddressInfo, createServer, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { CODES, FrameReader } from '../../src/cluster/frames.js';
import { TcpPeerLink } from '../../src/cluster/peer-link.js';
import { ask, framed, room } from './framed-asks.js';

test('a link that reaches nobody says so', async () => {
  const refused = new TcpPeerLink('http://127.0.0.1:1', 'new-key');
  await expect(ask(refused, 65)).rejects.toThrow(/ECONNREFUSED/);
  refused.close();
});

/** A member of which each connection does what a plan says with the requests that come, in their order. */
async function plannedPeer(plan: (socket: Socket, number: number, connection: number, turn: number) => void) {
  let opened = 0;
  const peer = createServer((socket) => {
    const connection = ++opened;
    let turn = 0;
    socket.setNoDelay(true);
    socket.on('error', () => undefined);
    const reader = new FrameReader({
      begin: () => Buffer.allocUnsafe,
      end: ({ number, code }) => {
        if (code !== CODES.key) plan(socket, number, connection, ++turn);
      },
    });
    socket.on('data', (piece) => reader.take(piece));
  });
  await new Promise<void>((resolve) => peer.listen(0, '127.0.0.1', resolve));
  const link = new TcpPeerLink(`http://127.0.0.1:${(peer.address() as AddressInfo).port}`, 'key');
  const close = async () => {
    link.close();
    await new Promise((resolve) => peer.close(resolve));
  };
  return { link, close, opened: () => opened };
}

test('replies in pieces of any size are put together, and what is no reply ends the request and its connection', async () => {
  let pieces: (number: number) => readonly Uint8Array[] = () => [];
  const { link, close, opened } = await plannedPeer(async (socket, number) => {
    for (const piece of pieces(number)) {
      socket.write(piece);
      await new Promise(setImmediate);
    }
  });
  const body = Buffer.from('0123456789');
  const reply = (number: number) => framed(200, number, body);
  for (let cut = 1; cut < reply(1).length; cut++) {
    pieces = (number) => [reply(number).subarray(0, cut), reply(number).subarray(cut)];
    expect(await ask(link, 65)).toBe('0123456789');
  }
  pieces = (number) => [...reply(number)].map((byte) => Uint8Array.of(byte));
  expect(await ask(link, 65)).toBe('0123456789');
  // One that nobody asked for, or asks for no more, is passed over.
  pieces = (number) => [Buffer.concat([reply(number + 1), reply(number), framed(200, number + 2, body)])];
  expect(await ask(link, 65)).toBe('0123456789');
  pieces = (number) => [framed(200, number, Buffer.alloc(0))];
  expect(await ask(link, 65)).toBe('');
  expect(opened()).toBe(1);
  pieces = () => [Buffer.from('HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx')];
  await expect(ask(link, 65)).rejects.toThrow('sent no reply');
  await close();
});

test('a request that crosses the end of a connection that was used before is sent again, once, any other not', async () => {
  /** By connection and request: a reply, the half of one, nothing for now, or the end. */
  const plans = [['a'], ['b', 'half'], [], ['c', 'nothing'], ['nothing', 'answers the second']];
  const { link, close, opened } = await plannedPeer((socket, number, connection, turn) => {
    const planned = plans[connection - 1]?.[turn - 1];
    if (planned === undefined) socket.destroy();
    else if (planned === 'half')
      socket.write(framed(200, number, Buffer.alloc(100)).subarray(0, 50), () => socket.end());
    else if (planned === 'answers the second') socket.end(framed(200, number, Buffer.from(planned)));
    else if (planned !== 'nothing') socket.write(framed(200, number, Buffer.from(planned)));
  });
  expect(await ask(link, 65)).toBe('a');
  expect([await ask(link, 65), opened()]).toEqual(['b', 2]);
  // Something had come of it.
  await expect(ask(link, 65)).rejects.toThrow('closed the connection');
  expect(opened()).toBe(2);
  // A new connection that is closed is no accident.
  await expect(ask(link, 65)).rejects.toThrow('closed the connection');
  expect(opened()).toBe(3);
  // Of the two that are sent again one is answered, and then the connection ends, which was used by then.
  expect(await ask(link, 65)).toBe('c');
  const outcomes = await Promise.allSettled([ask(link, 65), ask(link, 66)]);
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'fulfilled']);
  expect(opened()).toBe(5);
  await close();
});

test('what is asked after a reply that did not come in time goes over a new connection; what is under way goes on', async () => {
  let answer = () => undefined as unknown;
  const { link, close, opened } = await plannedPeer((socket, number, connection, turn) => {
    const reply = () => socket.write(framed(200, number, Buffer.from(`${connection} ${turn}`)));
    if (connection === 1 && turn === 3) answer = reply;
    else if (connection > 1 || turn === 1) reply();
  });
  expect(await ask(link, 65)).toBe('1 1');
  const late = link.ask(Uint8Array.of(65), 20, false, room());
  const beside = ask(link, 66);
  await expect(late).rejects.toThrow('did not answer within 20 ms');
  expect(await ask(link, 67)).toBe('2 1');
  answer();
  expect([await beside, await ask(link, 68), opened()]).toEqual(['1 3', '2 2', 2]);
  await close();
});
