/** Turns the messages of kafkajs into the records of a log source. */

import type { IHeaders, KafkaMessage } from 'kafkajs';
import type { LogRecord } from '../../log-source.js';
import { unreadableReason } from './unreadable-batch.js';

const TIER_HEADER = 'project_tier';

/** In offset order; the fillers of a batch that could not be unpacked are left out. */
export function toRecords(messages: readonly KafkaMessage[]): LogRecord[] {
  const records: LogRecord[] = [];
  for (const message of messages) {
    const unreadable = unreadableReason(message);
    if (unreadable === 'filler') continue;
    records.push({
      offset: Number(message.offset),
      timestampMs: Number(message.timestamp),
      value: message.value,
      projectTier: message.headers === undefined ? null : tierOf(message.headers),
      unreadable,
    });
  }
  return records;
}

/** A header given twice counts with its first value. */
function tierOf(headers: IHeaders): string | null {
  const header = headers[TIER_HEADER];
  const first = Array.isArray(header) ? header[0] : header;
  if (first === undefined || first === null) return null;
  return typeof first === 'string' ? first : first.toString('utf8');
}
