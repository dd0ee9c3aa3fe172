/** The settings of a KRaft broker for tests, alone or one node of a cluster, and its quiet logging. */

import type { BrokerOptions } from './broker.js';
import type { KafkaVersion } from './broker-jars.js';

export interface BrokerPorts {
  readonly client: number;
  readonly controller: number;
}

/**
 * The test's own properties come last: it may set any. `controllers`: the controller ports of all nodes of the cluster, in
 * the order of their ids, which count from 1. Of an even number the last node is a broker only, as of two controllers
 * neither may go.
 */
export function serverProperties(
  ports: BrokerPorts,
  logDirectory: string,
  bindAddress: string,
  options: BrokerOptions,
  controllers: readonly number[] = [ports.controller],
): Record<string, string> {
  const replicas = String(controllers.length);
  const inSync = String(Math.ceil((controllers.length + 1) / 2));
  const voters = controllers.length % 2 === 0 ? controllers.slice(0, -1) : controllers;
  const isVoter = voters.includes(ports.controller);
  const controllerListener = isVoter ? `,CONTROLLER://127.0.0.1:${ports.controller}` : '';
  return {
    'process.roles': isVoter ? 'broker,controller' : 'broker',
    'node.id': String(controllers.indexOf(ports.controller) + 1),
    'controller.quorum.voters': voters.map((port, i) => `${i + 1}@127.0.0.1:${port}`).join(),
    listeners: `PLAINTEXT://${bindAddress}:${ports.client}${controllerListener}`,
    'advertised.listeners': `PLAINTEXT://127.0.0.1:${ports.client}`,
    'inter.broker.listener.name': 'PLAINTEXT',
    'controller.listener.names': 'CONTROLLER',
    'listener.security.protocol.map': 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
    'log.dirs': logDirectory,
    'default.replication.factor': replicas,
    'min.insync.replicas': inSync,
    'offsets.topic.replication.factor': replicas,
    'offsets.topic.num.partitions': '1',
    'transaction.state.log.replication.factor': replicas,
    'transaction.state.log.min.isr': inSync,
    'transaction.state.log.num.partitions': '1',
    'share.coordinator.state.topic.replication.factor': replicas,
    'share.coordinator.state.topic.min.isr': inSync,
    'group.initial.rebalance.delay.ms': '0',
    // A broker killed and started again is refused until its old session ends.
    'broker.session.timeout.ms': '2000',
    'broker.heartbeat.interval.ms': '500',
    'log.cleaner.dedupe.buffer.size': '2097152',
    'log.cleaner.backoff.ms': '200',
    'log.retention.check.interval.ms': '1000',
    // Tests read the logs of deleted topics no more; a minute's grace would only keep files open.
    'file.delete.delay.ms': '1000',
    ...(typeof options.properties === 'function' ? options.properties(ports) : options.properties),
  };
}

export function propertiesFile(properties: Readonly<Record<string, string>>): string {
  return Object.entries(properties)
    .map(([name, value]) => `${name}=${value}\n`)
    .join('');
}

/** Warnings and worse, and the one line that says that the broker is ready. */
export function loggingFile(version: KafkaVersion): { name: string; text: string; javaOption: string } {
  if (version === '3.9') {
    return {
      name: 'log4j.properties',
      javaOption: '-Dlog4j.configuration=file:',
      text: [
        'log4j.rootLogger=ERROR, out',
        'log4j.appender.out=org.apache.log4j.ConsoleAppender',
        'log4j.appender.out.layout=org.apache.log4j.PatternLayout',
        'log4j.appender.out.layout.ConversionPattern=%p %c %m%n',
        'log4j.logger.kafka.server.KafkaRaftServer=INFO',
        '',
      ].join('\n'),
    };
  }
  return {
    name: 'log4j2.properties',
    javaOption: '-Dlog4j2.configurationFile=',
    text: [
      'appender.out.type=Console',
      'appender.out.name=out',
      'appender.out.layout.type=PatternLayout',
      'appender.out.layout.pattern=%p %c %m%n',
      'rootLogger.level=ERROR',
      'rootLogger.appenderRef.out.ref=out',
      'logger.ready.name=kafka.server.KafkaRaftServer',
      'logger.ready.level=INFO',
      '',
    ].join('\n'),
  };
}
