/** What a member is known to have nothing of: from lists that come in parts, change, begin again, or are too long. */

import { expect, test } from 'vitest';
import { NO_PROJECTS, ProjectList, projectHash } from '../../engine/project-list.js';
import type { HeldCopy } from '../../src/cluster/holdings.js';
import { KEPT_HASHES } from '../../src/cluster/limits.js';
import { OwnCopies } from '../../src/cluster/own-copies.js';
import { PeerProjects } from '../../src/cluster/peer-projects.js';
import { WholeAnswers } from '../../src/service/whole-answers.js';

const ID = 'edge/0';
const FREE = projectHash('free');

function heldOf(list: ProjectList, nextOffset: number, known: PeerProjects, most = Infinity): HeldCopy {
  const count = known.known().find(({ partition }) => partition === 0)?.count ?? 0;
  const projects = list.mark;
  const from = Math.min(count, projects?.count ?? 0);
  const hashes = list.from(from, most);
  return {
    topic: 'edge',
    partition: 0,
    nextOffset,
    ageMs: 10,
    isReached: true,
    received: 0,
    projects,
    from,
    hashes,
  };
}

function heard(known: PeerProjects, held: readonly HeldCopy[], nowUs = 0): void {
  known.hear(held, () => 'id', nowUs);
}

test('a list that comes in parts counts once it is whole, and as of then', () => {
  const list = new ProjectList();
  for (let i = 0; i < 10; i++) list.add(`p${i}`);
  const known = new PeerProjects();
  for (let part = 0; part < 3; part++) {
    heard(known, [heldOf(list, 100 + part, known, 4)]);
    expect(known.without(ID, FREE, 'id', 0)?.nextOffset).toBe(part < 2 ? undefined : 102);
  }
  expect(known.without(ID, projectHash('p7'), 'id', 0)).toBeNull();
  expect(known.without(ID, FREE, 'other', 0)).toBeNull();
  expect(known.without('edge/1', FREE, 'id', 0)).toBeNull();
  expect(known.without(ID, FREE, 'id', 2_000_000)?.ageMs).toBe(2_010);

  // It answers from further on, with the same list: what it lacks it lacks up to there.
  const copy = { topicId: 'id', ageMs: 0, heardUs: 5_000_000 };
  known.note(ID, list.mark, { ...copy, nextOffset: 200 });
  expect(known.without(ID, FREE, 'id', 5_000_000)?.nextOffset).toBe(200);
  // With a longer one nothing is known beyond.
  list.add('free');
  known.note(ID, list.mark, { ...copy, nextOffset: 300 });
  expect(known.without(ID, FREE, 'id', 5_000_000)?.nextOffset).toBe(200);
  heard(known, [heldOf(list, 301, known)], 6_000_000);
  expect(known.without(ID, FREE, 'id', 6_000_000)).toBeNull();
  expect(known.without(ID, projectHash('p10'), 'id', 6_000_000)?.nextOffset).toBe(301);
});

test('a list that begins again is asked for from its beginning', () => {
  const known = new PeerProjects();
  const [one, other] = [
    ['a', 'b'],
    ['b', 'a'],
  ].map((names) => {
    const list = new ProjectList();
    for (const name of names) list.add(name);
    return list;
  });
  heard(known, [heldOf(one, 5, known)]);
  expect(known.without(ID, FREE, 'id', 0)).not.toBeNull();
  heard(known, [heldOf(other, 5, known)]);
  expect(known.without(ID, FREE, 'id', 0)).toBeNull();
  expect(known.known()).toEqual([]);
  heard(known, [heldOf(other, 5, known)]);
  expect(known.without(ID, FREE, 'id', 0)).not.toBeNull();

  const shorter = new ProjectList();
  shorter.add('a');
  heard(known, [heldOf(shorter, 1, known)]);
  expect(known.without(ID, FREE, 'id', 0)).toBeNull();

  heard(known, [{ ...heldOf(other, 5, known), projects: null }]);
  heard(known, []);
  expect(known.known()).toEqual([]);
});

test('a partition without a record is known to have nothing', () => {
  const known = new PeerProjects();
  heard(known, [{ ...heldOf(new ProjectList(), 0, known), projects: NO_PROJECTS }]);
  expect(known.without(ID, FREE, 'id', 0)?.nextOffset).toBe(0);
});

test('of more hashes than there is room for none are kept or asked for again', () => {
  const known = new PeerProjects();
  const hashes = Uint32Array.from({ length: KEPT_HASHES + 1 }, (_, i) => i + 1);
  const held = {
    ...heldOf(new ProjectList(), 7, known),
    projects: { count: hashes.length, mark: 0 },
    hashes,
  };
  heard(known, [held]);
  expect(known.known()).toEqual([{ topic: 'edge', partition: 0, count: 0xffff_ffff }]);
  expect(known.heldBytes).toBe(0);
  heard(known, [{ ...held, from: hashes.length, hashes: new Uint32Array(0) }]);
  expect(known.without(ID, FREE, 'id', 0)).toBeNull();
  expect(known.known()).toHaveLength(1);
});

test('a store of which a repair has dropped something tells no lists', () => {
  const whole = new WholeAnswers({
    topics: ['edge'],
    freshUs: 1,
    maxStalenessUs: 0,
    nextOffset: () => null,
    monotonicUs: () => 0,
    nowUs: () => 0,
  });
  const shards = { known: () => undefined, all: () => [] };
  const key = { topic: 'edge', partition: 0 };
  expect(new OwnCopies(shards, whole, false).projects(key, 'id')).toEqual(NO_PROJECTS);
  expect(new OwnCopies(shards, whole, true).projects(key, 'id')).toBeNull();
});
