/** Which member gets which partition. */

import { expect, test } from 'vitest';
import { assignPartitions, type GroupMember } from '../../ingest/kafka/group/assign-partitions.js';
import { MOVES_AT_ONCE } from '../../ingest/kafka/limits.js';
import { Random } from '../../src/demo/random.js';

const keysOf = (count: number, topic = 'edge') =>
  Array.from({ length: count }, (_, partition) => ({ topic, partition }));

/** `a: 0@5 1@7!` holds of partition 0 up to offset 5, of 1 up to 7, its end; `a?` can't be read. */
function member(text: string): GroupMember {
  const [name, ...held] = text.split(/:? +/);
  if (name.endsWith('?')) return { memberId: name.slice(0, -1), data: null };
  return {
    memberId: name,
    data: {
      storeId: `store-${name[0]}`,
      url: '',
      wireVersion: 1,
      held: held.map((one) => {
        const [partition, nextOffset] = one.replace('!', '').split('@').map(Number);
        return { topic: 'edge', partition, nextOffset, isWhole: one.endsWith('!') };
      }),
    },
  };
}

function assigned(
  count: number,
  members: readonly string[],
  committed: Record<number, string> = {},
): string[] {
  const committedBy = new Map(
    Object.entries(committed).map(([partition, store]) => [`edge/${partition}`, store]),
  );
  const result = assignPartitions(keysOf(count), members.map(member), committedBy);
  return [...result].map(([name, { partitions, beside }]) => {
    const shown = partitions.map((key) => `${beside.includes(key) ? '+' : ''}${key.partition}`);
    return `${name}: ${shown.join(' ')}`;
  });
}

test('partitions go to whoever holds their state, else to nobody or to whoever has least', () => {
  const check = (
    ...[count, members, committed, expected]: [number, string[], Record<number, string>, string[]]
  ) => expect(assigned(count, members, committed)).toEqual(expected);

  // Nobody has read anything: evenly.
  check(5, ['b', 'a'], {}, ['b: 1 3', 'a: 0 2 4']);
  // Each keeps what it holds, the newcomer gets what nobody has read.
  check(4, ['a: 0@5 1@7', 'b'], { 0: 'store-a', 1: 'store-a' }, ['a: 0 1', 'b: 2 3']);
  // The owner of record keeps it, though another has read further.
  check(1, ['a: 0@5', 'b: 0@9'], { 0: 'store-a' }, ['a: 0', 'b: ']);
  // The owner is away: to the one that has most, to nobody where nobody has any.
  check(2, ['a: 0@5', 'b: 0@9'], { 0: 'store-c', 1: 'store-c' }, ['a: ', 'b: 0']);
  // Committed by a process that did not say which store it has.
  check(2, ['a: 0@5', 'b'], { 0: '', 1: '' }, ['a: 0', 'b: ']);
  // Held without a record yet: it stays while that is fair.
  check(4, ['a: 0@0 1@0', 'b: 2@0 3@0'], {}, ['a: 0 1', 'b: 2 3']);
  check(4, ['a: 0@0 1@0 2@0 3@0', 'b'], {}, ['a: 0 1', 'b: 2 3']);
  // One that can't be read holds nothing; it may get what nobody has read.
  check(3, ['a: 0@5', 'b?'], { 0: 'store-a' }, ['a: 0', 'b: 1 2']);
  // More than one fewer than another: it copies two beside the other, what it has begun with first.
  check(5, ['a: 0@5 1@5 2@5 3@5 4@5', 'b'], {}, ['a: 0 1 2 3 4', 'b: +0 +1']);
  check(5, ['a: 0@5 1@5 2@5 3@5 4@5', 'b: 3@0'], {}, ['a: 0 1 2 3 4', 'b: +0 +3']);
  check(2, ['a: 0@5 1@5', 'b'], {}, ['a: 0 1', 'b: +0']);
  check(1, ['a: 0@5', 'b'], {}, ['a: 0', 'b: ']);
  // What it has read to its end is its own, where that is fair.
  check(3, ['a: 0@5 1@5 2@5', 'b: 0@4! 1@4'], { 0: 'store-a', 1: 'store-a' }, ['a: 1 2', 'b: 0']);
  check(2, ['a: 0@5', 'b: 0@4! 1@4'], { 0: 'store-a', 1: 'store-b' }, ['a: 0', 'b: 1']);
  // Two with one store: a copied directory. The second gets nothing.
  check(2, ['a1: 0@5', 'a2: 0@5'], { 0: 'store-a' }, ['a1: 0 1', 'a2: ']);
  check(2, [], {}, []);
});

test('each partition goes to one member at most, the same whatever the order, and stays there', () => {
  const random = new Random(1);
  for (let round = 0; round < 500; round++) {
    const count = 1 + random.below(12);
    const names = ['a', 'b', 'c', 'd', 'e'].slice(0, 1 + random.below(5));
    const members = names.map((name) => {
      const held = keysOf(count).filter(() => random.chance(0.4));
      return `${name}: ${held.map(({ partition }) => `${partition}@${random.below(9)}`).join(' ')}`.trim();
    });
    const committed: Record<number, string> = {};
    for (const { partition } of keysOf(count))
      if (random.chance(0.5)) committed[partition] = `store-${random.pick(['a', 'b', 'c', 'gone'])}`;
    const first = assigned(count, members, committed);
    const all = first.flatMap((line) =>
      line
        .split(/:? +/)
        .slice(1)
        .filter((one) => one !== ''),
    );
    const own = all.filter((one) => !one.startsWith('+'));
    expect(new Set(own).size).toBe(own.length);
    expect(all.length - own.length).toBeLessThanOrEqual(MOVES_AT_ONCE);
    expect([...assigned(count, [...members].reverse(), committed)].sort()).toEqual([...first].sort());
    // Once they have committed what they got, a rebalance changes nothing.
    for (const line of first) {
      const [name, ...partitions] = line.split(/:? +/).filter((one) => one !== '');
      for (const partition of partitions)
        if (!partition.startsWith('+')) committed[Number(partition)] = `store-${name[0]}`;
    }
    expect(assigned(count, members, committed)).toEqual(first);
  }
});

test.each([
  ['joins', 0],
  ['is back with what it had of all of them', 1],
])('a member that %s gets its share of each topic', (_, oldOffset) => {
  const keys = [...keysOf(6), ...keysOf(6, 'relay')];
  const held = { a: [...keys], b: [] as typeof keys };
  for (let round = 0; held.a.length > held.b.length; round++) {
    expect(round).toBeLessThan(keys.length);
    const members = Object.entries(held).map(([memberId, some]): GroupMember => {
      const old = oldOffset === 0 ? [] : keys.filter((key) => !some.includes(key));
      const positions = [
        ...old.map((key) => ({ ...key, nextOffset: oldOffset, isWhole: false })),
        ...some.map((key) => ({ ...key, nextOffset: 9, isWhole: true })),
      ];
      return { memberId, data: { storeId: memberId, url: '', wireVersion: 1, held: positions } };
    });
    const result = assignPartitions(keys, members, new Map());
    held.b.push(...result.get('b')!.beside);
    held.a = held.a.filter((key) => !held.b.includes(key));
  }
  expect(held.b.filter(({ topic }) => topic === 'edge')).toHaveLength(3);
  expect(held.b.filter(({ topic }) => topic === 'relay')).toHaveLength(3);
});

test('a member that joins gets its share a few at a time, each partition once, and nothing else moves', () => {
  for (const [count, memberCount] of [
    [16, 3],
    [7, 2],
    [24, 5],
    [1, 1],
  ]) {
    const names = 'abcdefgh'.slice(0, memberCount + 1).split('');
    const owners = new Map(keysOf(count).map(({ partition }) => [partition, names[partition % memberCount]]));
    const copied = new Map<number, string>();
    const moved: number[] = [];
    for (let round = 0; ; round++) {
      expect(round).toBeLessThan(count + 2);
      const members = names.map((name) => {
        const own = [...owners].filter(([, owner]) => owner === name).map(([partition]) => `${partition}@9`);
        const beside = [...copied].filter(([, by]) => by === name).map(([partition]) => `${partition}@9!`);
        return [name, ...own, ...beside].join(' ');
      });
      const committed = Object.fromEntries(
        [...owners].map(([partition, owner]) => [partition, `store-${owner}`]),
      );
      const lines = assigned(count, members, committed).map((line) =>
        line.split(/:? +/).filter((one) => one !== ''),
      );
      copied.clear();
      for (const [name, ...partitions] of lines)
        for (const one of partitions) {
          if (one.startsWith('+')) {
            copied.set(Number(one.slice(1)), name);
            continue;
          }
          if (owners.get(Number(one)) !== name) moved.push(Number(one));
          owners.set(Number(one), name);
        }
      if (copied.size === 0) break;
    }
    const loads = names.map((name) => [...owners.values()].filter((owner) => owner === name).length);
    expect(Math.max(...loads) - Math.min(...loads)).toBeLessThanOrEqual(1);
    expect(new Set(moved).size).toBe(moved.length);
    expect(moved.length).toBeLessThanOrEqual(Math.ceil(count / (memberCount + 1)));
  }
});
