/** What is told of members that do not answer. */

import { expect, test } from 'vitest';
import { SILENT_TIMES, WIRE_VERSION } from '../../src/cluster/limits.js';
import { writeHoldings } from '../../src/cluster/messages.js';
import { Peers } from '../../src/cluster/peers.js';
import { NO_COPIES } from './no-copies.js';

test('of a member that is silent the reason is told once, and that it answers again', async () => {
  let nowUs = 0;
  let error: Error | null = new Error('connect ECONNREFUSED');
  const told: string[] = [];
  const peers = new Peers({
    storeId: 'own',
    zone: '',
    linkTo: () => ({
      ...NO_COPIES,
      ask: () => expect.unreachable('no question is asked'),
      holdings: async () => {
        nowUs += 1_000;
        if (error !== null) throw error;
        return writeHoldings({ topics: [], copies: [] });
      },
      close: () => undefined,
    }),
    monotonicUs: () => nowUs,
    freshMs: 10_000,
    onSilent: (url, why) => told.push(`${url}: ${why}`),
  });
  const member = { zone: '', wireVersion: WIRE_VERSION, assigned: [], beside: [] };
  peers.update([
    { ...member, storeId: 'own', url: 'http://own:1' },
    { ...member, storeId: 'other', url: 'http://other:1' },
  ]);
  for (let poll = 0; poll < SILENT_TIMES - 1; poll++) await peers.poll();
  expect(told).toEqual([]);
  for (let poll = 0; poll < 3; poll++) await peers.poll();
  expect(told).toEqual(['http://other:1: connect ECONNREFUSED']);
  error = null;
  for (let poll = 0; poll < 2; poll++) await peers.poll();
  expect(told).toEqual(['http://other:1: connect ECONNREFUSED', 'http://other:1: null']);
  peers.close();
});
