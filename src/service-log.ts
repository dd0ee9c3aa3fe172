/** The service's own log: JSON, or lines for people. */

import { isatty } from 'node:tty';
import { type Logger, pino } from 'pino';
import type { Config } from './config.js';

const STANDARD_OUTPUT = 1;

/** pino-pretty is loaded only where lines are for people; those are written before the call returns. */
export async function createLog(
  { LOG_FORMAT, LOG_LEVEL: level }: Pick<Config, 'LOG_FORMAT' | 'LOG_LEVEL'>,
  descriptor = STANDARD_OUTPUT,
): Promise<Logger> {
  const options = { name: 'logring', level };
  const isTerminal = isatty(descriptor);
  if (LOG_FORMAT === 'json' || (LOG_FORMAT === 'auto' && !isTerminal))
    return pino(options, pino.destination(descriptor));
  const { prettyFactory } = await import('pino-pretty');
  const pretty = prettyFactory({
    colorize: isTerminal && (process.env.NO_COLOR ?? '') === '',
    ignore: 'pid,hostname,name',
    translateTime: 'SYS:yyyy-mm-dd HH:MM:ss.l',
    singleLine: true,
  });
  const output = pino.destination({ dest: descriptor, sync: true });
  return pino(options, { write: (line) => output.write(pretty(line)) });
}
