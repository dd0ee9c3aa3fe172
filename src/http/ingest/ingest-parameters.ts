/** The parameters of taking logs in. */

import { z } from 'zod';
import { CallParameters, filledText, requiredText } from '../../endpoints/call-parameters.js';

export const ingestCall = new CallParameters(
  {
    source_name: filledText.meta({
      description: 'The log that the entries belong to, by the name of its topic.',
    }),
  },
  (wire) => ({ sourceName: wire.source_name }),
);

const importId = requiredText
  .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 of a-z A-Z 0-9 _ -')
  .meta({ description: 'What the chunks of one imported file have in common, and no other file has.' });
const byteCount = requiredText.regex(/^[0-9]{1,15}$/, 'must be a whole number of bytes').transform(Number);
const digest = requiredText.regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hexadecimal');

/** A POST that is a chunk of an import: `import_id` tells it from others. */
export const importChunkCall = new CallParameters(
  {
    source_name: ingestCall.schema.shape.source_name,
    import_id: importId,
    import_start: byteCount.meta({ description: 'Where in the file, unpacked, the chunk begins.' }),
    import_bytes: byteCount
      .refine((count) => count > 0, 'must be at least 1')
      .meta({ description: 'How many bytes of the file the chunk stands for.' }),
    import_start_digest: z
      .union([digest, z.literal('')], 'must be a SHA-256 in hexadecimal')
      .default('')
      .meta({ description: 'SHA-256 of the file before the chunk; empty where it is the first.' }),
    import_end_digest: digest.meta({ description: 'SHA-256 of the file up to the end of the chunk.' }),
  },
  (wire) => ({
    sourceName: wire.source_name,
    chunk: {
      importId: wire.import_id,
      startByte: wire.import_start,
      endByte: wire.import_start + wire.import_bytes,
      startDigest: wire.import_start_digest,
      endDigest: wire.import_end_digest,
    },
  }),
);

/** A GET that asks how far an import has come. */
export const importStateCall = new CallParameters(
  { source_name: ingestCall.schema.shape.source_name, import_id: importId },
  (wire) => ({ sourceName: wire.source_name, importId: wire.import_id }),
);
