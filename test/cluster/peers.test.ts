/** Who is taken for another member, and what is told of those that do not answer. */

import { expect, test } from 'vitest';
import { writeHoldings } from '../../src/cluster/holdings.js';
import { ABSENT_MS, SILENT_TIMES, WIRE_VERSION } from '../../src/cluster/limits.js';
import { Peers, type PeersPorts } from '../../src/cluster/peers.js';
import { NO_COPIES } from './no-copies.js';

/** Members that answer nothing but, where that is given, what they hold. */
function namedPeers(
  holdings: () => Promise<Uint8Array> = () => expect.unreachable('nobody is polled'),
  onSilent?: PeersPorts['onSilent'],
): { peers: Peers; closed: string[]; clock: { nowUs: number } } {
  const closed: string[] = [];
  const clock = { nowUs: 0 };
  const peers = new Peers({
    storeId: 'own',
    zone: '',
    linkTo: (url) => ({
      ...NO_COPIES,
      ask: () => expect.unreachable('no question is asked'),
      holdings,
      close: () => closed.push(url),
    }),
    monotonicUs: () => clock.nowUs,
    freshMs: 10_000,
    onSilent,
  });
  return { peers, closed, clock };
}

const MEMBER = { zone: '', wireVersion: WIRE_VERSION, assigned: [], beside: [] };
const OWN = { ...MEMBER, storeId: 'own', url: 'http://own:1' };

test('a member that its group has no longer is kept for a while, but not beside another at its address', () => {
  const { peers, closed, clock } = namedPeers();
  const ids = () => [...peers.all()].map(({ storeId }) => storeId);
  peers.update([
    OWN,
    { ...MEMBER, storeId: 'a', url: 'http://a:1' },
    { ...MEMBER, storeId: 'b', url: 'http://b:1' },
  ]);
  clock.nowUs += 1_000;
  peers.update([OWN, { ...MEMBER, storeId: 'a-with-another-disk', url: 'http://a:1' }]);
  expect(ids()).toEqual(['b', 'a-with-another-disk']);
  expect(closed).toEqual(['http://a:1']);
  clock.nowUs += ABSENT_MS * 1000;
  peers.update([OWN, { ...MEMBER, storeId: 'a-with-another-disk', url: 'http://a:1' }]);
  expect(ids()).toEqual(['a-with-another-disk']);
});

test('a member that its group has no longer is kept for as long as it answers', async () => {
  const { peers, clock } = namedPeers(async () => writeHoldings({ topics: [], copies: [] }));
  peers.update([OWN, { ...MEMBER, storeId: 'a', url: 'http://a:1' }]);
  for (const isThere of [true, false]) {
    clock.nowUs += ABSENT_MS * 1000;
    if (isThere) await peers.poll();
    peers.update([OWN]);
    expect([...peers.all()]).toHaveLength(isThere ? 1 : 0);
  }
});

test("who was at this process's own address before it is no other member", () => {
  const { peers } = namedPeers();
  peers.update([{ ...OWN, storeId: 'the-disk-before' }]);
  expect([...peers.all()]).toHaveLength(1);
  peers.update([{ ...OWN, storeId: 'the-disk-before' }, OWN]);
  expect([...peers.all()]).toHaveLength(0);
  expect(peers.problem).toMatch(/LOGRING_CLUSTER_URL must differ/);
  peers.update([OWN]);
  expect(peers.problem).toBeNull();
});

test('a member that speaks another version from now on is not asked any more', () => {
  const { peers, closed } = namedPeers();
  const other = { ...MEMBER, storeId: 'a', url: 'http://a:1' };
  peers.update([OWN, other]);
  peers.update([OWN, { ...other, wireVersion: WIRE_VERSION + 1 }]);
  expect([...peers.all()]).toEqual([]);
  expect(closed).toEqual(['http://a:1']);
  expect(peers.problem).toMatch(/another version/);
});

test('of a member that is silent the reason is told once, and that it answers again', async () => {
  let error: Error | null = new Error('connect ECONNREFUSED');
  const told: string[] = [];
  const { peers, clock } = namedPeers(
    async () => {
      clock.nowUs += 1_000;
      if (error !== null) throw error;
      return writeHoldings({ topics: [], copies: [] });
    },
    (url, why) => told.push(`${url}: ${why}`),
  );
  peers.update([OWN, { ...MEMBER, storeId: 'other', url: 'http://other:1' }]);
  for (let poll = 0; poll < SILENT_TIMES - 1; poll++) await peers.poll();
  expect(told).toEqual([]);
  for (let poll = 0; poll < 3; poll++) await peers.poll();
  expect(told).toEqual(['http://other:1: connect ECONNREFUSED']);
  error = null;
  for (let poll = 0; poll < 2; poll++) await peers.poll();
  expect(told).toEqual(['http://other:1: connect ECONNREFUSED', 'http://other:1: null']);
  peers.close();
});
