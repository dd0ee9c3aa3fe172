/**
 * Where the tests' Kafka brokers come from, in order of preference: LOGRING_TEST_BROKERS, a Docker engine
 * that answers, Apache Kafka's own jars. Usable outside of a test runner.
 */

import { jarsUnavailable, type KafkaVersion } from './broker-jars.js';
import { dockerAnswers, startDockerBroker } from './docker-broker.js';
import { startJarBroker, startJarBrokers } from './jar-broker.js';
import type { BrokerPorts } from './server-properties.js';

export type { KafkaVersion };

export type Properties = Readonly<Record<string, string>>;

export interface BrokerOptions {
  /** Ignored for brokers given in the environment. */
  readonly version: KafkaVersion;
  /** Broker properties beyond the defaults, which may replace them. */
  readonly properties?: Properties | ((ports: BrokerPorts) => Properties);
  /** It runs for an hour: that of jars may take longer to start if it needs less of the processor then. */
  readonly isForLong?: boolean;
}

export interface Broker {
  /** `host:port`, as clients take them. */
  readonly brokers: string[];
  /** Whether kill, restart and signal work: not for brokers given in the environment. */
  readonly canBeKilled: boolean;
  /** Ends the broker and removes its data, unless that is in a directory of the caller's. */
  stop(): Promise<void>;
  /** SIGKILL; the data stays for restart. */
  kill(): Promise<void>;
  /** Starts the broker again on the same data and ports, after a controlled shutdown if it runs. */
  restart(): Promise<void>;
  /** The same, with what is done to its log directory in between; null where that is not ours to touch. */
  readonly restartWith: ((change: (logDirectory: string) => Promise<void>) => Promise<void>) | null;
  /** Freezes and thaws the broker's process: connected, but silent. */
  signal(name: 'SIGSTOP' | 'SIGCONT'): void | Promise<void>;
}

const GIVEN_BROKERS = (process.env.LOGRING_TEST_BROKERS ?? '').split(',').filter((address) => address !== '');

const dockerIsThere = GIVEN_BROKERS.length === 0 && (await dockerAnswers());

/** Why there is no broker here, or null. */
export const kafkaUnavailable: string | null =
  GIVEN_BROKERS.length > 0 || dockerIsThere ? null : await jarsUnavailable();

/** Brokers given in the environment are one version, whichever it is: the tests run over them once. */
export const KAFKA_VERSIONS: readonly KafkaVersion[] = GIVEN_BROKERS.length > 0 ? ['4.1'] : ['3.9', '4.1'];

export async function startBroker(options: BrokerOptions): Promise<Broker> {
  if (GIVEN_BROKERS.length > 0) return givenBroker();
  if (dockerIsThere) return await startDockerBroker(options);
  return await startJarBroker(options);
}

/**
 * The nodes of a cluster, whose topics have as many replicas unless it is said, where brokers come from jars; one node
 * elsewhere. `home` is where the data of jar brokers is kept for the next start; null: nowhere.
 */
export async function startCluster(
  options: BrokerOptions,
  nodeCount: number,
  home: string | null,
): Promise<Broker[]> {
  if (GIVEN_BROKERS.length > 0 || (await jarsUnavailable()) !== null) return [await startBroker(options)];
  return await startJarBrokers(options, nodeCount, home);
}

function givenBroker(): Broker {
  const refuse = () => Promise.reject(new Error('brokers given in the environment are not ours to end'));
  return {
    brokers: GIVEN_BROKERS,
    canBeKilled: false,
    stop: () => Promise.resolve(),
    kill: refuse,
    restart: refuse,
    restartWith: null,
    signal: refuse,
  };
}
