/**
 * A process that asks a member for large replies, all at once, and then for a small one, and says what it read:
 *
 *   node asking-process.js <url of the member> <first byte of a question> <how many>
 */

import { TcpPeerLink } from '../../src/cluster/peer-link.js';
import { BodyPool, TakenBuffer } from '../../src/endpoints/body-pool.js';

const [url, first, count] = process.argv.slice(2);
const LIMIT_MS = 60_000;
const room = () => new TakenBuffer(new BodyPool());

const link = new TcpPeerLink(url, 'new-key');
const large = await Promise.all(
  Array.from({ length: Number(count) }, async (_, letter) => {
    const bytes = await link.ask(Uint8Array.of(Number(first), letter), LIMIT_MS, false, room());
    return { byteCount: bytes.length, isSame: bytes.every((byte) => byte === letter) };
  }),
);
const small = Buffer.from(await link.ask(Buffer.from('x'), LIMIT_MS, false, room())).toString();
process.stdout.write(JSON.stringify({ large, small }));
link.close();
