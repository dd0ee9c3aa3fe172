/** The HTTP server over the API of this process: measured, and with TLS where it is configured. */

import { US_PER_SECOND } from '../../engine/time.js';
import { ConfigError } from '../config/config-error.js';
import type { Config } from '../config.js';
import { type AccessLogPorts, loggedHandler } from '../http/access-log.js';
import type { Api } from '../http/api.js';
import type { AnswersInFlight } from '../http/server/answers-in-flight.js';
import { type ChosenServer, createHttpServer, type ServerOptions } from '../http/server/back-ends.js';
import { meteredHandler, type RequestMeter } from '../http/server/request-meters.js';
import type { BackEndName, BugReporter } from '../http/server/server.js';
import { type TlsFiles, watchedTlsFiles } from '../http/server/tls-files.js';
import { checkedIdentity, type TlsIdentity } from '../http/server/tls-identity.js';
import { loadUws } from '../http/server/uws-binary.js';
import type { Platform } from './platform.js';

export interface ServiceHttpPorts {
  readonly config: Config;
  readonly platform: Platform;
  readonly api: Api;
  readonly inFlight: AnswersInFlight;
  readonly meter: RequestMeter;
  readonly bugs: BugReporter;
  /** Told of a certificate that is shown from now on. */
  readonly onRenewed: (identity: TlsIdentity) => void;
}

export interface ServiceHttp extends ChosenServer {
  /** null without TLS, and where certificate and key don't come from files. */
  readonly tlsFiles: TlsFiles | null;
}

const BACK_ENDS: Readonly<Record<string, BackEndName>> = { uws: 'uWebSockets.js', node: 'node:http' };

export function createServiceHttp({
  config,
  platform,
  api,
  inFlight,
  meter,
  bugs,
  onRenewed,
}: ServiceHttpPorts): ServiceHttp {
  const { monotonicUs } = platform.clock;
  const options = serverOptions(config);
  const { identity } = options;
  const chosen = createHttpServer({
    ...options,
    handler: api,
    bugs,
    inFlight,
    observe: (handler) => {
      const metered = meteredHandler(handler, meter, (path) => api.routeOf(path), monotonicUs);
      return config.ACCESS_LOG ? loggedHandler(metered, accessLog(api, platform)) : metered;
    },
  });
  return {
    ...chosen,
    tlsFiles: identity === undefined ? null : tlsFilesOf(identity, chosen, platform, onRenewed),
  };
}

/** What all servers of this process have in common. Throws a ConfigError where the one that was asked for does not load. */
export function serverOptions(config: Config): Pick<ServerOptions, 'forced' | 'identity'> {
  const identity = identityOf(config);
  const forced = BACK_ENDS[config.HTTP_BACKEND];
  if (forced === 'uWebSockets.js' && (identity === null || identity.paths !== null)) {
    const binary = loadUws();
    if (typeof binary === 'string')
      throw new ConfigError([`LOGRING_HTTP_BACKEND: uws does not load here, set auto or node: ${binary}`]);
  }
  return { ...(forced === undefined ? {} : { forced }), ...(identity === null ? {} : { identity }) };
}

/** Its lines are written whatever the level of the service's own log. */
function accessLog(api: Api, { logger, clock }: Platform): AccessLogPorts {
  const lines = logger.child({}, { level: 'info' });
  return {
    write: (line) => lines.info(line, 'request'),
    keyTagOf: (request) => api.keyTagOf(request),
    monotonicUs: clock.monotonicUs,
  };
}

/** Where a port of this process is reached, such as `http://127.0.0.1:4000`. */
export function urlOf({ TLS_CERT }: Config, host: string, port: number): string {
  const scheme = TLS_CERT === undefined ? 'http' : 'https';
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** The configuration has been checked: the two go together. */
function identityOf({ TLS_CERT, TLS_KEY, files }: Config): TlsIdentity | null {
  if (TLS_CERT === undefined || TLS_KEY === undefined) return null;
  const { TLS_CERT: certificate, TLS_KEY: key } = files;
  const paths =
    certificate === undefined || key === undefined ? null : { certificate: certificate.path, key: key.path };
  return checkedIdentity(TLS_CERT, TLS_KEY, paths);
}

function tlsFilesOf(
  identity: TlsIdentity,
  { server }: ChosenServer,
  { logger, clock }: Platform,
  onRenewed: (identity: TlsIdentity) => void,
): TlsFiles | null {
  const warnIfExpired = ({ expiresUs }: TlsIdentity) => {
    if (expiresUs < clock.nowUs())
      logger.warn({ expired: dateText(expiresUs) }, 'TLS: the certificate has expired; clients refuse it');
  };
  warnIfExpired(identity);
  if (identity.paths === null) return null;
  return watchedTlsFiles(identity, identity.paths, {
    server,
    onRenewed: (renewed) => {
      logger.info({ expires: dateText(renewed.expiresUs) }, 'TLS: a new certificate is in use');
      warnIfExpired(renewed);
      onRenewed(renewed);
    },
    onFailed: (problem) =>
      logger.error(
        { problem, ...identity.paths },
        'TLS: the new certificate and key are not usable; the ones before stay in use',
      ),
  });
}

function dateText(timeUs: number): string {
  return new Date(Math.floor((timeUs / US_PER_SECOND) * 1000)).toISOString();
}
