/** Listening of Node's servers. */

import type { Server } from 'node:net';
import { type BugReporter, ListenError } from './server.js';

export interface ListenAt {
  readonly host: string;
  readonly port: number;
  /** The names of the settings for host and port, for the operator. */
  readonly settings: string;
}

/** Resolves to the port, which is chosen by the system for port 0. Rejects with a ListenError. */
export function listenOn(
  server: Server,
  { host, port, settings }: ListenAt,
  bugs: BugReporter,
): Promise<number> {
  return new Promise((resolve, reject) => {
    const failed = (error: Error): void =>
      reject(new ListenError(`can't listen on ${host}:${port} (${settings}): ${error.message}`));
    server.once('error', failed);
    server.listen({ host, port, exclusive: true }, () => {
      server.off('error', failed);
      server.on('error', (error) => bugs.report(error, 'the listening socket'));
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}
