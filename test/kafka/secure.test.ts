/**
 * TLS, passwords, client certificates and rights, as an operator sets them, against a broker that asks for
 * them.
 */

import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { AclOperationTypes, AclPermissionTypes, AclResourceTypes, ResourcePatternTypes } from 'kafkajs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { KafkaConnection } from '../../ingest/kafka/cluster/client.js';
import { KafkaDeadLetters } from '../../ingest/kafka/dead-letter-topic.js';
import { eventually } from '../eventually.js';
import type { Broker } from './broker/broker.js';
import { brokerClassPath, jarsUnavailable, repositoryRoot } from './broker/broker-jars.js';
import { freePort } from './broker/free-port.js';
import { startJarBroker } from './broker/jar-broker.js';
import { describeKafka } from './broker/kafka-suite.js';
import { CLOCK, LogLines, type Member, Rig, uniqueName } from './rig.js';

const run = promisify(execFile);
const VERSION = '4.1';
const STORE_PASSWORD = 'only-for-this-test';
const TOOL_TIMEOUT_MS = 240_000;
/** Certificates and listeners are set up by hand: only a broker from jars lets us. */
const noJars = await jarsUnavailable();

describeKafka('a broker that asks who comes', () => {
  let directory: string;
  let broker: Broker;
  let rig: Rig;
  let secure: KafkaConnection;
  let mutual: KafkaConnection;

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
    const client = join(directory, 'client.pem');
    const clientKey = join(directory, 'client.key');
    const subject = ['-subj', '/CN=logring', '-days', '2'];
    const newKey = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout', clientKey];
    await run('openssl', ['req', '-x509', ...newKey, ...subject, '-out', client], {
      timeout: TOOL_TIMEOUT_MS,
    });
    const port = await freePort();
    const mutualPort = await freePort();
    broker = await startJarBroker({
      version: VERSION,
      properties: (ports) => {
        const own = `PLAINTEXT://127.0.0.1:${ports.client},SECURE://127.0.0.1:${port},MUTUAL://127.0.0.1:${mutualPort}`;
        return {
          listeners: `${own},CONTROLLER://127.0.0.1:${ports.controller}`,
          'advertised.listeners': own,
          'listener.security.protocol.map':
            'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,MUTUAL:SSL',
          'listener.name.secure.sasl.enabled.mechanisms': 'PLAIN,SCRAM-SHA-512',
          'listener.name.secure.plain.sasl.jaas.config':
            'org.apache.kafka.common.security.plain.PlainLoginModule required user_logring="right";',
          'listener.name.secure.scram-sha-512.sasl.jaas.config':
            'org.apache.kafka.common.security.scram.ScramLoginModule required;',
          'listener.name.mutual.ssl.client.auth': 'required',
          'listener.name.mutual.ssl.truststore.type': 'PEM',
          'listener.name.mutual.ssl.truststore.location': client,
          'ssl.keystore.location': store,
          'ssl.keystore.password': STORE_PASSWORD,
          // What has rights of its own is for those who have them; everything else is for all.
          'authorizer.class.name': 'org.apache.kafka.metadata.authorizer.StandardAuthorizer',
          'super.users': 'User:ANONYMOUS',
          'allow.everyone.if.no.acl.found': 'true',
        };
      },
    });
    rig = new Rig(broker.brokers);
    await rig.connect();
    const ca = await readFile(certificate, 'utf8');
    secure = {
      brokers: [`127.0.0.1:${port}`],
      clientId: 'logring-test',
      tls: { ca },
      sasl: { mechanism: 'plain', username: 'logring', password: 'right' },
    };
    mutual = {
      brokers: [`127.0.0.1:${mutualPort}`],
      clientId: 'logring-test',
      tls: { ca, cert: await readFile(client, 'utf8'), key: await readFile(clientKey, 'utf8') },
      sasl: null,
    };
  });

  afterAll(async () => {
    await rig?.close();
    await broker?.stop();
    if (directory !== undefined) await rm(directory, { recursive: true, force: true });
  });

  /** A topic with one record, read over a connection. */
  async function read(connection: KafkaConnection) {
    const topic = uniqueName('secure');
    await rig.createTopic(topic, 1);
    await rig.produce(topic, 0, ['one']);
    return { topic, ...(await rig.start({ topics: [topic], groupId: topic }, connection)) };
  }

  async function isRead({ topic, sink, source }: Awaited<ReturnType<typeof read>>): Promise<void> {
    await eventually(
      () => sink.values(topic).length === 1 && source.status().problem === null,
      () => source.status(),
    );
  }

  /** The status and one line of the log say why it is not read. */
  async function isRefused({ log, source }: Member, problem: RegExp): Promise<void> {
    await eventually(
      () => problem.test(source.status().problem ?? ''),
      () => source.status().problem,
    );
    const said = log.lines.filter(({ level, message }) => level === 'error' && problem.test(message));
    expect(said.length).toBe(1);
  }

  /** Gives a user a right on a resource; from then on nobody else has any. */
  async function grant(user: string, kind: 'topic' | 'group', name: string, operation: AclOperationTypes) {
    const acl = {
      resourceType: kind === 'topic' ? AclResourceTypes.TOPIC : AclResourceTypes.GROUP,
      resourceName: name,
      resourcePatternType: ResourcePatternTypes.LITERAL,
      principal: `User:${user}`,
      host: '*',
      operation,
      permissionType: AclPermissionTypes.ALLOW,
    };
    await rig.admin.createAcls({ acl: [acl] });
  }

  async function setScramPassword(user: string, password: string): Promise<void> {
    const source = join(repositoryRoot(), 'test', 'kafka', 'broker', 'ScramUser.java');
    const java = ['-cp', await brokerClassPath(VERSION), source, broker.brokers.join(','), user, password];
    await run('java', java, { timeout: TOOL_TIMEOUT_MS });
  }

  test.skipIf(noJars !== null)('it is read with a password, and with a client certificate', async () => {
    await isRead(await read(secure));
    await isRead(await read(mutual));
  });

  for (const [name, wrong, problem] of [
    [
      'another password',
      { sasl: { mechanism: 'plain', username: 'logring', password: 'wrong' } },
      /refuse the user logring or its password \(SASL plain\): check LOGRING_KAFKA_SASL_USERNAME/,
    ],
    [
      'a mechanism that is not offered',
      { sasl: { mechanism: 'scram-sha-256', username: 'logring', password: 'right' } },
      /do not offer SASL scram-sha-256 on this port: set LOGRING_KAFKA_SASL_MECHANISM/,
    ],
    [
      'no authority for its certificate',
      { tls: {} },
      /not issued by any authority among .+: set LOGRING_KAFKA_SSL_CA/,
    ],
  ] as const) {
    test.skipIf(noJars !== null)(`it is not read with ${name}, and the status says why`, async () => {
      await isRefused(await read({ ...secure, ...wrong }), problem);
    });
  }

  test.skipIf(noJars !== null)(
    'it is not read without a client certificate, and the status says why',
    async () => {
      await isRefused(
        await read({ ...mutual, tls: { ca: mutual.tls?.ca ?? '' } }),
        /LOGRING_KAFKA_SSL_CERT and LOGRING_KAFKA_SSL_KEY/,
      );
    },
  );

  test.skipIf(noJars !== null)('a SCRAM user who is made later is let in without a restart', async () => {
    const sasl = { mechanism: 'scram-sha-512', username: uniqueName('user'), password: 'later' } as const;
    const member = await read({ ...secure, sasl });
    await isRefused(member, /refuse the user user-\w+ or its password \(SASL scram-sha-512\)/);
    await setScramPassword(sasl.username, sasl.password);
    await isRead(member);
  });

  test.skipIf(noJars !== null)(
    'missing rights are named one by one, and once granted it goes on',
    async () => {
      const topic = uniqueName('topic');
      const groupId = uniqueName('group');
      await rig.createTopic(topic, 1);
      await rig.produce(topic, 0, ['one']);
      await grant('another', 'topic', topic, AclOperationTypes.READ);
      await grant('another', 'group', groupId, AclOperationTypes.READ);
      const member = await rig.start({ topics: [topic], groupId }, secure);
      const onTopic = new RegExp(
        `refuse the user logring the right Read on the topic ${topic}: kafka-acls --add --allow-principal 'User:logring' --operation Read --topic '${topic}'`,
      );
      await isRefused(member, onTopic);
      await grant('logring', 'topic', topic, AclOperationTypes.DESCRIBE);
      await isRefused(member, new RegExp(`the right Read on the group ${groupId}: .+ --group '${groupId}'`));
      // The group lets it in; what it may see of the topic it still may not read.
      member.log.lines.length = 0;
      await grant('logring', 'group', groupId, AclOperationTypes.READ);
      await isRefused(member, onTopic);
      // That the group's right is there may have been told meanwhile.
      member.log.lines.length = 0;
      await grant('logring', 'topic', topic, AclOperationTypes.READ);
      await isRead({ topic, ...member });
      expect(member.log.count('what was refused is allowed now')).toBe(1);
      expect(member.fatal).toEqual([]);
    },
  );

  test.skipIf(noJars !== null)(
    'dead letters that may not be written wait, and say which right they need',
    async () => {
      const topic = uniqueName('letters');
      await rig.createTopic(topic, 1);
      await grant('another', 'topic', topic, AclOperationTypes.WRITE);
      const log = new LogLines();
      const letters = new KafkaDeadLetters({ connection: secure, topic, logger: log, clock: CLOCK });
      const value = Buffer.from('x');
      const origin = { topic: 'from', partition: 0, offset: 0, index: 0 };
      const written = letters.write([{ ...origin, reason: 'not-json', value }]);
      await eventually(
        () => /the right Write and Create on the topic letters-\w+: kafka-acls /.test(letters.problem ?? ''),
        () => letters.problem,
      );
      await grant('logring', 'topic', topic, AclOperationTypes.WRITE);
      await written;
      expect(letters.problem).toBeNull();
      await letters.stop();
    },
  );
});
