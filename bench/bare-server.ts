/**
 * A server that does nothing but send the same bytes to every client: what sockets, clients and the machine's
 * scheduler take by themselves, measured like everything else. Started by a bench as a child process; takes
 * the body, or its length, and answers with its port, by messages.
 */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { loadUws } from '../src/http/server/uws-binary.js';

const HOST = '127.0.0.1';

function listen(body: Uint8Array, listening: (port: number) => void): void {
  const binary = loadUws();
  if (typeof binary === 'string') {
    const server = createServer((_, response) => void response.end(body));
    server.listen(0, HOST, () => listening((server.address() as AddressInfo).port));
    return;
  }
  const { uws } = binary;
  uws
    .App()
    // Corked, or what comes with other requests is sent in seven pieces.
    .any('/*', (response) => void response.cork(() => void response.end(body, false)))
    .listen(HOST, 0, uws.LIBUS_LISTEN_EXCLUSIVE_PORT, (socket) => {
      if (socket === false) throw new Error('the bare server cannot listen');
      listening(uws.us_socket_local_port(socket));
    });
}

// The process that started it is gone.
process.once('disconnect', () => process.exit(0));

process.once('message', (body: string | number) => {
  listen(Buffer.from(typeof body === 'string' ? body : 'x'.repeat(body)), (port) => process.send?.(port));
});
