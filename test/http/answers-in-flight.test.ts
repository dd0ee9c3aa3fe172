/**
 * Clients that don't read, over both servers: what their answers hold is bounded, others are answered, and
 * they are cut off.
 */

import { gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { LogsReading } from '../../engine/rows/logs-reading.js';
import { collectLogs, type LogsParameters, mergeLogs } from '../../engine/rows/partial.js';
import { RowsView } from '../../engine/rows/rows-view.js';
import { LOGS_STEP_BYTES } from '../../src/endpoints/limits.js';
import { ANSWER_LEAST_BYTES, ANSWER_WINDOW_US } from '../../src/http/limits.js';
import { AnswersInFlight, type Sending } from '../../src/http/server/answers-in-flight.js';
import type { HttpAnswer } from '../../src/http/server/server.js';
import type { Uws, UwsApp, UwsRequest, UwsResponse } from '../../src/http/server/uws-binary.js';
import { UwsServer } from '../../src/http/server/uws-server.js';
import { eventually } from '../eventually.js';
import { SegmentTable } from '../segment-table.js';
import { BACK_ENDS, type RawConnection, RunningServer } from './running-server.js';
import { BugLog, bytesOf, headerOf, KEY, NOW_US, type TestQueries, TestService } from './service.js';

const MEBIBYTE = 1024 * 1024;
const ROW_BYTES = 200 * 1024;
const ROW_COUNT = 100;
/** A block that is not full yet has some room to spare. */
const LARGEST_ANSWER_BYTES = ROW_COUNT * (ROW_BYTES + 64 * 1024);
const LIMIT_BYTES = 3 * LARGEST_ANSWER_BYTES;
const LARGE = 'project=large&project_tier=PRO';
const SMALL = 'project=small&project_tier=PRO';
const PATH = '/api/endpoints/query/logs.all';

const running: RunningServer[] = [];
const connections: RawConnection[] = [];
afterEach(async () => {
  for (const { socket } of connections.splice(0)) socket.destroy();
  await Promise.all(running.splice(0).map(({ server }) => server.close(0)));
});

/** Rows of two projects in the engine's own view; notes what each turn reads. */
class LargeRows implements TestQueries {
  readonly view = new RowsView(new SegmentTable());
  mostHeldBytes = 0;
  readonly readBytes: number[] = [];
  readonly turns: number[] = [];
  heldBytes: () => number = () => 0;
  beforeTurn: (turn: number) => void = () => undefined;
  #turn = 0;

  constructor() {
    for (let i = 0; i < ROW_COUNT; i++) {
      this.add('large', i, ROW_BYTES - i);
      this.add('small', i, 100);
    }
  }

  add(project: string, index: number, byteCount: number): void {
    const text = `{"id":"${project}-${index}","timestamp":${NOW_US - index},"event_message":null,"metadata":"`;
    const row = Buffer.alloc(byteCount, String.fromCharCode(97 + (index % 26)));
    row.write(text);
    row.write('"}', row.length - 2);
    const timestampUs = NOW_US - index;
    this.view.apply({
      timestampUs,
      project,
      tierClass: '90d',
      idHash: 0,
      row,
      url: null,
      areas: 0,
      outcome: 0,
    });
  }

  logs(parameters: LogsParameters, nowUs: number, byteLimit: number, reading: LogsReading | null) {
    if (reading !== null) this.beforeTurn(this.turns.length);
    const before = reading?.heldBytes ?? 0;
    const merged = mergeLogs([collectLogs(this.view, parameters, nowUs, reading)], byteLimit);
    if (reading !== null) {
      this.readBytes.push(reading.heldBytes - before);
      this.turns.push(this.#turn);
      setImmediate(() => this.#turn++);
    }
    this.mostHeldBytes = Math.max(this.mostHeldBytes, this.heldBytes());
    return merged === null ? null : merged.rows;
  }

  async checkExpression(): Promise<void> {}

  invocationStats() {
    return [];
  }

  apiCounts() {
    return [];
  }

  expected(parameters: Partial<LogsParameters>): string {
    const whole = { project: 'large', retentionUs: 7 * 86_400_000_000, startUs: null, endUs: null };
    const { rows } = mergeLogs([collectLogs(this.view, { ...whole, ...parameters }, NOW_US)]);
    return `{"result":[${rows.map((row) => Buffer.from(row).toString()).join(',')}]}`;
  }
}

function largeService(answerBytes = LIMIT_BYTES) {
  const queries = new LargeRows();
  const service = new TestService({ queries, answerBytes });
  queries.heldBytes = () => service.inFlight.heldBytes;
  return { service, queries, inFlight: service.inFlight };
}

async function start(backEnd: (typeof BACK_ENDS)[number], service: TestService, inFlight: AnswersInFlight) {
  const server = await RunningServer.start(backEnd, service.api, service.bugs, undefined, inFlight);
  running.push(server);
  return server;
}

/** A client that reads no more than the head of what it gets. */
function idleClient(server: RunningServer, request: string): RawConnection {
  const connection = server.connect();
  connections.push(connection);
  connection.socket.once('data', () => connection.socket.pause());
  connection.send(request);
  return connection;
}

/**
 * Reads `byteCount` bytes of those that are left, and on until the server has seen a quarter of that leave: what
 * is read first may have waited in the system's buffers, which hold tens of megabytes on some machines.
 */
async function readSome(
  client: RawConnection,
  wholeLength: number,
  byteCount: number,
  takenBytes: () => number,
): Promise<void> {
  const wanted = client.received.length + byteCount;
  const seen = takenBytes() + byteCount / 4;
  client.socket.resume();
  await eventually(
    () => client.received.length >= wholeLength || (client.received.length >= wanted && takenBytes() >= seen),
    () => [client.received.length, wholeLength, takenBytes(), seen],
  );
  client.socket.pause();
}

const get = (target: string, headers = '') =>
  `GET ${target} HTTP/1.1\r\nHost: test\r\nX-API-KEY: ${KEY}\r\n${headers}\r\n`;

describe.each(BACK_ENDS)('%s', (backEnd) => {
  test('large answers to clients that do not read stay within their bound; others are answered, and they are cut off in time', async () => {
    const { service, queries, inFlight } = largeService();
    const server = await start(backEnd, service, inFlight);
    const clients = Array.from({ length: 12 }, () => idleClient(server, get(`${PATH}?${LARGE}`)));
    await eventually(() => clients.every(({ received }) => received.includes('\r\n\r\n')));

    const refused = clients.filter(({ received }) => received.startsWith('HTTP/1.1 503 '));
    const served = clients.filter(({ received }) => received.startsWith('HTTP/1.1 200 '));
    expect([served.length > 0, refused.length + served.length]).toEqual([true, clients.length]);
    for (const { received } of refused) expect(received).toContain('\r\nRetry-After: ');
    expect(Math.max(queries.mostHeldBytes, inFlight.heldBytes)).toBeLessThanOrEqual(LIMIT_BYTES);
    expect(inFlight.heldBytes).toBeGreaterThanOrEqual(served.length * ROW_COUNT * (ROW_BYTES - ROW_COUNT));

    const other = await fetch(`${server.url}${PATH}?${SMALL}`, { headers: { 'X-API-KEY': KEY } });
    expect([other.status, await other.text()]).toEqual([200, queries.expected({ project: 'small' })]);

    inFlight.cutOffSlow(0);
    inFlight.cutOffSlow(ANSWER_WINDOW_US - 1);
    expect(inFlight.cutOffCount).toBe(0);
    inFlight.cutOffSlow(ANSWER_WINDOW_US);
    await eventually(() => inFlight.heldBytes === 0);
    expect(inFlight.cutOffCount).toBe(served.length);
    for (const { socket } of served) socket.resume();
    await Promise.all(served.map(({ closed }) => closed));
    for (const { received } of served) expect(received.length).toBeLessThan(ROW_COUNT * ROW_BYTES);
    expect(service.bugs.bugs).toEqual([]);
  });

  test('a client that goes on reading is not cut off, and gets every byte; plain, gzip and HEAD', async () => {
    const { service, queries, inFlight } = largeService();
    const server = await start(backEnd, service, inFlight);
    const headers = { 'X-API-KEY': KEY };
    const expected = queries.expected({});
    const plain = await fetch(`${server.url}${PATH}?${LARGE}`, {
      headers: { ...headers, 'Accept-Encoding': 'identity' },
    });
    expect(plain.headers.get('content-length')).toBe(String(expected.length));
    expect((await plain.text()) === expected).toBe(true);
    const packed = await fetch(`${server.url}${PATH}?${LARGE}`, { headers });
    expect(packed.headers.get('content-encoding')).toBe('gzip');
    expect((await packed.text()) === expected).toBe(true);
    const head = await fetch(`${server.url}${PATH}?${LARGE}`, { headers, method: 'HEAD' });
    expect(head.status).toBe(200);

    const sends = vi.spyOn(inFlight, 'sendLarge');
    const client = idleClient(server, get(`${PATH}?${LARGE}`));
    await eventually(() => client.received.includes('\r\n\r\n'));
    const sending = sends.mock.results[0].value as Sending;
    const whole = client.received.indexOf('\r\n\r\n') + 4 + expected.length;
    for (let window = 0; client.received.length < whole; window++) {
      inFlight.cutOffSlow(window * ANSWER_WINDOW_US);
      await readSome(client, whole, expected.length / 4, () => sending.sentBytes);
    }
    expect(client.received.endsWith(expected.slice(-1000))).toBe(true);
    await eventually(() => inFlight.heldBytes === 0);
    expect([inFlight.cutOffCount, service.bugs.bugs]).toEqual([0, []]);
  });

  test('a client that goes on reading a usual answer is not cut off either, nor one whose answer waits behind another', async () => {
    const body = Buffer.alloc(24 * MEBIBYTE, 'x');
    const inFlight = new AnswersInFlight(3 * body.length);
    const answer: HttpAnswer = { status: 200, headers: [], body, close: false };
    const bugs = new BugLog();
    const server = await RunningServer.start(backEnd, { open: () => answer }, bugs, undefined, inFlight);
    running.push(server);
    // uWebSockets.js closes the connection of a request that comes before the last answer has left.
    const count = backEnd === 'node:http' ? 2 : 1;
    const sends = vi.spyOn(inFlight, 'send');
    const client = idleClient(server, get('/').repeat(count));
    await eventually(() => client.received.includes('\r\n\r\n'));
    const [, , , ofConnection] = sends.mock.calls[0];
    const takenBytes = ofConnection ?? (() => (sends.mock.results[0].value as Sending).sentBytes);
    for (let window = 0; client.received.length < count * body.length; window++) {
      inFlight.cutOffSlow(window * ANSWER_WINDOW_US);
      expect(inFlight.cutOffCount).toBe(0);
      await readSome(client, count * body.length, body.length / 3, takenBytes);
    }
    await eventually(() => inFlight.heldBytes === 0);
    expect([inFlight.cutOffCount, bugs.bugs]).toEqual([0, []]);
  });

  test('usual answers that nobody reads stay within their bound: the idlest client gives way', async () => {
    const body = Buffer.alloc(12 * MEBIBYTE, 'x');
    const inFlight = new AnswersInFlight(3 * body.length);
    const answer: HttpAnswer = { status: 200, headers: [], body, close: false };
    const bugs = new BugLog();
    const server = await RunningServer.start(backEnd, { open: () => answer }, bugs, undefined, inFlight);
    running.push(server);
    const clients: RawConnection[] = [];
    for (let i = 0; i < 6; i++) {
      const client = idleClient(server, get('/'));
      clients.push(client);
      await eventually(() => client.received !== '');
      expect(inFlight.heldBytes).toBe(Math.min(i + 1, 3) * body.length);
    }
    expect(inFlight.cutOffCount).toBe(3);
    expect((await fetch(server.url).then((response) => response.arrayBuffer())).byteLength).toBe(body.length);
    inFlight.cutOffSlow(0);
    inFlight.cutOffSlow(ANSWER_WINDOW_US);
    await eventually(() => inFlight.heldBytes === 0);
    expect(bugs.bugs).toEqual([]);
  });
});

test('a large answer is read a step a turn, nothing twice, and answers for its last moment', async () => {
  const { service, queries, inFlight } = largeService();
  queries.beforeTurn = (turn) => {
    if (turn === 4) queries.add('large', -1, ROW_BYTES);
  };
  const answer = await service.ask(`${PATH}?${LARGE}`);
  expect(bytesOf(answer.body).toString() === queries.expected({})).toBe(true);
  expect(new Set(queries.turns).size).toBe(queries.turns.length);
  for (const bytes of queries.readBytes) expect(bytes).toBeLessThanOrEqual(LOGS_STEP_BYTES + 2 * ROW_BYTES);
  const readBytes = queries.readBytes.reduce((sum, bytes) => sum + bytes, 0);
  expect(readBytes).toBeLessThanOrEqual(LARGEST_ANSWER_BYTES + 2 * ROW_BYTES);
  expect(inFlight.heldBytes).toBeGreaterThan(0);
  answer.release?.();
  expect(inFlight.heldBytes).toBe(0);
});

test('a large answer that is alone may be larger than the bound; where there is no room for both forms it is not packed', async () => {
  const { service, queries, inFlight } = largeService(MEBIBYTE);
  const gzip = { 'Accept-Encoding': 'gzip' };
  const alone = await service.ask(`${PATH}?${LARGE}`, gzip);
  expect([alone.status, headerOf(alone, 'Content-Encoding')]).toEqual([200, null]);
  expect((await service.ask(`${PATH}?${LARGE}`)).status).toBe(503);
  alone.release?.();
  expect(inFlight.heldBytes).toBe(0);
  const roomy = largeService();
  const packed = await roomy.service.ask(`${PATH}?${LARGE}`, gzip);
  expect(gunzipSync(bytesOf(packed.body)).toString() === queries.expected({})).toBe(true);
  expect(roomy.inFlight.heldBytes).toBe(bytesOf(packed.body).length);
});

test('a client must take enough of its answer in each window', () => {
  const check = (byteCount: number, takenBytes: number, isCutOff: boolean) => {
    const inFlight = new AnswersInFlight(MEBIBYTE);
    let closed = false;
    const sending = inFlight.send(byteCount, 1000, () => {
      closed = true;
    });
    inFlight.cutOffSlow(5);
    sending.progressed(takenBytes);
    inFlight.cutOffSlow(5 + ANSWER_WINDOW_US);
    expect([closed, inFlight.heldBytes]).toEqual([isCutOff, isCutOff ? 0 : 1000]);
  };
  check(500_000, ANSWER_LEAST_BYTES, false);
  check(500_000, ANSWER_LEAST_BYTES - 1, true);
  // A large one: a fifteenth of it.
  check(150_000_000, 10_000_000, false);
  check(150_000_000, 9_999_999, true);
});

/**
 * Of uWebSockets.js what an answer in pieces needs; its socket takes all, and says at any time that it can
 * take more.
 */
class TakingResponse {
  readonly taken: Uint8Array[] = [];
  #takenBytes = 0;
  #continueAt: (bodyOffset: number) => boolean = () => true;

  get text(): string {
    return Buffer.concat(this.taken).toString();
  }

  canTakeMore(): boolean {
    return this.#continueAt(this.#takenBytes);
  }

  tryEnd(rest: Uint8Array, totalBytes: number): [boolean, boolean] {
    this.taken.push(rest);
    this.#takenBytes += rest.length;
    return [true, this.#takenBytes >= totalBytes];
  }

  onWritable(continueAt: (bodyOffset: number) => boolean): void {
    this.#continueAt = continueAt;
  }

  cork(write: () => void): void {
    write();
  }

  onAborted(): void {}
  writeStatus(): void {}
  writeHeader(): void {}
}

test('no piece is sent twice when the socket can take more before the turn has come that sends the next', async () => {
  let open: (response: UwsResponse, request: UwsRequest) => void = () => undefined;
  const app = {
    any: (_pattern: string, handler: typeof open) => {
      open = handler;
    },
  };
  const uws = { App: () => app as unknown as UwsApp } as unknown as Uws;
  const pieces = ['{"result":[', 'row', ',', 'row', ']}'].map((text) => Buffer.from(text));
  const answer: HttpAnswer = { status: 200, headers: [], body: pieces, close: false };
  const bugs = new BugLog();
  const parts = { bugs, inFlight: new AnswersInFlight(MEBIBYTE), identity: null, addressSettings: '' };
  new UwsServer(uws, { open: () => answer }, parts);
  const response = new TakingResponse();
  const request = {
    getUrl: () => '/',
    getQuery: () => undefined,
    getCaseSensitiveMethod: () => 'GET',
    forEach: () => undefined,
  };
  open(response as unknown as UwsResponse, request);
  // What was only gathered did not leave after all: the socket was full, and no longer is.
  expect(response.canTakeMore()).toBe(true);
  const expected = Buffer.concat(pieces).toString();
  await eventually(() => response.text.length >= expected.length);
  await new Promise((resolve) => setImmediate(resolve));
  expect([response.text, bugs.bugs]).toEqual([expected, []]);
});
