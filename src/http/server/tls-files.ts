/**
 * Looks whether the files of certificate and key have changed, and has the server show what they hold now. It
 * reads them each time instead of watching: that sees every way of replacing a file, links that are pointed
 * elsewhere included, on every file system.
 */

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
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
}

export class TlsFiles {
  readonly #paths: TlsPaths;
  readonly #ports: TlsFilesPorts;
  #identity: TlsIdentity;
  #shownDigest: string;
  /** What could not be used when it was last looked at, and what of that has been told. */
  #suspect: string | null = null;
  #told: string | null = null;
  #isLooking = false;
  #renewalCount = 0;
  #failureCount = 0;

  constructor(identity: TlsIdentity, paths: TlsPaths, ports: TlsFilesPorts) {
    this.#identity = identity;
    this.#paths = paths;
    this.#ports = ports;
    this.#shownDigest = digestOf(identity.certificate, identity.key);
  }

  figures(): TlsFigures {
    return {
      expiresUs: this.#identity.expiresUs,
      renewalCount: this.#renewalCount,
      failureCount: this.#failureCount,
    };
  }

  /** To be called every few seconds; does nothing while an earlier call is under way. */
  async check(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      await this.#renewIfChanged();
    } finally {
      this.#isLooking = false;
    }
  }

  async #renewIfChanged(): Promise<void> {
    let digest = 'unread';
    try {
      const certificate = (await readFile(this.#paths.certificate, 'utf8')).trim();
      const key = (await readFile(this.#paths.key, 'utf8')).trim();
      digest = digestOf(certificate, key);
      if (digest !== this.#shownDigest) {
        const identity = checkedIdentity(certificate, key, this.#paths);
        this.#ports.server.renewIdentity(identity);
        this.#identity = identity;
        this.#shownDigest = digest;
        this.#renewalCount += 1;
        this.#ports.onRenewed(identity);
      }
      this.#suspect = null;
      this.#told = null;
    } catch (error) {
      this.#noteFailure(`${digest} ${(error as Error).message}`, (error as Error).message);
    }
  }

  /** The two files are not replaced in one instant: only what is wrong at two looks on end is told. */
  #noteFailure(state: string, problem: string): void {
    const isSettled = state === this.#suspect;
    this.#suspect = state;
    if (!isSettled || state === this.#told) return;
    this.#told = state;
    this.#failureCount += 1;
    this.#ports.onFailed(problem);
  }
}

function digestOf(certificate: string, key: string): string {
  return createHash('sha256').update(certificate).update('\0').update(key).digest('hex');
}
