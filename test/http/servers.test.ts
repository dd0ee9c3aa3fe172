/** The two servers behind one interface: the same behaviour on both, over real connections. */

import { createHash } from 'node:crypto';
import { type IncomingMessage, request } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { createHttpServer } from '../../src/http/server/back-ends.js';
import { meteredHandler } from '../../src/http/server/request-meters.js';
import type {
  BackEndName,
  HttpAnswer,
  HttpHandler,
  HttpRequest,
  Opened,
} from '../../src/http/server/server.js';
import { loadUws } from '../../src/http/server/uws-binary.js';
import { BACK_ENDS, RunningServer, statusesOf } from './running-server.js';
import { BugLog, gate, INGEST_KEY, KEY, TestService } from './service.js';

const HOST = 'Host: test\r\n';
const EDGE = '/api/logs?source_name=edge';
const STATS = '/api/endpoints/query/functions.invocation-stats?project=p&interval=1hr';
const GRACE_MS = 5000;

const running: RunningServer[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ server }) => server.close(0)));
});

async function start(
  backEnd: BackEndName,
  handler: HttpHandler,
  bugs = new BugLog(),
): Promise<RunningServer> {
  const server = await RunningServer.start(backEnd, handler, bugs);
  running.push(server);
  return server;
}

const answer = (body: string | Uint8Array, status = 200): HttpAnswer => ({
  status,
  headers: [['X-Casing-Is-Kept', 'Yes']],
  body,
  close: false,
});

/** A handler from a function. */
const handling = (open: (request: HttpRequest) => Opened): HttpHandler => ({ open });

/** `200 text`, over a connection of its own. */
async function fetched(url: string, init: RequestInit = {}): Promise<string> {
  const response = await fetch(url, init);
  return `${response.status} ${await response.text()}`;
}

/** Sends a body with node's own client and reads the whole answer. */
function sent(
  server: RunningServer,
  headers: Record<string, string>,
  body: Uint8Array,
): Promise<{ message: IncomingMessage; text: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      { port: server.port, path: EDGE, method: 'POST', headers: { 'X-API-KEY': INGEST_KEY, ...headers } },
      (message) => {
        let text = '';
        message.setEncoding('utf8').on('data', (piece: string) => {
          text += piece;
        });
        message.on('end', () => resolve({ message, text }));
      },
    );
    outgoing.on('error', reject);
    outgoing.end(body);
  });
}

test('the server is uWebSockets.js wherever a native build loads, and its name says which runs', () => {
  const handler = handling(() => answer(''));
  const { server, origin, fallbackReason } = createHttpServer({ handler, bugs: new BugLog() });
  const binary = loadUws();
  expect([server.name, origin, fallbackReason]).toEqual(
    typeof binary === 'string' ? ['node:http', null, binary] : ['uWebSockets.js', binary.origin, null],
  );
});

test('both servers give the same answers, header by header', async () => {
  const service = new TestService({ corsOrigins: ['https://a.example'] });
  const transcripts: string[] = [];
  for (const backEnd of BACK_ENDS) {
    const server = await start(backEnd, service.api);
    let transcript = '';
    for (const target of [STATS, '/api/endpoints/query/logs.all', '/nope', '/livez', '/metrics']) {
      for (const method of ['GET', 'HEAD', 'OPTIONS', 'DELETE']) {
        const head = `${method} ${target} HTTP/1.1\r\n${HOST}X-API-KEY: ${KEY}\r\nOrigin: https://a.example\r\n\r\n`;
        transcript += `${await server.exchange(head)}\n\n`;
      }
    }
    // What each server adds on its own, and the order in which it puts Content-Length, may differ.
    const own = /^(Date|Connection|Keep-Alive|uWebSockets): .*\r\n/gm;
    const lengths = /^Content-Length: (\d+)\r\n/gm;
    transcripts.push(
      `${transcript.replace(own, '').replace(lengths, '')} ${[...transcript.matchAll(lengths)].join()}`,
    );
  }
  for (const transcript of transcripts) expect(transcript).toBe(transcripts[0]);
  expect(transcripts[0]).toContain('Access-Control-Allow-Origin: https://a.example\r\n');
});

describe.each(BACK_ENDS)('%s', (backEnd) => {
  test('a target without ? has the empty query (getQuery() is undefined without one)', async () => {
    const server = await start(
      backEnd,
      handling(({ method, path, rawQuery }) => answer(JSON.stringify([method, path, rawQuery]))),
    );
    const check = async (target: string, expected: string[]) =>
      expect(await fetched(server.url + target)).toBe(`200 ${JSON.stringify(expected)}`);
    await check('/a', ['GET', '/a', '']);
    await check('/a?', ['GET', '/a', '']);
    await check('/a?b=%20+&c?', ['GET', '/a', 'b=%20+&c?']);
    await check('/', ['GET', '/', '']);
  });

  test('header names keep their case; request headers are found in lower case, trimmed', async () => {
    const server = await start(
      backEnd,
      handling(({ headers }) => answer(headers.get('x-some-header'))),
    );
    const received = await server.exchange(`GET / HTTP/1.1\r\n${HOST}X-SOME-Header:  a b  \r\n\r\n`);
    expect(received).toContain('\r\nX-Casing-Is-Kept: Yes\r\n');
    expect(received).toContain('\r\nContent-Length: 3\r\n');
    expect(received.endsWith('\r\n\r\na b')).toBe(true);
  });

  test('keep-alive: many requests over one connection, HEAD and 204 among them', async () => {
    const server = await start(
      backEnd,
      handling(({ path }) => (path === '/204' ? answer('', 204) : answer('four'))),
    );
    const connection = server.connect();
    for (let i = 0; i < 3; i++) {
      connection.received = '';
      connection.send(`HEAD /a HTTP/1.1\r\n${HOST}\r\n`);
      const head = await connection.receivedUntil('\r\n\r\n');
      expect(head).toContain('\r\nContent-Length: 4\r\n');
      connection.send(`GET /204 HTTP/1.1\r\n${HOST}\r\n`);
      expect((await connection.receivedUntil('\r\n\r\n')).slice(head.length)).not.toMatch(/Content-Length/i);
      connection.send(`GET /a HTTP/1.1\r\n${HOST}\r\n`);
      await connection.receivedUntil('\r\n\r\nfour');
    }
    connection.send(`GET /a HTTP/1.1\r\n${HOST}Connection: close\r\n\r\n`);
    await connection.closed;
  });

  test('an exception in a handler does not end the process: 500 INTERNAL, reported, and it goes on', async () => {
    const bugs = new BugLog();
    const body = { push: () => true, end: () => answer('x'), abort: () => undefined };
    const broken = (): never => {
      throw new Error('broken');
    };
    const server = await start(
      backEnd,
      handling(({ path }) => {
        if (path === '/sync') return broken();
        if (path === '/async') return Promise.reject(new Error('broken'));
        if (path === '/push') return { ...body, push: broken };
        if (path === '/end') return { ...body, end: broken };
        if (path === '/end-async') return { ...body, end: async () => broken() };
        return answer('fine');
      }),
      bugs,
    );
    const internal =
      '500 {"error":{"code":500,"status":"INTERNAL","message":"an error inside the service; it has been logged","errors":[]}}';
    for (const path of ['/sync', '/async']) expect(await fetched(server.url + path)).toBe(internal);
    for (const path of ['/push', '/end', '/end-async']) {
      expect(await fetched(server.url + path, { method: 'POST', body: 'text' })).toBe(internal);
    }
    expect(bugs.bugs).toEqual([
      'GET /sync: broken',
      'GET /async: broken',
      'POST /push: broken',
      'POST /end: broken',
      'POST /end-async: broken',
    ]);
    expect(await fetched(`${server.url}/fine`)).toBe('200 fine');
  });

  test('bodies larger than the socket takes are finished on writability, however slowly the client reads', async () => {
    const large = Buffer.alloc(20_000_000);
    for (let i = 0; i < large.length; i += 4) large.writeUInt32LE(i, i);
    const server = await start(
      backEnd,
      handling(({ path }) => (path === '/later' ? Promise.resolve(answer(large)) : answer(large))),
    );
    for (const path of ['/now', '/later']) {
      const hash = createHash('sha256');
      let byteCount = 0;
      await new Promise<void>((resolve, reject) => {
        const outgoing = request({ port: server.port, path }, (message) => {
          expect(message.headers['content-length']).toBe(String(large.length));
          message.on('data', (piece: Buffer) => {
            hash.update(piece);
            byteCount += piece.length;
            message.pause();
            setImmediate(() => message.resume());
          });
          message.on('end', resolve);
        });
        outgoing.on('error', reject);
        outgoing.end();
      });
      expect(byteCount).toBe(large.length);
      expect(hash.digest('hex')).toBe(createHash('sha256').update(large).digest('hex'));
    }
  });

  test('clients that go away: in the middle of an answer, before it, in the middle of a body', async () => {
    const later = gate();
    const events: string[] = [];
    const aborted = gate();
    const large = Buffer.alloc(20_000_000);
    const server = await start(
      backEnd,
      handling(({ path }) => {
        if (path === '/large') return answer(large);
        if (path === '/later') return later.promise.then(() => answer('late'));
        if (path === '/fine') return answer('fine');
        return {
          push: (piece) => {
            events.push(`piece ${Buffer.from(piece).toString()}`);
            first.open();
            return true;
          },
          end: () => answer('never'),
          abort: () => {
            events.push('abort');
            aborted.open();
          },
        };
      }),
    );
    const first = gate();
    const large1 = server.connect();
    large1.send(`GET /large HTTP/1.1\r\n${HOST}\r\n`);
    await new Promise<void>((resolve) => large1.socket.once('data', () => resolve()));
    large1.socket.destroy();

    const waiting = server.connect();
    waiting.send(`GET /later HTTP/1.1\r\n${HOST}\r\n`);
    const uploading = server.connect();
    uploading.send(`POST /body HTTP/1.1\r\n${HOST}Content-Length: 100\r\n\r\nhalf`);
    await first.promise;
    waiting.socket.destroy();
    uploading.socket.destroy();
    await aborted.promise;
    later.open();
    expect(events).toEqual(['piece half', 'abort']);
    expect(await fetched(`${server.url}/fine`)).toBe('200 fine');
    // All of them are over: a close with all the time in the world does not wait.
    await server.server.close(GRACE_MS);
  });

  test('garbage behind a request whose answer is on its way is not answered into it', async () => {
    const server = await start(
      backEnd,
      handling(() => new Promise<HttpAnswer>(() => undefined)),
    );
    // It closes, and uWebSockets.js of today says why.
    const received = await server.exchange(`GET / HTTP/1.1\r\n${HOST}\r\n\0garbage\r\n\r\n`);
    expect(statusesOf(received)).toMatch(/^(505)?$/);
  });

  test('close: no new connections, requests in progress finish, idle connections go', async () => {
    const later = gate();
    const asked = gate();
    const server = await start(
      backEnd,
      handling(({ path }) => {
        if (path !== '/later') return answer('now');
        asked.open();
        return later.promise.then(() => answer('late'));
      }),
    );
    const idle = server.connect();
    idle.send(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await idle.receivedUntil('now');
    const waiting = server.connect();
    waiting.send(`GET /later HTTP/1.1\r\n${HOST}\r\n`);
    await asked.promise;

    const closed = server.server.close(GRACE_MS);
    await expect(fetch(server.url)).rejects.toThrow();
    later.open();
    await Promise.all([closed, idle.closed, waiting.closed]);
    expect(waiting.received).toMatch(/\r\nConnection: close\r\n/i);
    expect(waiting.received.endsWith('late')).toBe(true);
  });

  test('close is bounded: a request that never ends is cut off', async () => {
    const asked = gate();
    const server = await start(
      backEnd,
      handling(() => {
        asked.open();
        return new Promise<HttpAnswer>(() => undefined);
      }),
    );
    const waiting = server.connect();
    waiting.send(`GET / HTTP/1.1\r\n${HOST}\r\n`);
    await asked.promise;
    await server.server.close(20);
    await waiting.closed;
    expect(waiting.received).toBe('');
  });

  test('a port that is taken, a host that is not ours: a sentence, not a crash', async () => {
    const server = await start(
      backEnd,
      handling(() => answer('first')),
    );
    const second = createHttpServer({
      handler: handling(() => answer('')),
      bugs: new BugLog(),
      forced: backEnd,
    });
    const listening = second.server.listen('127.0.0.1', server.port);
    await expect(listening).rejects.toThrow(`can't listen on 127.0.0.1:${server.port} (`);
    const elsewhere = createHttpServer({
      handler: handling(() => answer('')),
      bugs: new BugLog(),
      forced: backEnd,
    });
    await expect(elsewhere.server.listen('192.0.2.1', 0)).rejects.toThrow("can't listen on 192.0.2.1:0 (");
    expect(await fetched(server.url)).toBe('200 first');
  });

  test('an answer with close set, and a body that is cut off, close the connection after the answer', async () => {
    const server = await start(
      backEnd,
      handling(({ path }) => {
        if (path === '/close') return { ...answer('bye'), close: true };
        return { push: () => false, end: () => answer('enough'), abort: () => undefined };
      }),
    );
    const closing = server.connect();
    closing.send(`GET /close HTTP/1.1\r\n${HOST}\r\n`);
    await closing.closed;
    expect(closing.received).toMatch(/\r\nConnection: close\r\n[\s\S]*bye$/i);
    const cut = server.connect();
    cut.send(`POST /cut HTTP/1.1\r\n${HOST}Content-Length: 100\r\n\r\nsome`);
    await cut.closed;
    expect(cut.received).toMatch(/\r\nConnection: close\r\n[\s\S]*enough$/i);
  });

  test('ingest over a real connection: plain, gzip and chunked, up to 16 MiB; beyond it the sender sees its 413', async () => {
    const service = new TestService();
    const server = await start(backEnd, service.api, service.bugs);
    const plain = Buffer.from('[{"a":1}]');
    const large = Buffer.alloc(16 * 1024 * 1024, ' ');
    large.write('[]');
    const check = async (headers: Record<string, string>, body: Uint8Array, status: number) => {
      const { message, text } = await sent(server, headers, body);
      expect([message.statusCode, text.slice(0, 9)]).toEqual([
        status,
        status === 200 ? '{"message' : '{"error":',
      ]);
    };
    await check({}, plain, 200);
    await check({ 'Transfer-Encoding': 'chunked' }, plain, 200);
    await check({ 'Content-Encoding': 'gzip' }, gzipSync(plain), 200);
    await check({ Expect: '100-continue' }, plain, 200);
    await check({}, large, 200);
    await check({ 'Transfer-Encoding': 'chunked' }, large, 200);
    await check({}, Buffer.concat([large, plain]), 413);
    await check({ 'Transfer-Encoding': 'chunked' }, Buffer.concat([large, plain]), 413);
    await check({ 'X-API-KEY': 'wrong' }, large, 401);
    expect(service.ingest.bodies.map((body) => body.length)).toEqual([
      9,
      9,
      9,
      9,
      large.length,
      large.length,
    ]);
    expect(service.bugs.bugs).toEqual([]);
  });

  test('ingest keeps the connection after a body with a length, and closes it after one in chunks', async () => {
    const service = new TestService();
    const server = await start(backEnd, service.api);
    const connection = server.connect();
    const post = `POST ${EDGE} HTTP/1.1\r\n${HOST}X-API-KEY: ${INGEST_KEY}\r\n`;
    for (let i = 0; i < 2; i++) {
      connection.received = '';
      connection.send(`${post}Content-Length: 2\r\n\r\n[]`);
      await connection.receivedUntil('"rejected":[]}');
    }
    connection.send(`${post}Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n1\r\n]\r\n0\r\n\r\n`);
    await connection.closed;
    expect(service.ingest.bodies.length).toBe(3);
  });

  test('the ordinary client of Node works, gzip included', async () => {
    const service = new TestService();
    service.queries.logRows = Array.from({ length: 100 }, (_, i) =>
      Buffer.from(`{"id":"${i}","metadata":"some text"}`),
    );
    const server = await start(backEnd, service.api);
    for (let i = 0; i < 3; i++) {
      const target = `${server.url}/api/endpoints/query/logs.all?project=p&project_tier=PRO`;
      const response = await fetch(target, { headers: { 'X-API-KEY': KEY } });
      expect(response.headers.get('Content-Encoding')).toBe('gzip');
      expect(((await response.json()) as { result: unknown[] }).result.length).toBe(100);
    }
  });

  test('requests are measured by route, status and cache outcome; closed sockets are counted', async () => {
    const service = new TestService();
    service.queries.fill();
    const seen: string[] = [];
    const meter = {
      record: (route: string, status: number, cache: string, seconds: number) =>
        seen.push(`${route} ${status} ${cache} ${seconds}`),
      recordClosedSocket: () => seen.push('closed'),
    };
    let clockUs = 0;
    const monotonicUs = () => {
      clockUs += 300;
      return clockUs;
    };
    const observe = (contained: HttpHandler) =>
      meteredHandler(contained, meter, (path) => service.api.routeOf(path), monotonicUs);
    const { server } = createHttpServer({
      handler: service.api,
      bugs: service.bugs,
      forced: backEnd,
      observe,
    });
    const port = await server.listen('127.0.0.1', 0);
    service.queries.failure = new Error('bug');
    await fetch(`http://127.0.0.1:${port}${STATS}`, { headers: { 'X-API-KEY': KEY } });
    service.queries.failure = null;
    for (let i = 0; i < 2; i++)
      await fetch(`http://127.0.0.1:${port}${STATS}`, { headers: { 'X-API-KEY': KEY } });
    await fetch(`http://127.0.0.1:${port}${STATS}`, {
      headers: { 'X-API-KEY': KEY, 'Cache-Control': 'no-cache' },
    });
    await fetch(`http://127.0.0.1:${port}${STATS}`);
    const headers = { 'X-API-KEY': INGEST_KEY };
    await fetch(`http://127.0.0.1:${port}${EDGE}`, { method: 'POST', body: '[]', headers });
    await expect(fetch(`http://127.0.0.1:${port}${STATS}`, { method: 'POST', body: 'x' })).rejects.toThrow();
    await server.close(GRACE_MS);
    // Between two readings of this clock lie 300 µs.
    expect(seen).toEqual([
      'functions.invocation-stats 500 none 0.0003',
      'functions.invocation-stats 200 miss 0.0003',
      'functions.invocation-stats 200 hit 0.0003',
      'functions.invocation-stats 200 refresh 0.0003',
      'functions.invocation-stats 401 none 0.0003',
      'ingest 200 none 0.0003',
      'closed',
    ]);
    expect(service.bugs.bugs).toEqual([`GET ${STATS.split('?')[0]}: bug`]);
  });
});
