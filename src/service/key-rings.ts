/** The keys that may query and those that may post: made at the start, and renewed when their files change. */

import { randomBytes } from 'node:crypto';
import { apiKeys, ingestKeys } from '../config/http-settings.js';
import type { Config } from '../config.js';
import { type ApiKey, KeyRing } from '../http/auth.js';
import { RequestPaces } from '../http/request-pace.js';
import { WatchedFiles } from '../watched-files.js';
import type { Platform } from './platform.js';

export interface KeyRings {
  readonly query: KeyRing;
  /** The same where no others are configured. */
  readonly ingest: KeyRing;
  readonly files: readonly KeyFile[];
}

export interface KeyFile {
  /** The setting that names it. */
  readonly setting: string;
  readonly watched: WatchedFiles;
}

export function createKeyRings(config: Config, platform: Platform): KeyRings {
  const { API_KEYS, INGEST_KEYS, KEY_REQUESTS_PER_SECOND, files } = config;
  const paces = KEY_REQUESTS_PER_SECOND === 0 ? null : new RequestPaces(KEY_REQUESTS_PER_SECOND);
  const query = new KeyRing(API_KEYS ?? [madeKey(platform)], paces);
  const ingest = INGEST_KEYS === undefined ? query : new KeyRing(INGEST_KEYS, paces);
  const keyFiles: KeyFile[] = [];
  const watch = (
    name: 'API_KEYS' | 'INGEST_KEYS',
    ring: KeyRing,
    schema: typeof apiKeys | typeof ingestKeys,
  ) => {
    const file = files[name];
    if (file === undefined) return;
    const setting = `LOGRING_${name}_FILE`;
    const { path, text } = file;
    const watched = new WatchedFiles({
      paths: [path],
      texts: [text],
      use: ([changed]) => {
        const { success, data, error } = schema.safeParse(changed);
        if (!success) throw new Error(error.issues[0].message);
        ring.renew(data);
        platform.logger.info(
          { setting, path, keys: data.length },
          'the keys of a file that changed are in use',
        );
      },
      onFailed: (problem) =>
        platform.logger.error(
          { setting, path, problem },
          'the file of keys is not usable any more; the keys before stay in use',
        ),
    });
    keyFiles.push({ setting, watched });
  };
  watch('API_KEYS', query, apiKeys);
  watch('INGEST_KEYS', ingest, ingestKeys);
  return { query, ingest, files: keyFiles };
}

function madeKey(platform: Platform): ApiKey {
  const key = randomBytes(24).toString('base64url');
  platform.announceKey(key);
  return { key, projects: null };
}
