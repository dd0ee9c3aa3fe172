/** `logring dead-letters`: prints what a running service keeps of entries that it could not use. */

import { parseArgs } from 'node:util';
import { z } from 'zod';
import { ConfigError } from './config/config-error.js';
import { readConfig } from './config.js';
import { DEAD_LETTERS_PATH } from './http/dead-letters-api.js';
import { SERVICE_OPTIONS_HELP, ServiceClient } from './service-client.js';

const HELP = `Usage: logring dead-letters [--url URL] [--key KEY]

Prints the dead letters of a running service that takes logs by POST, one JSON object a line, the newest first: its
time, topic, reason, how many entries it is of, and the first of them. With Kafka they are in a topic of Kafka.

${SERVICE_OPTIONS_HELP}

Exit codes: 0 all were printed; 1 the service could not be asked; 2 wrong arguments or configuration.
`;

const page = z.object({ letters: z.array(z.unknown()), next: z.string().nullable() });

/** The exit code. */
export async function runDeadLetters(
  args: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Promise<number> {
  if (args.includes('--help')) {
    process.stdout.write(HELP);
    return 0;
  }
  const service = new ServiceClient(optionsOf(args), readConfig(environment));
  try {
    for (let before: string | null = ''; before !== null; before = await printPage(service, before));
    return 0;
  } catch (error) {
    process.stderr.write(`logring dead-letters: ${(error as Error).message}\n`);
    return 1;
  }
}

/** Returns what the next page goes on behind; null after the last. */
async function printPage(service: ServiceClient, before: string): Promise<string | null> {
  const query = new URLSearchParams(before === '' ? {} : { before });
  const { letters, next } = page.parse(await service.ask('GET', `${DEAD_LETTERS_PATH}?${query}`));
  for (const letter of letters) process.stdout.write(`${JSON.stringify(letter)}\n`);
  return next;
}

function optionsOf(args: readonly string[]): { readonly url?: string; readonly key?: string } {
  const option = { type: 'string' } as const;
  try {
    return parseArgs({ args: [...args], options: { url: option, key: option } }).values;
  } catch (error) {
    throw new ConfigError([`${(error as Error).message} (see logring dead-letters --help)`]);
  }
}
