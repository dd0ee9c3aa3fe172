/**
 * Clients of node:http that go away where it says nothing of it: what waits behind another request of theirs is let go
 * of, and a handshake that is under way keeps no stop waiting.
 */

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { AnswersInFlight } from '../../src/http/server/answers-in-flight.js';
import { NodeServer } from '../../src/http/server/node-server.js';
import type { HttpAnswer, HttpHandler } from '../../src/http/server/server.js';
import { checkedIdentity } from '../../src/http/server/tls-identity.js';
import { eventually } from '../eventually.js';
import { makeCertificate, textOfFile } from './certificates.js';
import { RunningServer } from './running-server.js';
import { BugLog } from './service.js';

const directory = mkdtempSync(join(tmpdir(), 'logring-gone-'));
afterAll(() => rmSync(directory, { recursive: true }));

const ANSWER: HttpAnswer = { status: 200, headers: [], body: 'x', close: false };
const HOUR_MS = 3_600_000;

test('an answer and a body behind a request that is not answered yet are let go of', async () => {
  const bugs = new BugLog();
  const counts = { released: 0, begun: 0, aborted: 0, late: 0 };
  let answerSlow: (answer: HttpAnswer) => void = () => undefined;
  const handler: HttpHandler = {
    open: ({ path }) => {
      if (path === '/slow')
        return new Promise((resolve) => {
          answerSlow = resolve;
        });
      if (path === '/quick') return { ...ANSWER, release: () => counts.released++ };
      counts.begun++;
      return { push: () => true, end: () => ANSWER, abort: () => counts.aborted++ };
    },
  };
  const server = await RunningServer.start('node:http', handler, bugs);
  const client = server.connect();
  const request = (line: string) => `${line} HTTP/1.1\r\nHost: test\r\n`;
  client.send(
    `${request('GET /slow')}\r\n${request('GET /quick')}\r\n${request('POST /body')}Content-Length: 9\r\n\r\n[`,
  );
  await eventually(() => counts.begun === 1);
  expect(counts).toMatchObject({ released: 0, aborted: 0 });
  client.socket.resetAndDestroy();
  await eventually(() => counts.released + counts.aborted === 2);
  // What comes too late is let go of at once.
  answerSlow({ ...ANSWER, release: () => counts.late++ });
  await eventually(() => counts.late === 1);
  expect([counts, bugs.bugs]).toEqual([{ released: 1, begun: 1, aborted: 1, late: 1 }, []]);
  await server.server.close(0);
});

test('a stop does not wait for a TLS handshake', async () => {
  const files = makeCertificate(directory, 'one');
  const bugs = new BugLog();
  const server = await RunningServer.of(
    new NodeServer(
      { open: () => ANSWER },
      {
        bugs,
        inFlight: new AnswersInFlight(1),
        identity: checkedIdentity(textOfFile(files.certificate), textOfFile(files.key), files),
        addressSettings: '',
      },
      { keepAliveMs: HOUR_MS, headMs: HOUR_MS, bodyIdleMs: HOUR_MS, requestMs: HOUR_MS, lookMs: HOUR_MS },
    ),
  );
  const client = server.connect();
  await new Promise((resolve) => client.socket.once('connect', resolve));
  // The server has it before it takes the next one.
  await server.exchange('no handshake');
  await server.server.close(0);
  await client.closed;
  expect(bugs.bugs).toEqual([]);
});
