/** How long either server keeps connections on which nothing more comes. */

import { describe, expect, test } from 'vitest';
import { KEEP_ALIVE_MS } from '../../src/http/limits.js';
import { AnswersInFlight } from '../../src/http/server/answers-in-flight.js';
import { containedHandler } from '../../src/http/server/contained-handler.js';
import { type ConnectionTimes, NodeServer } from '../../src/http/server/node-server.js';
import { BACK_ENDS, RunningServer } from './running-server.js';
import { INGEST_KEY, TestService } from './service.js';

const SHORT: ConnectionTimes = { keepAliveMs: 20, headMs: 20, bodyIdleMs: 20, requestMs: 10_000, lookMs: 10 };
/** A busy machine needs more than 20 ms for the head itself. */
const UNHURRIED: ConnectionTimes = { ...SHORT, headMs: 1000 };
const POST_HEAD = `POST /api/logs?source_name=edge HTTP/1.1\r\nHost: test\r\nX-API-KEY: ${INGEST_KEY}\r\n`;

/** The times of uWebSockets.js can't be set; all connections wait at once. */
describe.each(BACK_ENDS)('%s', (backEnd) => {
  test('closes what is silent, before a head, within one, within a body and after an answer', async () => {
    const service = new TestService();
    const server =
      backEnd === 'node:http'
        ? await RunningServer.of(shortLived(service, UNHURRIED))
        : await RunningServer.start(backEnd, service.api, service.bugs);
    const silent = [
      '',
      'GET /livez HTT',
      `${POST_HEAD}Content-Length: 5\r\n\r\n[`,
      'GET /livez HTTP/1.1\r\nHost: t\r\n\r\n',
    ];
    const connections = silent.map((text) => {
      const connection = server.connect();
      if (text !== '') connection.send(text);
      return connection;
    });
    await Promise.all(connections.map(({ closed }) => closed));
    expect(connections.map(({ received }) => received.slice(0, 12))[3]).toBe('HTTP/1.1 200');
    expect(service.ingest.bodies).toEqual([]);
    await server.server.close(0);
  });
});

test.each(BACK_ENDS)(
  '%s says for how long a connection is kept, well before it closes it: a client that uses it again then gets no answer',
  async (backEnd) => {
    const service = new TestService();
    const server = await RunningServer.start(backEnd, service.api, service.bugs);
    for (const path of ['/livez', '/nothing']) {
      const { headers } = await fetch(`${server.url}${path}`);
      const [, seconds] = /^timeout=(\d+)$/.exec(headers.get('keep-alive') ?? '') ?? [];
      // uWebSockets.js counts in steps of four seconds.
      expect(Number(seconds) * 1000).toBeLessThan(KEEP_ALIVE_MS - 4000);
    }
    await server.server.close(0);
  },
);

test('node:http lets an answer that takes its time be waited for', async () => {
  const service = new TestService();
  let answer: () => void = () => undefined;
  service.ingest.gate = new Promise((resolve) => {
    answer = resolve;
  });
  const server = await RunningServer.of(shortLived(service, UNHURRIED));
  const waiting = server.connect();
  waiting.send(`${POST_HEAD}Content-Length: 2\r\n\r\n[]`);
  // Many times as long as a silent body is kept.
  await server.connect().closed;
  answer();
  expect(await waiting.receivedUntil('"rejected":[]}')).toContain('HTTP/1.1 200');
  await server.server.close(0);
});

function shortLived(service: TestService, times = SHORT): NodeServer {
  const inFlight = new AnswersInFlight(1);
  return new NodeServer(
    containedHandler(service.api, service.bugs),
    { bugs: service.bugs, inFlight, identity: null, addressSettings: '' },
    times,
  );
}
