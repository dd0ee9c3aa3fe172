/** Builds kafkajs clients from the operator's settings, each on sockets that can be cut at once. */

import { connect as connectTcp, isIP, type Socket } from 'node:net';
import { connect as connectTls } from 'node:tls';
import { type ISocketFactory, Kafka, type KafkaConfig, logLevel, type SASLOptions } from 'kafkajs';
import type { KafkaClock } from '../clock.js';
import {
  CLIENT_FIRST_RETRY_MS,
  CLIENT_MAX_RETRY_MS,
  CLIENT_RETRIES,
  CONNECTION_TIMEOUT_MS,
  REQUEST_TIMEOUT_MS,
} from '../limits.js';
import { ResponseReader } from '../protocol/response-reader.js';
import { CUT_REASON, clientLogCreator, type KafkaLogger } from './client-logger.js';
import { guardResponses, leaveOutLeaderless, spareTimers } from './kafkajs-internals.js';

export interface KafkaSasl {
  readonly mechanism: 'plain' | 'scram-sha-256' | 'scram-sha-512';
  readonly username: string;
  readonly password: string;
}

/**
 * PEM texts; all may be absent: then the brokers' certificates are checked against the system's authorities.
 */
export interface KafkaTls {
  readonly ca?: string;
  readonly cert?: string;
  readonly key?: string;
}

export interface KafkaConnection {
  /** `host:port` each. */
  readonly brokers: readonly string[];
  readonly clientId: string;
  readonly tls: KafkaTls | null;
  readonly sasl: KafkaSasl | null;
}

export interface KafkaClient {
  readonly kafka: Kafka;
  /**
   * Ends every connection of this client at once and refuses new ones: whatever still runs in it ends with an
   * error.
   */
  cut(): void;
}

export const CLIENT_RETRY = {
  initialRetryTime: CLIENT_FIRST_RETRY_MS,
  maxRetryTime: CLIENT_MAX_RETRY_MS,
  retries: CLIENT_RETRIES,
} as const;

/**
 * A client of its own for each use: kafkajs shares what it believes to be committed between the consumers of
 * one client, and a client left behind must be cut without touching its successor.
 */
export function createClient(
  connection: KafkaConnection,
  logger: KafkaLogger,
  clock: KafkaClock,
): KafkaClient {
  const sockets = new CuttableSockets();
  const config: KafkaConfig = {
    brokers: [...connection.brokers],
    clientId: connection.clientId,
    connectionTimeout: CONNECTION_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    retry: CLIENT_RETRY,
    logLevel: logLevel.WARN,
    logCreator: clientLogCreator(logger, clock),
    socketFactory: sockets.factory,
  };
  if (connection.tls !== null) config.ssl = { ...connection.tls };
  if (connection.sasl !== null) config.sasl = connection.sasl as SASLOptions;
  const kafka = new Kafka(config);
  spareTimers(kafka);
  guardResponses(kafka);
  leaveOutLeaderless(kafka);
  return { kafka, cut: () => sockets.cut() };
}

class CuttableSockets {
  #cut = false;
  readonly #open = new Set<Socket>();

  readonly factory: ISocketFactory = ({ host, port, ssl, onConnect }) => {
    if (this.#cut) throw new Error(CUT_REASON);
    const serverName = isIP(host) === 0 ? { servername: host } : {};
    const socket = ssl
      ? connectTls({ host, port, ...serverName, ...ssl }, onConnect)
      : connectPlain(host, port, onConnect);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, 60_000);
    this.#open.add(socket);
    socket.once('close', () => this.#open.delete(socket));
    return socket;
  };

  cut(): void {
    this.#cut = true;
    // With an error: kafkajs hears 'error' and 'end', not 'close', and would wait for answers for ever.
    for (const socket of this.#open) socket.destroy(new Error(CUT_REASON));
  }
}

function connectPlain(host: string, port: number, onConnect: () => void): Socket {
  const reader = new ResponseReader((bytes) => socket.emit('data', bytes));
  const onread = {
    buffer: reader.buffer,
    callback: (byteCount: number) => {
      reader.read(byteCount);
      return true;
    },
  };
  const socket = connectTcp({ host, port, onread }, onConnect);
  return socket;
}
