/** Messages between members that are rare and small, as JSON. */

import type * as z from 'zod';
import { PartialError } from '../../engine/partial-format.js';
import { parsedJson } from '../parsed-json.js';

export function writeMessage(message: object): Uint8Array {
  return Buffer.from(JSON.stringify(message));
}

/** Reads messages of a kind; throws a PartialError for bytes that are none. */
export function messageReader<Message>(schema: z.ZodType<Message, unknown>, what: string) {
  return (bytes: Uint8Array): Message => {
    const parsed = schema.safeParse(parsedJson(Buffer.from(bytes).toString()));
    if (!parsed.success) throw new PartialError(`these bytes are not ${what}`);
    return parsed.data;
  };
}
