/** How a command asks a running service. */

import * as z from 'zod';
import { ConfigError } from './config/config-error.js';
import type { Config } from './config.js';
import { urlOf } from './service/service-http.js';

/** What `--help` says of the options that a command takes for it. */
export const SERVICE_OPTIONS_HELP = `  --url URL  the service [where LOGRING_HOST and LOGRING_PORT say]
  --key KEY  a key that may query all projects [the first such of LOGRING_API_KEYS]`;

const refusal = z.object({ error: z.object({ message: z.string() }) });

/** Throws a ConfigError when there is no key. */
export class ServiceClient {
  readonly #url: string;
  readonly #key: string;

  constructor(options: { readonly url?: string; readonly key?: string }, config: Config) {
    const key = options.key ?? config.API_KEYS?.find(({ projects }) => projects === null)?.key;
    if (key === undefined)
      throw new ConfigError(['--key: is needed, or LOGRING_API_KEYS with a key of all projects']);
    this.#url = (options.url ?? urlOf(config, config.HOST, config.PORT)).replace(/\/$/, '');
    this.#key = key;
  }

  /** The answer's JSON. Rejects with a sentence when the service can't be reached or refuses. */
  async ask(method: string, path: string): Promise<unknown> {
    const response = await fetch(`${this.#url}${path}`, {
      method,
      headers: { 'X-API-KEY': this.#key },
    }).catch((error: Error) => {
      throw new Error(`${this.#url}: ${error.cause instanceof Error ? error.cause.message : error.message}`);
    });
    const body: unknown = await response.json().catch(() => null);
    if (response.ok) return body;
    const reason = refusal.safeParse(body).data?.error.message ?? '';
    throw new Error(`${this.#url}: ${response.status} ${reason}`.trimEnd());
  }
}
