/**
 * Raw bytes against both servers: no request is ever read as two, none gets a 5xx, and the process goes on.
 */

import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { HttpHandler } from '../../src/http/server/server.js';
import { CLOSE_SOCKET } from '../../src/http/server/server.js';
import { BACK_ENDS, RunningServer, statusesOf } from './running-server.js';
import { INGEST_KEY, KEY, TestService } from './service.js';

const HOST = 'Host: test\r\n';
const QUERY = '/api/endpoints/query/logs.all?project=p&project_tier=PRO';
const SMUGGLED = `GET /smuggled HTTP/1.1\r\n${HOST}\r\n`;

const get = (headers: string, rest = '') =>
  `GET ${QUERY} HTTP/1.1\r\n${HOST}X-API-KEY: ${KEY}\r\n${headers}\r\n${rest}`;
const post = (headers: string, rest: string) =>
  `POST /api/logs?source_name=edge HTTP/1.1\r\n${HOST}X-API-KEY: ${INGEST_KEY}\r\n${headers}\r\n${rest}`;

/** Closed without an answer, or with a bare one: uWebSockets.js of today says what it can't read. */
const REFUSED = /^(400|431|505)?$/;

/** `[]` in chunks. */
const CHUNKS = '2\r\n[]\r\n0\r\n\r\n';

describe.each(BACK_ENDS)('%s', (backEnd) => {
  const service = new TestService();
  /** The requests that were answered or whose body was read. */
  const seen: string[] = [];
  const handler: HttpHandler = {
    open(request) {
      const opened = service.api.open(request);
      if (opened !== CLOSE_SOCKET) seen.push(request.path);
      return opened;
    },
  };
  let server: RunningServer;

  beforeAll(async () => {
    server = await RunningServer.start(backEnd, handler, service.bugs);
  });

  beforeEach(() => {
    seen.length = 0;
    service.ingest.bodies.length = 0;
  });

  afterAll(() => server.server.close(0));

  async function isAlive(): Promise<void> {
    expect(statusesOf(await server.exchange(get('')))).toBe('200');
    expect(service.bugs.bugs).toEqual([]);
    seen.length = 0;
  }

  /** Refused, nothing taken in, and nothing behind it read as a request. */
  async function checkRefused(bytes: string): Promise<void> {
    const received = await server.exchange(bytes + SMUGGLED);
    expect(statusesOf(received), received).toMatch(REFUSED);
    expect(seen).toEqual([]);
    expect(service.ingest.bodies.length).toBe(0);
    await isAlive();
  }

  /** Answered with these statuses. */
  async function checkAnswered(bytes: string, statuses: string, bodies: string[] = []): Promise<void> {
    const received = await server.exchange(bytes);
    expect(statusesOf(received), received).toBe(statuses);
    expect(service.ingest.bodies.map((body) => Buffer.from(body).toString())).toEqual(bodies);
    await isAlive();
  }

  describe('query API: a request that carries a body closes the socket', () => {
    test.each([
      ['a Content-Length above 0', 'Content-Length: 5\r\n'],
      ['two Content-Lengths of 0', 'Content-Length: 0\r\nContent-Length: 0\r\n'],
      ['two differing Content-Lengths', 'Content-Length: 0\r\nContent-Length: 5\r\n'],
      ['Content-Length +0', 'Content-Length: +0\r\n'],
      ['Content-Length -1', 'Content-Length: -1\r\n'],
      ['an empty Content-Length', 'Content-Length:\r\n'],
      ['Content-Length 0x0', 'Content-Length: 0x0\r\n'],
      ['Content-Length 0,0', 'Content-Length: 0,0\r\n'],
      ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked\r\n'],
      ['Transfer-Encoding: identity', 'Transfer-Encoding: identity\r\n'],
      ['an empty Transfer-Encoding', 'Transfer-Encoding:\r\n'],
      ['Transfer-Encoding : chunked', 'Transfer-Encoding : chunked\r\n'],
      ['Content-Length and Transfer-Encoding', 'Content-Length: 5\r\nTransfer-Encoding: chunked\r\n'],
      ['a repeated Host', HOST],
      ['another Host', 'Host: other\r\n'],
      ['a repeated X-API-KEY', `X-API-KEY: ${KEY}\r\n`],
      ['another X-API-KEY', 'x-api-key: other\r\n'],
    ])('%s', (_name, headers) => checkRefused(get(headers, CHUNKS)));

    test('a Content-Length of 0 is no body', () => checkAnswered(get('Content-Length: 0\r\n'), '200'));
    test('but one well-framed body to a wrong path or method is answered, and not read as a request', async () => {
      for (const [line, status] of [
        ['POST /logs', 404],
        ['POST /api/log', 404],
        ['POST /api/logs/', 404],
        ['PUT /api/logs', 401],
        ['POST /readyz', 405],
      ]) {
        const body = 'GET /livez HTTP/1.1\r\nHost: h\r\n\r\n';
        const head = `${line} HTTP/1.1\r\n${HOST}X-API-KEY: ${KEY}\r\n`;
        await checkAnswered(`${head}Content-Length: ${body.length}\r\n\r\n${body}`, String(status));
      }
    });

    test('the same rules hold for every other path and method', async () => {
      for (const line of ['GET /metrics', 'GET /nope', `DELETE ${QUERY}`, 'GET /api/logs?source_name=edge']) {
        await checkRefused(`${line} HTTP/1.1\r\n${HOST}X-API-KEY: ${KEY}\r\nContent-Length: 5\r\n\r\nhello`);
      }
    });
  });

  describe('ingest API: exactly one all-digit Content-Length or exactly one Transfer-Encoding: chunked', () => {
    test.each([
      ['neither', '', ''],
      ['two Content-Lengths, the same', 'Content-Length: 2\r\nContent-Length: 2\r\n', '[]'],
      ['two Content-Lengths, differing', 'Content-Length: 2\r\nContent-Length: 50\r\n', '[]'],
      [
        'Content-Length and Transfer-Encoding',
        `Content-Length: ${CHUNKS.length}\r\nTransfer-Encoding: chunked\r\n`,
        CHUNKS,
      ],
      ['Transfer-Encoding and Content-Length', 'Transfer-Encoding: chunked\r\nContent-Length: 2\r\n', CHUNKS],
      [
        'Transfer-Encoding: chunked twice',
        'Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n',
        CHUNKS,
      ],
      ['Transfer-Encoding: chunked, chunked', 'Transfer-Encoding: chunked, chunked\r\n', CHUNKS],
      ['Transfer-Encoding: gzip, chunked', 'Transfer-Encoding: gzip, chunked\r\n', CHUNKS],
      ['Transfer-Encoding : chunked', 'Transfer-Encoding : chunked\r\n', CHUNKS],
      ['Transfer-Encoding: xchunked', 'Transfer-Encoding: xchunked\r\n', CHUNKS],
      ['Transfer-Encoding: identity', 'Transfer-Encoding: identity\r\n', CHUNKS],
      ['an empty Transfer-Encoding', 'Transfer-Encoding:\r\n', CHUNKS],
      ['a folded Transfer-Encoding', 'Transfer-Encoding:\r\n chunked\r\n', CHUNKS],
      ['Content-Length +2', 'Content-Length: +2\r\n', '[]'],
      ['Content-Length -2', 'Content-Length: -2\r\n', '[]'],
      ['Content-Length 0x2', 'Content-Length: 0x2\r\n', '[]'],
      ['Content-Length 2.0', 'Content-Length: 2.0\r\n', '[]'],
      ['Content-Length 2, 2', 'Content-Length: 2, 2\r\n', '[]'],
      ['Content-Length 2 2', 'Content-Length: 2 2\r\n', '[]'],
      ['an empty Content-Length', 'Content-Length:\r\n', '[]'],
      ['a Content-Length of 20 digits', 'Content-Length: 18446744073709551618\r\n', '[]'],
      ['a Content-Length with leading zeros, 20 digits', 'Content-Length: 00000000000000000002\r\n', '[]'],
      ['Content-Length : 2', 'Content-Length : 2\r\n', '[]'],
      ['Content<CR>Length', 'Content\rLength: 2\r\n', '[]'],
      ['a repeated Host', `${HOST}Content-Length: 2\r\n`, '[]'],
      ['a repeated X-API-KEY', `X-API-KEY: ${INGEST_KEY}\r\nContent-Length: 2\r\n`, '[]'],
      [
        'a repeated Idempotency-Key',
        'Idempotency-Key: a\r\nIdempotency-Key: a\r\nContent-Length: 2\r\n',
        '[]',
      ],
    ])('%s', (_name, headers, rest) => checkRefused(post(headers, rest)));

    test('Content-Length: 2 with spaces around it is a plain 2', () =>
      checkAnswered(post('Content-Length: \t2 \r\n', '[]'), '200', ['[]']));
    test('Transfer-Encoding:<tab>Chunked is chunked', () =>
      checkAnswered(post('Transfer-Encoding:\tChunked\r\n', CHUNKS), '200', ['[]']));
  });

  describe('chunks: what can’t be read is no request, and nothing behind it is', () => {
    test.each([
      ['a size of zz', 'zz\r\n[]\r\n0\r\n\r\n'],
      ['a negative size', '-2\r\n[]\r\n0\r\n\r\n'],
      ['a size of 0x2', '0x2\r\n[]\r\n0\r\n\r\n'],
      ['a size of 17 digits', 'fffffffffffffffff\r\n[]\r\n0\r\n\r\n'],
      ['a chunk longer than its size', '1\r\n[]\r\n0\r\n\r\n'],
      ['a chunk shorter than its size', '4\r\n[]\r\n0\r\n\r\n'],
      ['bare line feeds', '2\n[]\n0\n\n'],
    ])('%s', async (_name, rest) => {
      const received = await server.exchange(post('Transfer-Encoding: chunked\r\n', rest) + SMUGGLED);
      // uWebSockets.js takes a chunk of the size that it says, and overlooks what stands where its end should
      // be.
      expect(statusesOf(received), received).toMatch(REFUSED);
      expect(seen).toEqual(['/api/logs']);
      for (const body of service.ingest.bodies) expect(Buffer.from(body).toString().trim()).toBe('[]');
      await isAlive();
    });

    test('chunk extensions: the body is read or not, but nothing behind it becomes a request by them', async () => {
      for (const rest of [
        '2;a=b\r\n[]\r\n0\r\n\r\n',
        '2;\r\n[]\r\n0;x\r\n\r\n',
        '2 ;x="1"\r\n[]\r\n0\r\n\r\n',
      ]) {
        seen.length = 0;
        const connection = server.connect();
        connection.send(post('Transfer-Encoding: chunked\r\n', rest));
        connection.socket.end();
        await connection.closed;
        expect(statusesOf(connection.received)).toMatch(/^(200|400)?$/);
        expect(seen).toEqual(['/api/logs']);
        await isAlive();
      }
    });

    test('what comes after a chunked body on the same connection gets no answer', async () => {
      const connection = server.connect();
      connection.send(post('Transfer-Encoding: chunked\r\n', CHUNKS));
      await connection.receivedUntil('"rejected":[]}');
      connection.send(get(''));
      await connection.closed;
      expect(statusesOf(connection.received)).toBe('200');
    });
  });

  describe('heads that are no HTTP', () => {
    const line = `GET ${QUERY} HTTP/1.1`;
    test.each([
      ['a missing Host', `${line}\r\nX-API-KEY: ${KEY}\r\n\r\n`],
      ['a folded header', `${line}\r\n${HOST}X-A: b\r\n c\r\n\r\n`],
      ['a line that begins with a space', `${line}\r\n Content-Length: 5\r\n${HOST}\r\n`],
      ['bare line feeds', `${line}\nHost: test\nX-API-KEY: ${KEY}\n\n`],
      ['one bare line feed', `${line}\r\nHost: test\nX-A: b\r\n\r\n`],
      ['a bare carriage return', `${line}\r\nHost: test\rX-A: b\r\n\r\n`],
      ['NUL in a header value', `${line}\r\n${HOST}X-A: b\0c\r\n\r\n`],
      ['NUL in a header name', `${line}\r\n${HOST}X\0A: b\r\n\r\n`],
      ['NUL in the target', `GET /a\0b HTTP/1.1\r\n${HOST}\r\n`],
      ['a line without colon', `${line}\r\n${HOST}X-A\r\n\r\n`],
      ['a space in a header name', `${line}\r\n${HOST}X A: b\r\n\r\n`],
      ['a space in the target', `GET /a b HTTP/1.1\r\n${HOST}\r\n`],
      ['tabs in the request line', `GET\t/a\tHTTP/1.1\r\n${HOST}\r\n`],
      ['HTTP/2.0', `GET /a HTTP/2.0\r\n${HOST}\r\n`],
      ['HTTP/0.9', 'GET /a\r\n\r\n'],
      ['a proxy’s target', `GET http://test/a HTTP/1.1\r\n${HOST}\r\n`],
      ['a target without slash', `OPTIONS * HTTP/1.1\r\n${HOST}\r\n`],
      ['CONNECT', `CONNECT test:80 HTTP/1.1\r\n${HOST}\r\n`],
      ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
      ['random bytes', '\xff\xfe\x00\x01\r\n\r\n'],
      ['a flood of headers', `${line}\r\n${HOST}${'X-A: b\r\n'.repeat(3000)}\r\n`],
      ['200 headers', `${line}\r\n${HOST}${'X-A: b\r\n'.repeat(200)}\r\n`],
      ['a header of 600 KB', `${line}\r\n${HOST}X-A: ${'a'.repeat(600_000)}\r\n\r\n`],
    ])('%s', (_name, bytes) => checkRefused(bytes));

    test.each(['get', 'F(O', 'BREW'])(
      'the method %s: refused, or answered as one that is not allowed',
      async (method) => {
        const received = await server.exchange(
          `${method} ${QUERY} HTTP/1.1\r\n${HOST}X-API-KEY: ${KEY}\r\n\r\n`,
        );
        expect(statusesOf(received), received).toMatch(/^(400|405)?$/);
        await isAlive();
      },
    );

    test('bytes beyond ASCII: in the target no such path or no such text, in headers harmless', async () => {
      await checkAnswered(`GET /\xe9 HTTP/1.1\r\n${HOST}\r\n`, backEnd === 'node:http' ? '400' : '404');
      await checkAnswered(
        `GET ${QUERY}&project=\xc3\xa9 HTTP/1.1\r\n${HOST}X-API-KEY: ${KEY}\r\n\r\n`,
        '400',
      );
      await checkAnswered(`GET ${QUERY} HTTP/1.1\r\n${HOST}X-API-KEY: \xff\xfe\r\n\r\n`, '401');
    });

    test('a long head is read, whole or in pieces: 15,000 bytes of an expression, 20,000 of a cookie', async () => {
      const answered = async (bytes: string) => {
        expect(statusesOf(await server.exchange(bytes))).toBe('200');
        // In pieces the native server of Node 20 reads 4 KiB at most.
        if (backEnd === 'uWebSockets.js' && process.versions.node.startsWith('20.')) return;
        const connection = server.connect();
        for (let at = 0; at < bytes.length; at += 3_000) {
          connection.send(bytes.slice(at, at + 3_000));
          await isAlive();
        }
        await connection.receivedUntil(']}');
        connection.socket.destroy();
      };
      await answered(get(`Cookie: a=${'a'.repeat(20_000)}\r\n`));
      await answered(`GET ${QUERY}&other=${'a'.repeat(15_000)} HTTP/1.1\r\n${HOST}X-API-KEY: ${KEY}\r\n\r\n`);
    });

    test('an over-long URL: no 5xx', async () => {
      for (const length of [17_000, 30_000, 600_000]) {
        const bytes = `GET /${'a'.repeat(length)} HTTP/1.1\r\n${HOST}\r\n`;
        expect(statusesOf(await server.exchange(bytes))).toMatch(/^(400|414|431)?$/);
        await isAlive();
      }
    });
  });

  describe('pipelining', () => {
    test('three requests in one segment: three answers, in order', () =>
      checkAnswered(get('') + SMUGGLED + get(''), '200 404 200'));

    test('a body with a length ends there, and not a byte later', async () => {
      const connection = server.connect();
      connection.send(post('Content-Length: 2\r\n', '[]'));
      await connection.receivedUntil('"rejected":[]}');
      connection.send(get('Connection: close\r\n'));
      await connection.closed;
      expect(statusesOf(connection.received)).toBe('200 200');
      expect(seen).toEqual(['/api/logs', QUERY.split('?')[0]]);
    });

    test('what stands behind a refused request is not read', async () => {
      const received = await server.exchange(get('') + get('Content-Length: 5\r\n', 'hello') + SMUGGLED);
      expect(statusesOf(received)).toMatch(/^(200)?$/);
      expect(seen).toEqual([QUERY.split('?')[0]]);
      await isAlive();
    });
  });

  test('damaged requests, from a seed: no 5xx of ours, no second request, and the process goes on', async () => {
    const damage = fc.record({
      base: fc.constantFrom(
        get(''),
        post('Content-Length: 2\r\n', '[]'),
        post('Transfer-Encoding: chunked\r\n', CHUNKS),
      ),
      edits: fc.array(
        fc.record({
          at: fc.double({ min: 0, max: 1, noNaN: true }),
          removed: fc.nat(3),
          added: fc.nat(3),
          byte: fc.nat(255),
        }),
        { minLength: 1, maxLength: 3 },
      ),
    });
    await fc.assert(
      fc.asyncProperty(damage, async ({ base, edits }) => {
        seen.length = 0;
        const bytes = Array.from(base);
        for (const { at, removed, added, byte } of edits) {
          bytes.splice(
            Math.floor(at * bytes.length),
            removed,
            ...new Array<string>(added).fill(String.fromCharCode(byte)),
          );
        }
        const received = await server.exchange(bytes.join(''));
        // An answer, then the bare refusal of what is behind the body.
        expect(statusesOf(received)).toMatch(/^([24]\d\d|505)?( (400|505))?$/);
        expect(seen.length).toBeLessThanOrEqual(1);
      }),
      { seed: 20261121, numRuns: 300 },
    );
    await isAlive();
  });

  test('a request in single bytes is one request', async () => {
    const connection = server.connect();
    connection.socket.setNoDelay(true);
    for (const byte of post('Content-Length: 2\r\n', '[]')) {
      await new Promise<void>((resolve) =>
        connection.socket.write(Buffer.from(byte, 'latin1'), () => resolve()),
      );
    }
    await connection.receivedUntil('"rejected":[]}');
    connection.socket.destroy();
    expect(seen).toEqual(['/api/logs']);
  });
});
