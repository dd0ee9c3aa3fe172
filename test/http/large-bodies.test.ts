/** Large bodies that come at once, over both servers: how much of them is read between two looks at other requests. */

import { request } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { READ_TURN_BYTES } from '../../src/http/limits.js';
import { AnswersInFlight } from '../../src/http/server/answers-in-flight.js';
import type { BodyConsumer, HttpAnswer } from '../../src/http/server/server.js';
import type { Uws, UwsApp, UwsRequest, UwsResponse } from '../../src/http/server/uws-binary.js';
import { UwsServer } from '../../src/http/server/uws-server.js';
import { eventually } from '../eventually.js';
import { BACK_ENDS, RunningServer } from './running-server.js';
import { BugLog } from './service.js';

const BODY_BYTES = 8 * 1024 * 1024;
/** What one read brings at most: uWebSockets.js' buffer. */
const READ_BYTES = 512 * 1024;
const DONE: HttpAnswer = { status: 200, headers: [], body: 'read', close: false };

const running: RunningServer[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ server }) => server.close(0)));
});

/** Notes what of a body comes in each turn of the event loop. */
class CountedBody implements BodyConsumer {
  byteCount = 0;
  mostInTurn = 0;
  isAborted = false;
  #inTurn = 0;

  push(piece: Uint8Array): boolean {
    this.byteCount += piece.length;
    if (this.#inTurn === 0)
      setImmediate(() => {
        this.#inTurn = 0;
      });
    this.#inTurn += piece.length;
    this.mostInTurn = Math.max(this.mostInTurn, this.#inTurn);
    return true;
  }

  end(): HttpAnswer {
    return DONE;
  }

  abort(): void {
    this.isAborted = true;
  }
}

describe.each(BACK_ENDS)('%s', (backEnd) => {
  async function counting(): Promise<{ server: RunningServer; bodies: CountedBody[] }> {
    const bodies: CountedBody[] = [];
    const open = () => {
      bodies.push(new CountedBody());
      return bodies[bodies.length - 1];
    };
    const server = await RunningServer.start(backEnd, { open }, new BugLog());
    running.push(server);
    return { server, bodies };
  }

  test('of a large body no more comes in a turn than one read, and all of it', async () => {
    const { server, bodies } = await counting();
    const replies = Array.from({ length: 3 }, async () => {
      const reply = await fetch(server.url, { method: 'POST', body: new Uint8Array(BODY_BYTES) });
      return await reply.text();
    });
    expect(await Promise.all(replies)).toEqual(['read', 'read', 'read']);
    expect(bodies.map(({ byteCount }) => byteCount)).toEqual([BODY_BYTES, BODY_BYTES, BODY_BYTES]);
    for (const { mostInTurn } of bodies) expect(mostInTurn).toBeLessThan(READ_TURN_BYTES + READ_BYTES);
  });

  test('a client that goes away while its body waits for a turn is noticed', async () => {
    const { server, bodies } = await counting();
    const sent = request(server.url, { method: 'POST', headers: { 'Content-Length': BODY_BYTES } });
    sent.on('error', () => undefined);
    sent.write(new Uint8Array(BODY_BYTES / 2), () => sent.destroy());
    await eventually(() => bodies.length === 1 && bodies[0].isAborted);
  });
});

test('of all large bodies one is read from in a turn', async () => {
  let open: (response: UwsResponse, request: UwsRequest) => void = () => undefined;
  const app = {
    any: (_pattern: string, handler: typeof open) => {
      open = handler;
    },
  };
  const uws = { App: () => app as unknown as UwsApp } as unknown as Uws;
  const bugs = new BugLog();
  const parts = { bugs, inFlight: new AnswersInFlight(1), identity: null, addressSettings: '' };
  new UwsServer(uws, { open: () => new CountedBody() }, parts);
  const events: string[] = [];
  const requestOf = {
    getUrl: () => '/',
    getQuery: () => undefined,
    getCaseSensitiveMethod: () => 'POST',
    forEach: () => undefined,
  };
  const takes = ['a', 'b', 'c'].map((name) => {
    let take: (piece: ArrayBuffer, isLast: boolean) => void = () => undefined;
    const response = {
      onAborted: () => undefined,
      onData: (onData: typeof take) => {
        take = onData;
      },
      pause: () => events.push(`${name} pauses`),
      resume: () => events.push(`${name} goes on`),
    };
    open(response as unknown as UwsResponse, requestOf as unknown as UwsRequest);
    return (byteCount: number) => take(new ArrayBuffer(byteCount), false);
  });
  takes[0](READ_TURN_BYTES - 1);
  expect(events).toEqual([]);
  takes[0](1);
  takes[1](READ_TURN_BYTES);
  // Of a chunked body one read brings several pieces.
  takes[2](READ_TURN_BYTES);
  takes[2](READ_TURN_BYTES);
  for (let turn = 1; turn <= 4; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    events.push(`turn ${turn}`);
  }
  expect([...events, ...bugs.bugs]).toEqual([
    ...['a pauses', 'b pauses', 'c pauses'],
    ...['turn 1', 'a goes on', 'turn 2', 'b goes on', 'turn 3', 'c goes on', 'turn 4'],
  ]);
});
