/**
 * Finds uWebSockets.js' native binary for this very Node and platform. The package's own main file is never
 * loaded: where it has no binary it falls back to an imitation that is broken on newer Nodes.
 */

import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { HEAD_BYTE_LIMIT } from '../limits.js';

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

/**
 * Who may have a binary, first come, first tried. The first name is upstream's own, so that what an operator
 * installs under it is used; of the second the binaries are upstream's for Node 20 to 25, which need glibc
 * 2.38.
 */
const PACKAGES = ['uWebSockets.js', '@btc-vision/uwebsockets.js'];

export interface UwsBinary {
  readonly uws: Uws;
  /** The package that it is from. */
  readonly origin: string;
}

/** The loaded binary, or a sentence for each package that says why there isn't one. */
export function loadUws(): UwsBinary | string {
  const problems: string[] = [];
  for (const origin of PACKAGES) {
    const loaded = loadFrom(origin);
    if (typeof loaded !== 'string') return { uws: loaded, origin };
    problems.push(loaded);
  }
  return `${problems.join('; ')} (docs/operating.md, HTTP server)`;
}

function loadFrom(name: string): Uws | string {
  const fileName = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
  const packageDirs = (require.resolve.paths(name) ?? []).map((dir) => join(dir, name)).filter(existsSync);
  if (packageDirs.length === 0) return `${name} is not installed`;
  // One keeps its binaries in a folder, others at the root.
  const file = packageDirs
    .flatMap((dir) => [join(dir, 'binaries', fileName), join(dir, fileName)])
    .find(existsSync);
  if (file === undefined) return `${name} has no ${fileName}`;
  if (!hasGlibc()) return `${name} needs glibc`;
  // It is read when the binary is loaded; without it newer ones refuse heads of more than 4 KiB.
  process.env.UWS_HTTP_MAX_HEADERS_SIZE ??= String(HEAD_BYTE_LIMIT);
  try {
    return require(file) as Uws;
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    const needed = /`(GLIBC_[0-9.]+)' not found/.exec(text)?.[1];
    return needed === undefined
      ? `${name} does not load: ${text.split('\n')[0]}`
      : `${name} needs ${needed.replace('GLIBC_', 'glibc ')}`;
  }
}

/** The Linux binaries are built for glibc; loaded on another C library they may crash instead of failing. */
function hasGlibc(): boolean {
  if (process.platform !== 'linux') return true;
  const report = process.report.getReport() as { header?: { glibcVersionRuntime?: string } };
  return report.header?.glibcVersionRuntime !== undefined;
}
