/** `POST /api/logs`, without sockets: bodies within their limits, and what became of them. */

import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { KeyRing } from '../../src/http/auth.js';
import { IngestApi } from '../../src/http/ingest/ingest-api.js';
import {
  INGEST_HELD_BYTE_LIMIT,
  INGEST_PACKED_BYTE_LIMIT,
  INGEST_UNPACKED_BYTE_LIMIT,
  LARGE_BODY_BYTES,
  REFUSED_BODY_BYTE_LIMIT,
} from '../../src/http/limits.js';
import { decodeQuery } from '../../src/http/query/query-string.js';
import { type HttpAnswer, isBodyConsumer } from '../../src/http/server/server.js';
import { eventually } from '../eventually.js';
import {
  gate,
  headerOf,
  INGEST_KEY,
  LIMITED_KEY,
  problemsOf,
  requestOf,
  SetIngest,
  TestService,
  textOf,
} from './service.js';

const EDGE = '/api/logs?source_name=edge';
const MIB = 1024 * 1024;

test('ingest answers 200 with how many entries were taken and, for each that was not, its place and reason', async () => {
  const service = new TestService();
  const answer = await service.post(EDGE, [Buffer.from('[{"a":'), Buffer.from('1},2,{"b":3},4]')]);
  expect(textOf(answer)).toBe(
    '200 {"message":"Logged!","accepted":2,"rejected":' +
      '[{"index":1,"reason":"not-an-object"},{"index":3,"reason":"not-an-object"}]}',
  );
  expect(answer.close).toBe(false);
  expect(Buffer.from(service.ingest.bodies[0]).toString()).toBe('[{"a":1},2,{"b":3},4]');
});

test('a body that is no JSON, an unknown or missing source: 400; too many entries: 413; a busy log: 503', async () => {
  const service = new TestService();
  const check = async (target: string, problems: string) =>
    expect(problemsOf(await service.post(target, [Buffer.from('nope')]))).toBe(problems);
  await check(EDGE, '400 INVALID_ARGUMENT the body is not JSON, nothing of it was kept: not an array');
  await check('/api/logs?source_name=x', '400 INVALID_ARGUMENT source_name: must be one of edge, not "x"');
  await check('/api/logs', '400 INVALID_ARGUMENT source_name: is required');
  await check('/api/logs?source=edge&source_name=', '400 INVALID_ARGUMENT source_name: is required');
  await check(`${EDGE}&source_name=edge`, '400 INVALID_ARGUMENT source_name: is given more than once');
  expect(problemsOf(await service.post(EDGE, [Buffer.from(`[${'1,'.repeat(10)}1]`)]))).toBe(
    '413 PAYLOAD_TOO_LARGE the body holds more than 10 entries; send them in several requests',
  );
  service.ingest.busy = true;
  const busy = await service.post(EDGE, [Buffer.from('[]')]);
  expect(problemsOf(busy)).toBe('503 UNAVAILABLE the log takes no more at the moment: the disk is full');
  expect(headerOf(busy, 'Retry-After')).toBe('7');
  expect(service.ingest.bodies).toEqual([]);
});

test('gzip bodies are unpacked; what is not gzip is 400, another Content-Encoding 415', async () => {
  const service = new TestService();
  const packed = gzipSync('[{"a":"text"}]');
  const post = (body: Uint8Array, coding: string) =>
    service.post(EDGE, [body], { 'Content-Encoding': coding });
  for (const coding of ['gzip', 'GZIP', 'x-gzip']) expect((await post(packed, coding)).status).toBe(200);
  for (const coding of ['', 'identity']) expect((await post(Buffer.from('[{}]'), coding)).status).toBe(200);
  expect(Buffer.from(service.ingest.bodies[0]).toString()).toBe('[{"a":"text"}]');
  expect(problemsOf(await post(Buffer.from('[{}]'), 'gzip'))).toMatch(
    /^400 INVALID_ARGUMENT the body is not gzip/,
  );
  expect((await post(packed.subarray(0, 20), 'gzip')).status).toBe(400);
  expect((await post(Buffer.alloc(0), 'gzip')).status).toBe(400);
  expect(problemsOf(await post(packed, 'br'))).toBe(
    '415 UNSUPPORTED_MEDIA_TYPE the Content-Encoding "br" is not known; known: gzip, identity',
  );
  expect(service.ingest.bodies.length).toBe(5);
});

test('a Content-Type whose body is surely no JSON is 415 with what to send; any other leaves it to the body', async () => {
  const service = new TestService();
  const post = (type: string) => service.post(EDGE, [Buffer.from('[{}]')], { 'Content-Type': type });
  const check = async (type: string, remedy: RegExp) => {
    const problems = problemsOf(await post(type));
    expect(problems).toMatch(/^415 UNSUPPORTED_MEDIA_TYPE /);
    expect(problems).toMatch(remedy);
  };
  for (const name of ['msgpack', 'X-MSGPACK', 'vnd.msgpack; a=b'])
    await check(`application/${name}`, /Fluent Bit: format json/);
  for (const name of ['x-protobuf', 'protobuf', 'vnd.google.protobuf'])
    await check(`application/${name}`, /send JSON/);
  await check('multipart/form-data; boundary=x', /--data-binary/);
  expect(service.ingest.bodies).toEqual([]);
  for (const type of ['', 'text/plain', 'application/x-www-form-urlencoded', 'application/json_lines'])
    expect((await post(type)).status).toBe(200);
});

test('over 16 MiB packed or 64 MiB unpacked: 413, and nothing of it is kept', async () => {
  const service = new TestService();
  const mebibytes = (count: number) => Array.from({ length: count }, () => Buffer.alloc(MIB, ' '));
  expect(INGEST_PACKED_BYTE_LIMIT).toBe(16 * MIB);
  expect(INGEST_UNPACKED_BYTE_LIMIT).toBe(64 * MIB);

  const fits = mebibytes(16);
  fits[0].write('[]');
  expect((await service.post(EDGE, fits)).status).toBe(200);
  expect((await service.post(EDGE, [...fits, Buffer.from(' ')])).status).toBe(413);
  // Without a length the bytes are counted as they come.
  const request = requestOf(EDGE, { 'X-API-KEY': INGEST_KEY, 'Transfer-Encoding': 'chunked' }, 'POST');
  const body = service.api.open(request);
  if (typeof body === 'string' || !isBodyConsumer(body)) throw new Error('a body is wanted');
  for (const piece of [...fits, Buffer.from(' ')]) expect(body.push(piece)).toBe(true);
  expect(await body.end()).toMatchObject({ status: 413, close: true });

  const unpackedFits = gzipSync(Buffer.concat([Buffer.from('[]'), Buffer.alloc(64 * MIB - 2, ' ')]));
  const bomb = gzipSync(Buffer.alloc(64 * MIB + 1, ' '));
  const gzip = { 'Content-Encoding': 'gzip' };
  expect((await service.post(EDGE, [unpackedFits], gzip)).status).toBe(200);
  expect((await service.post(EDGE, [bomb], gzip)).status).toBe(413);
  expect(service.ingest.bodies.length).toBe(2);
  await eventually(() => service.ingestApi?.heldBytes === 0);
});

test('a refused body is read to its end, so that the sender sees the answer, but not without end', async () => {
  const service = new TestService();
  const open = (headers: Record<string, string>) => service.api.open(requestOf(EDGE, headers, 'POST'));
  const small = open({ 'X-API-KEY': 'wrong', 'Content-Length': '10' });
  if (typeof small === 'string' || !isBodyConsumer(small)) throw new Error('a body is read');
  expect(small.push(Buffer.alloc(10))).toBe(true);
  expect(await small.end()).toMatchObject({ status: 401, close: false });

  const declared = open({ 'X-API-KEY': 'wrong', 'Content-Length': String(REFUSED_BODY_BYTE_LIMIT + 1) });
  expect(declared).toMatchObject({ status: 401, close: true });

  for (const key of ['wrong', INGEST_KEY]) {
    const endless = open({ 'X-API-KEY': key, 'Transfer-Encoding': 'chunked' });
    if (typeof endless === 'string' || !isBodyConsumer(endless)) throw new Error('a body is read');
    const piece = Buffer.alloc(MIB);
    let pushed = 0;
    while (endless.push(piece)) pushed += 1;
    expect(pushed).toBe(REFUSED_BODY_BYTE_LIMIT / MIB);
    expect(await endless.end()).toMatchObject({ status: key === 'wrong' ? 401 : 413, close: true });
  }
});

test('all bodies in progress share one budget: beyond it 503, and what ends or goes away gives back', async () => {
  const port = new SetIngest();
  const api = new IngestApi(port, 1000);
  expect(INGEST_HELD_BYTE_LIMIT).toBeGreaterThan(INGEST_PACKED_BYTE_LIMIT + INGEST_UNPACKED_BYTE_LIMIT);
  const open = (headers: Record<string, string> = {}) => {
    const body = api.open(requestOf(EDGE, headers, 'POST'), decodeQuery('source_name=edge'), {
      projects: null,
      pace: null,
    });
    if (!isBodyConsumer(body)) throw new Error('a body is wanted');
    return body;
  };
  const text = (length: number) => Buffer.from('[]'.padEnd(length));
  const [first, second, third] = [open(), open(), open()];
  first.push(text(600));
  second.push(text(300));
  third.push(text(200));
  expect(api.heldBytes).toBe(900);
  const refused = await third.end();
  expect([problemsOf(refused), headerOf(refused, 'Retry-After')]).toEqual([
    '503 UNAVAILABLE there is no memory for a body of this size at the moment; where that goes on, send fewer entries at a time, or raise LOGRING_MEMORY_BUDGET_MB',
    '1',
  ]);
  second.abort();
  expect(api.heldBytes).toBe(600);

  // Held until it is on disk, however that ends.
  const disk = gate();
  port.gate = disk.promise;
  const storing = first.end();
  expect(api.heldBytes).toBe(600);
  disk.open();
  expect((await storing).status).toBe(200);
  expect(api.heldBytes).toBe(0);
  port.failure = new Error('disk full');
  const failing = open();
  failing.push(text(10));
  await expect(failing.end()).rejects.toThrow('disk full');
  expect(api.heldBytes).toBe(0);

  // Unpacked bytes count in place of the packed ones.
  port.failure = null;
  const packed = open({ 'Content-Encoding': 'gzip' });
  packed.push(gzipSync(text(900)));
  expect((await packed.end()).status).toBe(200);
  const large = open({ 'Content-Encoding': 'gzip' });
  large.push(gzipSync(text(1001)));
  expect((await large.end()).status).toBe(503);
  await eventually(() => api.heldBytes === 0);
});

test('what is held of the entries of a body counts in the same budget, and is given back with it', async () => {
  const port = new SetIngest();
  const api = new IngestApi(port, 4 * LARGE_BODY_BYTES);
  const send = (length: number, heldOfEntries: number, isPacked: boolean) => {
    port.heldOfEntries = heldOfEntries;
    const headers: Record<string, string> = isPacked ? { 'Content-Encoding': 'gzip' } : {};
    const body = api.open(requestOf(EDGE, headers, 'POST'), decodeQuery('source_name=edge'), {
      projects: null,
      pace: null,
    });
    if (!isBodyConsumer(body)) throw new Error('a body is wanted');
    const text = Buffer.from('[]'.padEnd(length));
    body.push(isPacked ? gzipSync(text) : text);
    return body.end() as Promise<HttpAnswer>;
  };
  for (const length of [100, LARGE_BODY_BYTES + 1])
    for (const isPacked of [false, true]) {
      const disk = gate();
      port.gate = disk.promise;
      const storing = send(length, 2 * LARGE_BODY_BYTES, isPacked);
      await eventually(() => api.heldBytes === length + 2 * LARGE_BODY_BYTES);
      disk.open();
      expect((await storing).status).toBe(200);
      await eventually(() => api.heldBytes === 0);
      const refused = await send(length, 4 * LARGE_BODY_BYTES, isPacked);
      expect([refused.status, headerOf(refused, 'Retry-After')]).toEqual([503, '1']);
      await eventually(() => api.heldBytes === 0);
    }
  expect(port.bodies.length).toBe(4);
});

test('of fifty bodies of 16 MiB at once those are read that fit into the budget, the others are refused unread', async () => {
  const port = new SetIngest();
  const limit = 3 * INGEST_PACKED_BYTE_LIMIT;
  const api = new IngestApi(port, limit);
  const disk = gate();
  port.gate = disk.promise;
  const headers = { 'Content-Length': String(INGEST_PACKED_BYTE_LIMIT) };
  const bodies = Array.from({ length: 50 }, () => {
    const grant = { projects: null, pace: null };
    const body = api.open(requestOf(EDGE, headers, 'POST'), decodeQuery('source_name=edge'), grant);
    if (!isBodyConsumer(body)) throw new Error('a body is wanted');
    return body;
  });
  let mostBytes = api.heldBytes;
  const piece = Buffer.alloc(MIB, ' ');
  const start = Buffer.from('[]'.padEnd(MIB));
  for (let i = 0; i < 16; i++) {
    for (const body of bodies) expect(body.push(i === 0 ? start : piece)).toBe(true);
    mostBytes = Math.max(mostBytes, api.heldBytes);
  }
  const answers = Promise.all(bodies.map((body) => body.end()));
  expect(mostBytes).toBe(limit);
  disk.open();
  const statuses = (await answers).map(({ status }) => status);
  expect(statuses).toEqual([...Array(3).fill(200), ...Array(47).fill(503)]);
  await eventually(() => api.heldBytes === 0);
});

test('ingest methods: POST only; with Kafka there is no ingest API, and the answer says so', async () => {
  const service = new TestService();
  const kafka = new TestService({ ingest: null, keys: new KeyRing([{ key: INGEST_KEY, projects: null }]) });
  const key = { 'X-API-KEY': INGEST_KEY };
  for (const method of ['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']) {
    const answer = await service.ask(EDGE, key, method);
    expect([answer.status, headerOf(answer, 'Allow')]).toEqual([405, 'POST']);
    expect((await kafka.ask(EDGE, key, method)).status).toBe(404);
    expect((await service.ask(EDGE, { 'X-API-KEY': '' }, method)).status).toBe(401);
  }
  expect(problemsOf(await kafka.post(EDGE, [Buffer.from('[]')]))).toBe(
    '404 NOT_FOUND /api/logs does not exist here: this service reads its logs from Kafka',
  );
});

test('a chunk of an import needs its whole place; a GET says how far an import has come', async () => {
  const service = new TestService();
  const digest = 'a'.repeat(64);
  const check = async (parameters: string, problems: string) =>
    expect(problemsOf(await service.post(`${EDGE}&import_id=${parameters}`, [Buffer.from('[]')]))).toBe(
      problems,
    );
  await check(
    'no/id&import_start=-1&import_bytes=0',
    '400 INVALID_ARGUMENT import_id: must be 1 to 64 of a-z A-Z 0-9 _ -; import_start: must be a whole number of bytes; ' +
      'import_bytes: must be at least 1; import_end_digest: is required',
  );
  await check(
    `f&import_start=1&import_bytes=2&import_end_digest=${digest}&import_start_digest=b`,
    '400 INVALID_ARGUMENT import_start_digest: must be a SHA-256 in hexadecimal',
  );
  expect(service.ingest.bodies).toEqual([]);
  const place = `&import_id=f&import_start=7&import_bytes=2&import_start_digest=${digest}&import_end_digest=${digest}`;
  expect(textOf(await service.post(`${EDGE}${place}`, [Buffer.from('[]')]))).toContain(
    '200 {"message":"Logged!"',
  );
  expect(service.ingest.chunks).toEqual([
    { importId: 'f', startByte: 7, endByte: 9, startDigest: digest, endDigest: digest },
  ]);

  const get = (target: string) => service.ask(target, { 'X-API-KEY': INGEST_KEY });
  expect(textOf(await get(`${EDGE}&import_id=f`))).toBe(
    '200 {"import":{"next":0,"digest":"","accepted":0,"rejected":{}}}',
  );
  expect(problemsOf(await get('/api/logs?source_name=x&import_id=f'))).toBe(
    '404 NOT_FOUND no log is called "x"',
  );
  expect(problemsOf(await get('/api/logs?import_id='))).toContain(
    '400 INVALID_ARGUMENT source_name: is required',
  );
  expect(problemsOf(await get(EDGE))).toContain('405 METHOD_NOT_ALLOWED');
});

test('Idempotency-Key: 1 to 255 printable ASCII characters, plain or as a quoted string', async () => {
  const service = new TestService();
  const post = (key: string, query = '') =>
    service.post(EDGE + query, [Buffer.from('[]')], { 'Idempotency-Key': key });
  const check = async (header: string, key: string | null) => {
    const answer = await post(header);
    expect(answer.status, header).toBe(key === null ? 400 : 200);
    expect(service.ingest.keys.splice(0), header).toEqual(key === null ? [] : [key]);
  };
  await check('8e03978e-40d5-43e8', '8e03978e-40d5-43e8');
  await check('"8e03978e-40d5-43e8"', '8e03978e-40d5-43e8');
  await check('"a \\"b\\" \\\\"', 'a "b" \\');
  await check('a b', 'a b');
  await check('x'.repeat(255), 'x'.repeat(255));
  await check(`"${'x'.repeat(255)}"`, 'x'.repeat(255));
  for (const wrong of [
    '',
    '""',
    '"',
    '"a',
    '"a"b',
    '"a";p=1',
    '"a\\b"',
    'x'.repeat(256),
    'é',
    'a\tb',
    '\x7f',
  ])
    await check(wrong, null);
  expect(problemsOf(await service.post('/api/logs', [Buffer.from('[]')], { 'Idempotency-Key': '' }))).toBe(
    '400 INVALID_ARGUMENT source_name: is required; Idempotency-Key: ' +
      'must be 1 to 255 printable ASCII characters, plain or as a quoted string',
  );
  const digest = 'a'.repeat(64);
  expect(
    problemsOf(await post('k', `&import_id=f&import_start=0&import_bytes=2&import_end_digest=${digest}`)),
  ).toBe(
    "400 INVALID_ARGUMENT Idempotency-Key: can't be used with import_id: a chunk is known by its place in the file",
  );
});

test('another body with an Idempotency-Key that came before is 409', async () => {
  const service = new TestService();
  service.ingest.isKeyReused = true;
  expect(problemsOf(await service.post(EDGE, [Buffer.from('[]')], { 'Idempotency-Key': 'k' }))).toBe(
    '409 CONFLICT this Idempotency-Key was used before with another body; use a new key for each body',
  );
});

test('a key that is limited to projects sees no import, as it may not post', async () => {
  const service = new TestService();
  const key = { 'X-API-KEY': LIMITED_KEY };
  const refusal =
    '403 PERMISSION_DENIED this key is limited to some projects, and such keys may neither post logs nor ask how far an import is';
  for (const method of ['GET', 'HEAD'])
    expect(problemsOf(await service.ask(`${EDGE}&import_id=f`, key, method))).toBe(refusal);
  expect(problemsOf(await service.post(EDGE, [Buffer.from('[]')], key))).toBe(refusal);
});
