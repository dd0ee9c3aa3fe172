/** Where the Kafka source logs to, and the client library's own messages on their way there. */

import { type LogEntry, logLevel } from 'kafkajs';
import type { KafkaClock } from '../clock.js';
import { REPEATED_MESSAGE_MS } from '../limits.js';

/** A pino logger fits. */
export interface KafkaLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** The error that cut connections end with: our own doing, and not news. */
export const CUT_REASON = 'the client was stopped';

/** Not news either: dead letters may repeat after an error, which their readers are told. */
const EXPECTED_MESSAGES = new Set([
  'Limiting retries for the idempotent producer may invalidate EoS guarantees',
]);

/**
 * What kafkajs calls an error is mostly a step of its own retries, so all its messages are warnings here:
 * what needs the operator is logged by the source itself. Each distinct message comes once in a while, with
 * how often it was left out before.
 */
export function clientLogCreator(logger: KafkaLogger, clock: KafkaClock): () => (entry: LogEntry) => void {
  const lastByMessage = new Map<string, { loggedMs: number; leftOut: number }>();
  return () => (entry) => {
    if (entry.level > logLevel.WARN) return;
    const { message, timestamp: _, logger: __, stack: ___, ...fields } = entry.log;
    if (EXPECTED_MESSAGES.has(message) || message.includes(CUT_REASON)) return;
    const nowMs = clock.nowMs();
    const key = `${entry.namespace} ${message}`;
    const last = lastByMessage.get(key);
    if (last !== undefined && nowMs - last.loggedMs < REPEATED_MESSAGE_MS) {
      last.leftOut++;
      return;
    }
    forgetOld(lastByMessage, nowMs);
    lastByMessage.set(key, { loggedMs: nowMs, leftOut: 0 });
    const leftOut = last?.leftOut ?? 0;
    logger.warn({ ...fields, from: entry.namespace, leftOut }, `kafka client: ${message}`);
  };
}

/** Messages hold addresses and texts of errors: without this the map would grow with every new one. */
function forgetOld(lastByMessage: Map<string, { loggedMs: number; leftOut: number }>, nowMs: number): void {
  for (const [key, last] of lastByMessage) {
    if (nowMs - last.loggedMs >= 2 * REPEATED_MESSAGE_MS) lastByMessage.delete(key);
  }
}
