/**
 * HTTPS on both servers: served, and the certificate changed while it runs, however its files are replaced.
 */

import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TLSSocket } from 'node:tls';
import { afterAll, describe, expect, test } from 'vitest';
import { ConfigError } from '../../src/config/config-error.js';
import { printConfig, readConfig } from '../../src/config.js';
import { createHttpServer } from '../../src/http/server/back-ends.js';
import { watchedTlsFiles } from '../../src/http/server/tls-files.js';
import { checkedIdentity } from '../../src/http/server/tls-identity.js';
import { startChildService } from '../child-service.js';
import { eventually } from '../eventually.js';
import { makeCertificate, textOfFile } from './certificates.js';
import { BACK_ENDS, type RawConnection, RunningServer } from './running-server.js';
import { BugLog, TestService } from './service.js';

const directory = mkdtempSync(join(tmpdir(), 'logring-tls-'));
const one = makeCertificate(directory, 'one');
const two = makeCertificate(directory, 'two');
afterAll(() => rmSync(directory, { recursive: true }));

/** `200 one`: the status of /livez and the common name of the certificate that came with it. */
function asked(port: number, agent?: Agent): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = {
      port,
      host: '127.0.0.1',
      path: '/livez',
      rejectUnauthorized: false,
      agent: agent ?? false,
    };
    request(options, (response) => {
      const name = (response.socket as TLSSocket).getPeerCertificate().subject.CN;
      response.resume().on('end', () => resolve(`${response.statusCode} ${name}`));
    })
      .on('error', reject)
      .end();
  });
}

/**
 * Puts a pair into a directory as Kubernetes mounts a secret: the files are links through one link that is
 * replaced.
 */
function mountedSecret(name: string) {
  const mount = join(directory, name);
  mkdirSync(mount);
  let version = 0;
  const put = (certificate: string, key: string) => {
    version += 1;
    const data = join(mount, `version-${version}`);
    mkdirSync(data);
    copyFileSync(certificate, join(data, 'tls.crt'));
    copyFileSync(key, join(data, 'tls.key'));
    symlinkSync(`version-${version}`, join(mount, 'next'));
    renameSync(join(mount, 'next'), join(mount, 'current'));
  };
  put(one.certificate, one.key);
  for (const file of ['tls.crt', 'tls.key']) symlinkSync(join('current', file), join(mount, file));
  return { put, paths: { certificate: join(mount, 'tls.crt'), key: join(mount, 'tls.key') } };
}

describe.each(BACK_ENDS)('%s', (backEnd) => {
  test('files that change are taken over without a restart; an unusable pair leaves the one before', async () => {
    const { put, paths } = mountedSecret(backEnd.replace(':', '-'));
    const identity = checkedIdentity(textOfFile(paths.certificate), textOfFile(paths.key), paths);
    const { api } = new TestService();
    const { server } = createHttpServer({ handler: api, bugs: new BugLog(), forced: backEnd, identity });
    const port = await server.listen('127.0.0.1', 0);
    const told: string[] = [];
    const { watched: files } = watchedTlsFiles(identity, paths, {
      server,
      onRenewed: ({ expiresUs }) => told.push(`renewed ${expiresUs > identity.expiresUs - 1e12}`),
      onFailed: (problem) => told.push(problem),
    });
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect(await asked(port, agent)).toBe('200 one');
    await files.check();
    expect(told).toEqual([]);

    put(two.certificate, two.key);
    await files.check();
    expect(told).toEqual([]);
    await Promise.all([files.check(), files.check()]);
    expect(told.splice(0)).toEqual(['renewed true']);
    expect(await asked(port)).toBe('200 two');
    // Who is connected goes on, with the certificate that was shown to it.
    expect(await asked(port, agent)).toBe('200 one');

    put(one.certificate, two.key);
    await files.check();
    expect(told).toEqual([]);
    for (let i = 0; i < 3; i++) await files.check();
    expect(told.splice(0)).toEqual(['the key is not that of the certificate']);
    expect(await asked(port)).toBe('200 two');
    rmSync(paths.key);
    for (let i = 0; i < 3; i++) await files.check();
    expect(told.splice(0)).toEqual([expect.stringMatching(/^ENOENT/)]);
    writeFileSync(paths.key, 'half a ke');
    await files.check();
    copyFileSync(one.key, paths.key);
    for (let i = 0; i < 2; i++) await files.check();
    expect(told).toEqual(['renewed true']);
    expect(await asked(port)).toBe('200 one');
    expect(files).toMatchObject({ renewalCount: 2, failureCount: 2, isRefused: false });
    agent.destroy();
    await server.close(0);
    await expect(asked(port)).rejects.toThrow();
  });

  test('what is no TLS is closed, and others are served', async () => {
    const identity = checkedIdentity(textOfFile(one.certificate), textOfFile(one.key), one);
    const server = await RunningServer.start(backEnd, new TestService().api, new BugLog(), identity);
    for (const garbage of [
      'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n',
      '\x16\x03\x01\xff\xff',
      'x'.repeat(20_000),
    ]) {
      const connection: RawConnection = server.connect();
      connection.socket.end(Buffer.from(garbage, 'latin1'));
      await connection.closed;
      expect(connection.received).not.toContain('200');
    }
    expect(await asked(server.port)).toBe('200 one');
    await server.server.close(0);
  });
});

test('the service: two settings, by file and reloaded; every mistake is told at the start', async () => {
  const problemsOf = (settings: Record<string, string>) => {
    try {
      readConfig(settings);
    } catch (error) {
      if (error instanceof ConfigError) return error.problems;
    }
    return [];
  };
  expect(problemsOf({ LOGRING_TLS_CERT_FILE: one.certificate })).toEqual([
    'LOGRING_TLS_KEY: is needed with a certificate',
  ]);
  expect(problemsOf({ LOGRING_TLS_CERT: one.certificate, LOGRING_TLS_KEY_FILE: one.key })).toEqual([
    'LOGRING_TLS_CERT: must be PEM; for a path use LOGRING_TLS_CERT_FILE',
  ]);
  expect(problemsOf({ LOGRING_TLS_CERT_FILE: one.certificate, LOGRING_TLS_KEY_FILE: two.key })).toEqual([
    'LOGRING_TLS_CERT, LOGRING_TLS_KEY: the key is not that of the certificate',
  ]);
  const values = { LOGRING_TLS_CERT: textOfFile(one.certificate), LOGRING_TLS_KEY: textOfFile(one.key) };
  expect(problemsOf({ ...values, LOGRING_HTTP_BACKEND: 'uws' })).toHaveLength(1);
  const member = {
    LOGRING_KAFKA_BROKERS: 'kafka:9092',
    LOGRING_CLUSTER_PORT: '4100',
    LOGRING_CLUSTER_KEYS: 'key',
    LOGRING_CLUSTER_URL: 'http://logring-0:4100',
  };
  expect(problemsOf({ ...values, ...member })).toEqual([
    'LOGRING_CLUSTER_URL: must begin with https:// where the cluster port has a certificate (LOGRING_TLS_CERT)',
  ]);
  expect(printConfig(readConfig(values))).toContain('LOGRING_TLS_KEY=********');

  const live = makeCertificate(directory, 'live');
  const service = await startChildService({
    LOGRING_DATA_DIR: join(directory, 'data'),
    LOGRING_TLS_CERT_FILE: live.certificate,
    LOGRING_TLS_KEY_FILE: live.key,
  });
  const port = Number(new URL(service.url).port);
  expect(service.url).toMatch(/^https:/);
  expect(await asked(port)).toBe('200 live');
  renameSync(two.certificate, live.certificate);
  renameSync(two.key, live.key);
  // A connection that was not accepted yet when the port changed hands is reset.
  await eventually(async () => (await asked(port).catch(() => '')) === '200 two');
  // The line comes by a pipe, after what was asked over the socket perhaps.
  await eventually(async () => service.output().includes('TLS: a new certificate is in use'));
  expect(await service.kill('SIGTERM')).toBe(0);
});
