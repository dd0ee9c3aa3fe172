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

export interface TlsFigures {
  readonly expiresUs: number;
  readonly renewalCount: number;
  readonly failureCount: number;
  /** Whether the files hold something that can't be used. */
  readonly isRefused: boolean;
}

export class TlsFiles {
  readonly #files: WatchedFiles;
  #identity: TlsIdentity;

  constructor(identity: TlsIdentity, paths: TlsPaths, { server, onRenewed, onFailed }: TlsFilesPorts) {
    this.#identity = identity;
    this.#files = new WatchedFiles({
      paths: [paths.certificate, paths.key],
      texts: [identity.certificate, identity.key],
      use: ([certificate, key]) => {
        const renewed = checkedIdentity(certificate, key, paths);
        server.renewIdentity(renewed);
        this.#identity = renewed;
        onRenewed(renewed);
      },
      onFailed,
    });
  }

  figures(): TlsFigures {
    const { renewalCount, failureCount, isRefused } = this.#files;
    return { expiresUs: this.#identity.expiresUs, renewalCount, failureCount, isRefused };
  }

  /** To be called every few seconds. */
  check(): Promise<void> {
    return this.#files.check();
  }
}
