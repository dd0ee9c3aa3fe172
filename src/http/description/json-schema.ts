/** Schemas of zod as JSON Schema, draft 2020-12: what comes in, before anything is made of it. */

import { z } from 'zod';
import type { JsonSchema } from './openapi-document.js';

export function jsonSchemaOf(schema: z.ZodType): JsonSchema {
  const { $schema, ...rest } = z.toJSONSchema(schema, { io: 'input' });
  return rest;
}
