/** TLS and a password, as an operator sets them, against a broker that asks for both. */

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KafkaConnection } from '../../ingest/kafka/client.js';
import { eventually } from '../eventually.js';
import type { Broker } from './broker/broker.js';
import { jarsUnavailable } from './broker/broker-jars.js';
import { freePort } from './broker/free-port.js';
import { startJarBroker } from './broker/jar-broker.js';
import { describeKafka } from './broker/kafka-suite.js';
import { Rig, uniqueName } from './rig.js';

const run = promisify(execFile);
const STORE_PASSWORD = 'only-for-this-test';
const TOOL_TIMEOUT_MS = 30_000;
/** Certificates and listeners are set up by hand: only a broker from jars lets us. */
const noJars = await jarsUnavailable();

describeKafka('a broker that asks for TLS and a password', () => {
  let directory: string;
  let broker: Broker;
  let rig: Rig;
  let secure: KafkaConnection;

  beforeAll(async () => {
    if (noJars !== null) return;
    directory = await mkdtemp(join(tmpdir(), 'logring-secure-'));
    const store = join(directory, 'broker.p12');
    const certificate = join(directory, 'broker.pem');
    const keytool = (...args: string[]) =>
      run('keytool', [...args, '-keystore', store, '-storepass', STORE_PASSWORD, '-alias', 'broker'], {
        timeout: TOOL_TIMEOUT_MS,
      });
    await keytool(
      '-genkeypair',
      '-keyalg',
      'EC',
      '-dname',
      'CN=broker',
      '-ext',
      'san=ip:127.0.0.1',
      '-storetype',
      'PKCS12',
    );
    await keytool('-exportcert', '-rfc', '-file', certificate);
    const port = await freePort();
    broker = await startJarBroker({
      version: '4.1',
      properties: (ports) => ({
        listeners: `PLAINTEXT://127.0.0.1:${ports.client},CONTROLLER://127.0.0.1:${ports.controller},SECURE://127.0.0.1:${port}`,
        'advertised.listeners': `PLAINTEXT://127.0.0.1:${ports.client},SECURE://127.0.0.1:${port}`,
        'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL',
        'listener.name.secure.sasl.enabled.mechanisms': 'PLAIN',
        'listener.name.secure.plain.sasl.jaas.config':
          'org.apache.kafka.common.security.plain.PlainLoginModule required user_logring="right";',
        'ssl.keystore.location': store,
        'ssl.keystore.password': STORE_PASSWORD,
      }),
    });
    rig = new Rig(broker.brokers);
    await rig.connect();
    secure = {
      brokers: [`127.0.0.1:${port}`],
      clientId: 'logring-test',
      tls: { ca: await readFile(certificate, 'utf8') },
      sasl: { mechanism: 'plain', username: 'logring', password: 'right' },
    };
  });

  afterAll(async () => {
    await rig?.close();
    await broker?.stop();
    if (directory !== undefined) await rm(directory, { recursive: true, force: true });
  });

  test.skipIf(noJars !== null)('is read with them', async () => {
    const topic = uniqueName('secure');
    await rig.createTopic(topic, 1);
    await rig.produce(topic, 0, ['one']);
    const { sink, source } = await rig.start({ topics: [topic], groupId: topic }, secure);
    await eventually(
      () => sink.values(topic).length === 1,
      () => source.status(),
    );
    expect(source.status().problem).toBeNull();
  });

  for (const [name, wrong, problem] of [
    [
      'another password',
      { sasl: { mechanism: 'plain', username: 'logring', password: 'wrong' } },
      /authentication/i,
    ],
    ['no authority for its certificate', { tls: {} }, /self.signed|certificate/i],
  ] as const) {
    test.skipIf(noJars !== null)(`is not read with ${name}, and the status says why`, async () => {
      const topic = uniqueName('refused');
      const { sink, source } = await rig.start({ topics: [topic], groupId: topic }, { ...secure, ...wrong });
      await eventually(
        () => problem.test(source.status().problem ?? ''),
        () => source.status().problem,
      );
      expect(sink.records.size).toBe(0);
    });
  }
});
