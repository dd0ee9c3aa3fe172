import { expect, test } from 'vitest';
import { longWorkTurn, Turns } from '../src/turns.js';

/** The pieces that ran in each turn of the event loop, each of so many µs. */
async function piecesByTurn(
  turnUs: number,
  pieceUs: number,
  works: number,
  pieces: number,
): Promise<string[]> {
  let nowUs = 0;
  let isRunning = true;
  const byTurn: string[] = [''];
  const turns = new Turns({ turnUs, nowUs: () => nowUs });
  const nextTurn = () => {
    byTurn.push('');
    if (isRunning) setImmediate(nextTurn);
  };
  setImmediate(nextTurn);
  const work = async (name: number) => {
    for (let piece = 0; piece < pieces; piece++) {
      await turns.next();
      byTurn[byTurn.length - 1] += String(name);
      nowUs += pieceUs;
    }
  };
  await Promise.all(Array.from({ length: works }, (_, name) => work(name)));
  isRunning = false;
  return byTurn.filter((names) => names !== '');
}

test('pieces of work take turns in the order of asking, one a turn', async () => {
  expect(await piecesByTurn(0, 1, 3, 2)).toEqual(['0', '1', '2', '0', '1', '2']);
});

test('short pieces share a turn for so long, and nobody is passed over', async () => {
  expect(await piecesByTurn(500, 200, 5, 2)).toEqual(['012', '340', '123', '4']);
  expect(await piecesByTurn(500, 200, 1, 4)).toEqual(['000', '0']);
  expect(await piecesByTurn(500, 10, 4, 1)).toEqual(['0123']);
  expect(await piecesByTurn(500, 600, 3, 1)).toEqual(['0', '1', '2']);
});

test('kinds of long work take turns, one piece a turn, however many of a kind wait', async () => {
  const turns: string[] = [''];
  let isRunning = true;
  const nextTurn = () => {
    turns.push('');
    if (isRunning) setImmediate(nextTurn);
  };
  setImmediate(nextTurn);
  const piece = async (name: string, kind: 'bodies' | 'ingest' | 'commits') => {
    await longWorkTurn(kind);
    turns[turns.length - 1] += name;
  };
  const bodies = Array.from({ length: 5 }, () => piece('b', 'bodies'));
  const ingest = (async () => {
    for (let i = 0; i < 2; i++) await piece('i', 'ingest');
  })();
  await Promise.all([...bodies, ingest, piece('c', 'commits')]);
  isRunning = false;
  expect(turns.filter((names) => names !== '')).toEqual(['b', 'i', 'c', 'b', 'i', 'b', 'b', 'b']);
});
