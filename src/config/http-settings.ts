/** The settings of HTTP: where it listens, who may ask, what is cached. */

import { z } from 'zod';
import { ENDPOINTS } from '../endpoints/list.js';
import type { ApiKey } from '../http/auth.js';
import { checkedIdentity } from '../http/server/tls-identity.js';
import {
  flag,
  integer,
  list,
  needs,
  needsPem,
  type Setting,
  type SettingFiles,
  text,
  type Values,
} from './setting.js';

/** A key may end in `=`, as base64 does: `a==` is a key, `a===p` that key limited to p. */
const KEY = /^(?<key>[\x21-\x3c\x3e-\x7e]+=*)(?:=(?<projects>[^=]+))?$/;

function keyList(form: string) {
  return z.string().transform((value, context): ApiKey[] => {
    const parts = list(value);
    return parts.flatMap((part, i) => {
      const { key, projects } = KEY.exec(part)?.groups ?? {};
      const names = projects?.split('|') ?? null;
      if (key !== undefined && names?.includes('') !== true) return [{ key, projects: names }];
      // The part itself is a secret.
      const which = parts.length === 1 ? '' : `; number ${i + 1} is not`;
      context.addIssue(
        `must be a comma-separated list of ${form}, keys in printable ASCII, with = at their end only${which}`,
      );
      return [];
    });
  });
}

export const apiKeys = keyList('key or key=projectA|projectB');
export const ingestKeys = keyList('keys').refine(
  (keys) => keys.every(({ projects }) => projects === null),
  'a key that is limited to projects may not post logs',
);

const origins = z.string().transform((value, context): string[] => {
  const parts = list(value);
  if (
    !parts.every((origin) => origin === '*' || (URL.canParse(origin) && new URL(origin).origin === origin))
  ) {
    context.addIssue('must be a comma-separated list of origins such as https://example.com, or *');
  }
  return parts;
});

const uuid = z.guid('must be a UUID');

type IdSetting = (typeof ENDPOINTS)[number]['idSetting'];
type IdSettings = Readonly<Record<IdSetting, { schema: z.ZodDefault<typeof uuid>; help: string }>>;

/** An id for each endpoint. */
function idSettings(): IdSettings {
  return Object.fromEntries(
    ENDPOINTS.map(({ name, id, idSetting }) => [
      idSetting,
      { schema: uuid.default(id), help: `UUID of ${name}` },
    ]),
  ) as IdSettings;
}

export const HTTP_SETTINGS = {
  HOST: { schema: text.default('127.0.0.1'), help: 'address that HTTP listens on' },
  PORT: { schema: integer(0, 65535).default(4000), help: 'port that HTTP listens on; 0 is any free one' },
  HTTP_BACKEND: {
    schema: z.enum(['auto', 'uws', 'node'], 'must be auto, uws or node').default('auto'),
    help: 'HTTP server: uws (uWebSockets.js), node, or whichever loads',
  },
  TLS_CERT: {
    schema: text.optional(),
    help: 'certificate with its chain, PEM: HTTPS instead of HTTP; given as LOGRING_TLS_CERT_FILE it is reloaded when it changes; the native server takes it only from a file',
  },
  TLS_KEY: {
    schema: text.optional(),
    help: 'private key of the certificate, PEM; _FILE as above',
    secret: true,
  },
  API_KEYS: {
    schema: apiKeys.optional(),
    help: 'comma-separated keys that may query; given as LOGRING_API_KEYS_FILE they are reloaded when it changes',
    shownDefault: 'made at start and printed',
    secret: true,
  },
  INGEST_KEYS: {
    schema: ingestKeys.optional(),
    help: 'comma-separated keys that may post logs, see how far an import is, see gaps and holds and acknowledge them; if it is set, the keys of LOGRING_API_KEYS can no longer do this; _FILE as above',
    shownDefault: 'those of LOGRING_API_KEYS without projects',
    secret: true,
  },
  CONSOLE: { schema: flag.default(true), help: 'the web console at /; false turns it off' },
  SLOW_QUERY_MS: {
    schema: integer(0, 86_400_000).optional(),
    help: 'a warning in the log for each query that takes at least so many ms, with where its time went; 0 logs every query',
    shownDefault: 'off',
  },
  ACCESS_LOG: { schema: flag.default(false), help: 'a line in the log for each request, the key as a tag' },
  KEY_REQUESTS_PER_SECOND: {
    schema: integer(0, 1_000_000).default(0),
    help: 'requests a second that each key may make, beyond them 429; 0: no limit',
  },
  CORS_ORIGINS: { schema: origins.optional(), help: 'comma-separated origins whose pages may call, or *' },
  CACHE_SECONDS: { schema: integer(0, 86400).default(900), help: 'how long a result is cached; 0: no cache' },
  CACHE_WARM_SECONDS: {
    schema: integer(0, 86400).default(300),
    help: 'how often a cached result is computed again; 0: never',
  },
  FRESH_MS: {
    schema: integer(3000, 86_400_000).default(10_000),
    help: 'an answer that is at least so many ms behind its log when it is computed says in Logring-Stale-Seconds how old it is',
  },
  MAX_STALENESS_SECONDS: {
    schema: integer(0, 31_536_000).default(0),
    help: 'age above which an answer is a 503 instead; 0: never',
  },
  ...idSettings(),
} as const satisfies Record<string, Setting>;

/** `files`: what came from files. */
export function httpContradictions(config: Values<typeof HTTP_SETTINGS>, files: SettingFiles): string[] {
  return [...tlsContradictions(config, files), ...idContradictions(config)];
}

function tlsContradictions(
  { TLS_CERT: certificate, TLS_KEY: key, HTTP_BACKEND: backEnd }: Values<typeof HTTP_SETTINGS>,
  files: SettingFiles,
): string[] {
  const problems = [
    ...needs(certificate, 'TLS_KEY', key, 'is needed with a certificate'),
    ...needs(key, 'TLS_CERT', certificate, 'is needed with a key'),
    ...needsPem('TLS_CERT', certificate, files.TLS_CERT?.path),
    ...needsPem('TLS_KEY', key, files.TLS_KEY?.path),
  ];
  if (certificate === undefined || key === undefined || problems.length > 0) return problems;
  if (backEnd === 'uws' && (files.TLS_CERT === undefined || files.TLS_KEY === undefined)) {
    problems.push(
      'LOGRING_HTTP_BACKEND: uws takes certificate and key from files only: LOGRING_TLS_CERT_FILE, LOGRING_TLS_KEY_FILE',
    );
  }
  try {
    checkedIdentity(certificate, key, null);
  } catch (error) {
    problems.push(`LOGRING_TLS_CERT, LOGRING_TLS_KEY: ${(error as Error).message}`);
  }
  return problems;
}

function idContradictions(config: Values<typeof HTTP_SETTINGS>): string[] {
  const settings = ENDPOINTS.map(({ idSetting }) => idSetting);
  // Those that are not valid are told already.
  const ids = settings.flatMap((setting) => config[setting]?.toLowerCase() ?? []);
  if (new Set(ids).size === ids.length) return [];
  return [`${settings.map((setting) => `LOGRING_${setting}`).join(', ')}: must be different UUIDs`];
}
