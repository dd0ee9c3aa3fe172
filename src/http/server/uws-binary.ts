/**
 * Finds uWebSockets.js' native binary for this very Node and platform. The package's own main file is never
 * loaded: where it has no binary it falls back to an imitation that is broken on newer Nodes.
 */

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';

/** The part of uWebSockets.js that we use, as its documentation describes it. */
export interface Uws {
  App(): UwsApp;
  /** Reads the files at once; throws when it can't use them. */
  SSLApp(options: { readonly cert_file_name: string; readonly key_file_name: string }): UwsApp;
  us_listen_socket_close(listenSocket: UwsListenSocket): void;
  us_socket_local_port(listenSocket: UwsListenSocket): number;
  /** Without it two processes can listen on one port. */
  readonly LIBUS_LISTEN_EXCLUSIVE_PORT: number;
}

export interface UwsListenSocket {
  readonly uwsListenSocket: never;
}

export interface UwsApp {
  any(pattern: string, handler: (response: UwsResponse, request: UwsRequest) => void): UwsApp;
  listen(
    host: string,
    port: number,
    options: number,
    done: (socket: UwsListenSocket | false) => void,
  ): UwsApp;
  /** Closes every connection at once, those with unfinished answers too. */
  close(): UwsApp;
}

/** Valid only during the handler's call. */
export interface UwsRequest {
  getUrl(): string;
  /** undefined when the URL has no `?`. */
  getQuery(): string | undefined;
  getCaseSensitiveMethod(): string;
  forEach(visit: (name: string, value: string) => void): void;
}

/** Throws when used after it ended or was aborted. */
export interface UwsResponse {
  writeStatus(status: string): UwsResponse;
  writeHeader(name: string, value: string): UwsResponse;
  end(body: Uint8Array | string, closeConnection: boolean): UwsResponse;
  /** Ends without a body and without a Content-Length of its own. */
  endWithoutBody(): UwsResponse;
  /**
   * Writes what the socket takes of the rest of the body; says whether it took it, and whether the answer is
   * complete.
   */
  tryEnd(rest: Uint8Array | string, totalBytes: number): [ok: boolean, done: boolean];
  onWritable(continueAt: (bodyOffset: number) => boolean): UwsResponse;
  onAborted(aborted: () => void): UwsResponse;
  onData(take: (piece: ArrayBuffer, isLast: boolean) => void): UwsResponse;
  close(): UwsResponse;
  cork(write: () => void): UwsResponse;
}

const require = createRequire(import.meta.url);
const PACKAGE = 'uWebSockets.js';

/** The loaded binary, or a phrase that says why there isn't one. */
export function loadUws(): Uws | string {
  const fileName = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
  const packageDirs = (require.resolve.paths(PACKAGE) ?? [])
    .map((dir) => join(dir, PACKAGE))
    .filter(existsSync);
  if (packageDirs.length === 0) return 'uWebSockets.js is not installed';
  // The npm alias keeps its binaries in a folder, upstream's own package at its root: an operator may install
  // either.
  const file = packageDirs
    .flatMap((dir) => [join(dir, 'binaries', fileName), join(dir, fileName)])
    .find(existsSync);
  if (file === undefined) return `uWebSockets.js has no ${fileName}`;
  if (!hasGlibc()) return 'uWebSockets.js needs glibc';
  try {
    return require(file) as Uws;
  } catch (error) {
    return `uWebSockets.js does not load: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** The Linux binaries are built for glibc; loaded on another C library they may crash instead of failing. */
function hasGlibc(): boolean {
  if (process.platform !== 'linux') return true;
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return report.header?.glibcVersionRuntime !== undefined;
}
