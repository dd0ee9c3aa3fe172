import { copyBytes, type LazyBytes } from '../ingest/embedded-log/durable-log.js';

/** A copy. */
export function wholeBytes(value: Uint8Array | LazyBytes): Uint8Array {
  const whole = new Uint8Array(value.length);
  copyBytes(value, whole, 0);
  return whole;
}
