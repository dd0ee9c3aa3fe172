/** Names that members know of together: over HTTP, of a zone's members added up, of two zones not counted twice. */

import { afterAll, beforeAll, expect, test } from 'vitest';
import { PartialError } from '../../engine/partial-format.js';
import { ClusterListener } from '../../src/cluster/cluster-listener.js';
import { MemberNames } from '../../src/cluster/member-names.js';
import { Peer } from '../../src/cluster/peer.js';
import { TcpPeerLink } from '../../src/cluster/peer-link.js';
import { Unavailable } from '../../src/endpoints/refusal.js';
import { KeyRing } from '../../src/http/auth.js';
import type { Names } from '../../src/http/console/console-api.js';

const NOW_US = 1_795_000_000_000_000;
const TIMEOUT_MS = 60_000;

/** What a member knows: by project its functions, with their counts. */
type Known = Readonly<Record<string, Readonly<Record<string, number>>>>;

function namesOf(known: Known): Names {
  return {
    projects: async (_, limit) => Object.keys(known).slice(0, limit),
    functions: async (project, _, limit) =>
      Object.entries(known[project] ?? {})
        .map(([id, count]) => ({ id, count }))
        .slice(0, limit),
  };
}

const busy: Names = {
  projects: () => {
    throw new Unavailable('other lists are being made', 1);
  },
  functions: () => Promise.reject(new Unavailable('other lists are being made', 1)),
};

const listeners: ClusterListener[] = [];
const peers: Peer[] = [];
const bugs: unknown[] = [];

async function member(zone: string, own: Names): Promise<string> {
  const listener = new ClusterListener({
    keys: new KeyRing([{ key: 'key', projects: null }]),
    answer: () => Promise.reject(new Error('nothing is asked')),
    holdings: () => expect.unreachable('nobody asks for holdings'),
    names: (request) =>
      new MemberNames({ own, zone, peers: () => [], timeoutMs: TIMEOUT_MS }).answer(request),
    copies: {
      copy: () => expect.unreachable('nobody copies'),
      piece: () => expect.unreachable('nobody copies'),
      release: () => expect.unreachable('nobody copies'),
    },
    bugs: { report: (error) => bugs.push(error) },
    identity: null,
  });
  listeners.push(listener);
  const url = `http://127.0.0.1:${await listener.listen('127.0.0.1', 0)}`;
  const told = { storeId: url, zone, url, wireVersion: 1, assigned: [], beside: [] };
  peers.push(new Peer(told, new TcpPeerLink(url, 'key')));
  return url;
}

const own = namesOf({ a: { f: 5, g: 1 }, b: {} });
const asked = new MemberNames({ own, zone: 'east', peers: () => peers, timeoutMs: TIMEOUT_MS });

beforeAll(async () => {
  await member('east', namesOf({ c: {}, a: { g: 10, h: 2 } }));
  await member('west', namesOf({ a: { f: 5, g: 12, h: 1, i: 3 }, d: {} }));
  await member('west', busy);
  // Nobody listens there.
  peers.push(
    new Peer({ ...peers[0], storeId: 'gone' } as never, new TcpPeerLink('http://127.0.0.1:1', 'key')),
  );
});
afterAll(async () => {
  for (const { link } of peers) link.close();
  await Promise.all(listeners.map((listener) => listener.close(0)));
});

test('projects of all, each once, in turn by how busy they are where they are known', async () => {
  expect(await asked.projects(NOW_US, 10)).toEqual(['a', 'c', 'b', 'd']);
  expect(await asked.projects(NOW_US, 3)).toEqual(['a', 'c', 'b']);
});

test('functions: counts of one zone are added up, and of two zones the larger counts', async () => {
  expect(await asked.functions('a', NOW_US, 10)).toEqual([
    { id: 'g', count: 12 },
    { id: 'f', count: 5 },
    { id: 'i', count: 3 },
    { id: 'h', count: 2 },
  ]);
  expect(await asked.functions('a', NOW_US, 1)).toEqual([{ id: 'g', count: 12 }]);
  expect(await asked.functions('nobody', NOW_US, 10)).toEqual([]);
  expect(bugs).toEqual([]);
});

test('bytes that are no request are refused, and a reply without names is left out', async () => {
  for (const bytes of ['', '{', '[]', '{"project":1,"nowUs":1}', '{"project":"a","nowUs":1.5}'])
    await expect(asked.answer(Buffer.from(bytes))).rejects.toThrow(PartialError);
  const { link } = peers[0];
  const lying = { ...link, names: async () => Buffer.from('[{"name":1}]') };
  const told = new MemberNames({
    own,
    zone: 'east',
    peers: () => [new Peer({ ...peers[0] } as never, lying as never)],
    timeoutMs: TIMEOUT_MS,
  });
  expect(await told.projects(NOW_US, 10)).toEqual(['a', 'b']);
});
