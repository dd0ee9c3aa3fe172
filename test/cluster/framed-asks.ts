/** What tests of the cluster port and of those who ask it share. */

import { frameHead } from '../../src/cluster/frames.js';
import type { TcpPeerLink } from '../../src/cluster/peer-link.js';
import { BodyPool, TakenBuffer } from '../../src/endpoints/body-pool.js';

/** For a reply that is looked at until the end of a test. */
export const room = () => new TakenBuffer(new BodyPool());

export async function ask(link: TcpPeerLink, ...bytes: number[]): Promise<string> {
  return Buffer.from(await link.ask(Buffer.from(bytes), 30_000, false, room())).toString();
}

export function framed(code: number, number: number, body: Uint8Array): Buffer {
  return Buffer.concat([frameHead({ byteCount: body.length, number, code }), body]);
}
