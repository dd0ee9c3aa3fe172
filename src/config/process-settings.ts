/** The settings of the process: its directory, its memory, its own log. */

import { totalmem } from 'node:os';
import { z } from 'zod';
import { integer, type Setting, text } from './setting.js';

const quarterOfMemoryMb = Math.max(64, Math.floor(totalmem() / 4 / 1024 / 1024));

export const PROCESS_SETTINGS = {
  DATA_DIR: { schema: text.default('./logring-data'), help: 'directory of the store; one process at a time' },
  MEMORY_BUDGET_MB: {
    schema: integer(64, 1_048_576).default(quarterOfMemoryMb),
    help: 'memory budget: ingest pauses at 90 % of it; at most a quarter of it caches row blocks',
    shownDefault: "a quarter of the machine's",
  },
  LOG_LEVEL: {
    schema: z
      .enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'], 'must be a level of pino')
      .default('info'),
    help: 'fatal, error, warn, info, debug, trace or silent',
  },
  LOG_FORMAT: {
    schema: z.enum(['auto', 'json', 'pretty'], 'must be auto, json or pretty').default('auto'),
    help: "format of the process's own log: json, pretty (for people), or auto: pretty on a terminal, else json",
  },
} as const satisfies Record<string, Setting>;
