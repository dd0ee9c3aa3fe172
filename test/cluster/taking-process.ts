/**
 * A process that copies a partition into its store, on a disk that kills it at a named point (see fail-point.ts):
 *
 *   node taking-process.js 'before rename 1' <directory> <url of the giver>
 */

import { setEnvironmentData } from 'node:worker_threads';
import { pino } from 'pino';
import { CopyTaker } from '../../src/cluster/copy-taker.js';
import { WIRE_VERSION } from '../../src/cluster/limits.js';
import { TcpPeerLink } from '../../src/cluster/peer-link.js';
import { Peers } from '../../src/cluster/peers.js';
import { Store } from '../../src/store/store.js';
import { SYSTEM_PARTS } from '../../src/store/store-back-ends.js';
import { startStorageWorker } from '../../src/store/thread/storage-link.js';
import { monotonicUs } from '../../src/system-clock.js';
import { Killer, killingDisk, killingStorage } from '../crash/fail-point.js';

const [order, directory, url] = process.argv.slice(2);
setEnvironmentData('order', order);
const worker = new URL('../crash/killed-storage-worker.js', import.meta.url);
const killer = new Killer(order);
const store = await Store.open(directory, 1 << 20, undefined, {
  ...SYSTEM_PARTS,
  disk: killingDisk(SYSTEM_PARTS.disk, killer),
  startStorage: killingStorage((listener) => startStorageWorker(listener, worker), killer),
});

const member = { zone: '', wireVersion: WIRE_VERSION, assigned: [], beside: [] };
const peers = new Peers({
  storeId: store.id,
  zone: '',
  linkTo: (of) => new TcpPeerLink(of, 'key'),
  monotonicUs,
  freshMs: 10_000,
});
peers.update([
  { ...member, storeId: store.id, url: 'http://127.0.0.1:1' },
  { ...member, storeId: 'giver', url },
]);
await peers.poll();

const taker = new CopyTaker({
  peers,
  storeId: store.id,
  topicId: () => '',
  nextOffset: () => 0,
  isReadBeside: () => false,
  directory,
  adopt: async ({ topic, partition }, folder) => {
    await store.adopt(`${topic}/${partition}`, folder, async () => undefined);
    return true;
  },
  logger: pino({ level: 'silent' }),
  monotonicUs,
  after: (delayMs, task) => {
    const timer = setTimeout(task, delayMs);
    return () => clearTimeout(timer);
  },
});
await taker.obtain({ topic: 'edge', partition: 0 });
process.stdout.write(JSON.stringify({ fetched: taker.byteCount, failed: taker.failedCount }));
peers.close();
await store.close();
