/** The command line of a long campaign: a directory that it goes on from, and numbers that have defaults. */

import { parseArgs } from 'node:util';

/** `--directory DIR --name N …`; any other name is refused. */
export function campaignOptions<Numbers extends { readonly [Name in keyof Numbers]: number }>(
  defaults: Numbers,
  defaultDirectory: string,
): Numbers & { readonly directory: string } {
  const names = ['directory', ...Object.keys(defaults)];
  const { values } = parseArgs({
    options: Object.fromEntries(names.map((name) => [name, { type: 'string' as const }])),
  });
  const { directory = defaultDirectory, ...given } = values;
  const numbers = Object.entries(given).map(([name, text]): [string, number] => {
    const number = Number(text);
    if (!(number >= 0)) throw new Error(`--${name} must be a number, not ${text}`);
    return [name, number];
  });
  return { ...defaults, ...Object.fromEntries(numbers), directory };
}

/** Aborts at Ctrl-C or SIGTERM: the campaign stops in order, to go on later. */
export function stopSignal(): AbortSignal {
  const stop = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort());
  return stop.signal;
}
