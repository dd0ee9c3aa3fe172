/** A broker in a container, where a Docker engine answers. */

import { connect } from 'node:net';
import { GenericContainer, getContainerRuntimeClient, type StartedTestContainer, Wait } from 'testcontainers';
import type { Broker, BrokerOptions } from './broker.js';
import { releaseOf } from './broker-jars.js';
import { freePort } from './free-port.js';
import { serverProperties } from './server-properties.js';

const PROBE_TIMEOUT_MS = 2_000;
const START_TIMEOUT_MS = 120_000;

/** Asks the engine itself: a Docker command without an engine behind it does not help. */
export async function dockerAnswers(): Promise<boolean> {
  const host = process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock';
  const url = new URL(host);
  const socket =
    url.protocol === 'unix:'
      ? connect(url.pathname)
      : connect(Number(url.port === '' ? '2375' : url.port), url.hostname);
  return await new Promise<boolean>((resolve) => {
    const answer = (reachable: boolean) => {
      socket.destroy();
      resolve(reachable);
    };
    socket.setTimeout(PROBE_TIMEOUT_MS, () => answer(false));
    socket.once('error', () => answer(false));
    socket.once('data', (data) => answer(data.toString('latin1').startsWith('HTTP/1.1 200')));
    socket.write('GET /_ping HTTP/1.1\r\nHost: docker\r\nConnection: close\r\n\r\n');
  });
}

/** The same port inside and outside, so that the address that the broker advertises is right for both. */
export async function startDockerBroker(options: BrokerOptions): Promise<Broker> {
  const ports = { client: await freePort(), controller: await freePort() };
  const properties = serverProperties(ports, '/tmp/kafka-logs', '0.0.0.0', options);
  const environment: Record<string, string> = {};
  for (const [name, value] of Object.entries(properties)) {
    environment[`KAFKA_${name.toUpperCase().replaceAll('.', '_')}`] = value;
  }
  const container = await new GenericContainer(`apache/kafka:${releaseOf(options.version)}`)
    .withExposedPorts({ container: ports.client, host: ports.client })
    .withEnvironment(environment)
    .withWaitStrategy(Wait.forLogMessage(/Kafka Server started/))
    .withStartupTimeout(START_TIMEOUT_MS)
    .start();
  return new DockerBroker(container, ports.client);
}

class DockerBroker implements Broker {
  readonly brokers: string[];
  readonly canBeKilled = true;
  readonly #container: StartedTestContainer;

  constructor(container: StartedTestContainer, port: number) {
    this.#container = container;
    this.brokers = [`127.0.0.1:${port}`];
  }

  async kill(): Promise<void> {
    const client = await getContainerRuntimeClient();
    await client.container.getById(this.#container.getId()).kill();
  }

  readonly restartWith = null;

  async restart(): Promise<void> {
    await this.#container.restart({ timeout: START_TIMEOUT_MS });
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): Promise<void> {
    return getContainerRuntimeClient().then(async (client) => {
      const container = client.container.getById(this.#container.getId());
      await (name === 'SIGSTOP' ? container.pause() : container.unpause());
    });
  }

  async stop(): Promise<void> {
    await this.#container.stop();
  }
}
