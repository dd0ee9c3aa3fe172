/** The files of certificate and key: when they change, the server shows what they hold now. */

import { WatchedFiles } from '../../watched-files.js';
import type { HttpServer } from './server.js';
import { checkedIdentity, type TlsIdentity, type TlsPaths } from './tls-identity.js';

export interface TlsFilesPorts {
  readonly server: HttpServer;
  readonly onRenewed: (identity: TlsIdentity) => void;
  /** Told once for each state of the files that can't be used; the server goes on with what it had. */
  readonly onFailed: (problem: string) => void;
}

export interface TlsFiles {
  readonly watched: WatchedFiles;
  /** When the certificate in use ends. */
  readonly expiresUs: () => number;
}

export function watchedTlsFiles(
  identity: TlsIdentity,
  paths: TlsPaths,
  { server, onRenewed, onFailed }: TlsFilesPorts,
): TlsFiles {
  let { expiresUs } = identity;
  const watched = new WatchedFiles({
    paths: [paths.certificate, paths.key],
    texts: [identity.certificate, identity.key],
    use: ([certificate, key]) => {
      const renewed = checkedIdentity(certificate, key, paths);
      server.renewIdentity(renewed);
      expiresUs = renewed.expiresUs;
      onRenewed(renewed);
    },
    onFailed,
  });
  return { watched, expiresUs: () => expiresUs };
}
